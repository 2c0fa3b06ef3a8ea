#include "farm/supervisor/orphans.h"

#include <algorithm>
#include <chrono>
#include <span>

namespace rodeo::farm {
namespace {

using Outcome = transport::Requester::Outcome;

constexpr std::uint64_t kRecorderPatienceNs = 2'000'000'000;  // Time in which a recorder may be away or silent.

}  // namespace

Orphans::Orphans(Events& events, transport::Requester& requester, const std::vector<std::string>& recorders)
    : events_(events), requester_(requester) {
  for (const std::string& name : recorders) recorders_.push_back(requester_.add(name));
}

void Orphans::poll(std::uint64_t now_ns, bool released, const std::vector<trigger::TriggerMark>& marks,
                   std::uint16_t block) {
  const auto untold = [this](std::uint64_t id) { return events_.state_of(id) == Events::State::orphan; };
  if (released && asked_ids_.empty()) {
    asked_ids_ = events_.admission.ask(now_ns, untold);
    recorded_.assign(asked_ids_.size(), Recorded::no);
    asked_recorder_ = asked_first_ = 0;
    asked_ns_ = now_ns;
  }
  if (!asked_ids_.empty() && !request_) ask_recorders(now_ns);
  events_.admission.admit(events_.dispatcher, untold, [&](std::uint64_t id) {
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
void Orphans::ask_recorders(std::uint64_t now_ns) {
  if (asked_recorder_ < recorders_.size()) {
    const std::size_t count = std::min(asked_ids_.size() - asked_first_, formats::kMostHaveIds);
    bytes_.clear();
    formats::append_have(bytes_, asked_ids_.subspan(asked_first_, count));
    request_ = requester_.ask(recorders_[asked_recorder_], formats::event_request::kHave, std::span<const std::byte>(bytes_),
                              std::chrono::nanoseconds(kRecorderPatienceNs));
    if (request_ || now_ns - asked_ns_ < kRecorderPatienceNs) return;
    mark_unknown(asked_first_, asked_ids_.size() - asked_first_);
    ++asked_recorder_;
    asked_first_ = 0;
    asked_ns_ = now_ns;
    return;
  }
  answer_.clear();
  for (std::size_t i = 0; i < asked_ids_.size(); ++i) {
    using Answer = dispatch::Admission::Recorded;
    if (recorded_[i] > Recorded::unknown) {
      events_.on_recorded(asked_ids_[i], recorded_[i] == Recorded::debug, now_ns);
      answer_.push_back(Answer::yes);
    } else {
      const bool unknown = recorded_[i] == Recorded::unknown;
      counters_.add(OrphansCounter::untold);
      if (unknown) counters_.add(OrphansCounter::unasked);
      answer_.push_back(unknown ? Answer::unknown : Answer::no);
    }
  }
  asked_ids_ = {};
  events_.admission.answer(answer_);
}

void Orphans::mark_unknown(std::size_t from, std::size_t count) {
  for (Recorded& one : std::span(recorded_).subspan(from, count)) one = std::max(one, Recorded::unknown);
}

bool Orphans::on_reply(const transport::Requester::Reply& reply, std::uint64_t now_ns) {
  if (!request_ || *request_ != reply.request) return false;
  request_.reset();
  const std::size_t count = std::min(asked_ids_.size() - asked_first_, formats::kMostHaveIds);
  if (reply.outcome == Outcome::answered) {
    std::vector<std::byte> whole;
    const auto have = formats::decode_have_answer(reply.message.in_one_piece(whole), count);
    if (!have) mark_unknown(asked_first_, count);
    for (std::size_t i = 0; have && i < count; ++i) {
      if (have->has(i)) recorded_[asked_first_ + i] = have->stream(i).type == "debug" ? Recorded::debug : Recorded::accepted;
    }
  } else if (now_ns - asked_ns_ < kRecorderPatienceNs) {
    return true;  // The caller asks the recorder again.
  } else {
    mark_unknown(asked_first_, count);
  }
  asked_first_ += count;
  asked_ns_ = now_ns;
  if (asked_first_ < asked_ids_.size()) return true;
  asked_first_ = 0;
  ++asked_recorder_;
  return true;
}

std::vector<NamedCounter> Orphans::counters() const {
  return base::named_counters(counters_, kOrphansCounters, [](OrphansCounter) { return true; });
}

}  // namespace rodeo::farm
