#include "farm/supervisor/orphans.h"

#include <algorithm>
#include <chrono>
#include <span>

namespace rodeo::farm {
namespace {

using Outcome = transport::Requester::Outcome;

constexpr std::uint64_t kRecorderPatienceNs = 2'000'000'000;  // Time in which a recorder may be away or silent.

}  // namespace

Orphans::Orphans(Books& books, transport::Requester& requester, const std::vector<std::string>& recorders)
    : books_(books), requester_(requester) {
  for (const std::string& name : recorders) recorders_.push_back(requester_.add(name));
}

void Orphans::poll(std::uint64_t now_ns, bool released, const std::vector<trigger::TriggerMark>& marks,
                   std::uint16_t block) {
  const auto untold = [this](std::uint64_t id) { return books_.held(id) == Books::Held::orphan; };
  if (released && asked_.empty()) {
    asked_ = books_.admission.ask(now_ns, untold);
    recorded_.assign(asked_.size(), Recorded::no);
    asked_of_ = asked_from_ = 0;
    asked_ns_ = now_ns;
  }
  if (!asked_.empty() && !request_) ask(now_ns);
  books_.admission.admit(books_.dispatcher, untold, [&](std::uint64_t id) {
    dispatch::Event event{.id = id, .lumi_block = block};
    const auto behind = std::ranges::upper_bound(marks, id, {}, &trigger::TriggerMark::id);
    if (behind != marks.begin()) {
      event.lumi_block = std::prev(behind)->lumi_block;
      event.scan_step = std::prev(behind)->scan_step;
    }
    return event;
  });
}

/// Asks one recorder after the other, for a part of the ids at a time.
void Orphans::ask(std::uint64_t now_ns) {
  if (asked_of_ < recorders_.size()) {
    const std::size_t count = std::min(asked_.size() - asked_from_, formats::kMostHaveIds);
    bytes_.clear();
    formats::append_have(bytes_, asked_.subspan(asked_from_, count));
    request_ = requester_.ask(recorders_[asked_of_], formats::event_request::kHave, std::span<const std::byte>(bytes_),
                              std::chrono::nanoseconds(kRecorderPatienceNs));
    if (request_ || now_ns - asked_ns_ < kRecorderPatienceNs) return;
    not_said(asked_from_, asked_.size() - asked_from_);
    ++asked_of_;
    asked_from_ = 0;
    asked_ns_ = now_ns;
    return;
  }
  answer_.clear();
  for (std::size_t i = 0; i < asked_.size(); ++i) {
    using Answer = dispatch::Admission::Recorded;
    if (recorded_[i] > Recorded::unknown) {
      books_.recorded_before(asked_[i], recorded_[i] == Recorded::debug, now_ns);
      answer_.push_back(Answer::yes);
    } else {
      const bool unknown = recorded_[i] == Recorded::unknown;
      counters_.add(OrphansCounter::untold);
      if (unknown) counters_.add(OrphansCounter::unasked);
      answer_.push_back(unknown ? Answer::unknown : Answer::no);
    }
  }
  asked_ = {};
  books_.admission.answer(answer_);
}

void Orphans::not_said(std::size_t from, std::size_t count) {
  for (Recorded& one : std::span(recorded_).subspan(from, count)) one = std::max(one, Recorded::unknown);
}

bool Orphans::take(const transport::Requester::Reply& reply, std::uint64_t now_ns) {
  if (!request_ || *request_ != reply.request) return false;
  request_.reset();
  const std::size_t count = std::min(asked_.size() - asked_from_, formats::kMostHaveIds);
  if (reply.outcome == Outcome::answered) {
    std::vector<std::byte> whole;
    const auto have = formats::decode_have_answer(reply.message.in_one_piece(whole), count);
    if (!have) not_said(asked_from_, count);
    for (std::size_t i = 0; have && i < count; ++i) {
      if (have->has(i)) recorded_[asked_from_ + i] = have->stream(i).type == "debug" ? Recorded::debug : Recorded::accepted;
    }
  } else if (now_ns - asked_ns_ < kRecorderPatienceNs) {
    return true;  // The caller asks the recorder again.
  } else {
    not_said(asked_from_, count);
  }
  asked_from_ += count;
  asked_ns_ = now_ns;
  if (asked_from_ < asked_.size()) return true;
  asked_from_ = 0;
  ++asked_of_;
  return true;
}

std::vector<NamedCounter> Orphans::counters() const {
  return base::named_counters(counters_, kOrphansCounters, [](OrphansCounter) { return true; });
}

}  // namespace rodeo::farm
