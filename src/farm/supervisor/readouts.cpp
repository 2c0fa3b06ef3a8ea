#include "farm/supervisor/readouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace rodeo::farm {
namespace {

using formats::FragmentRequest;
using Outcome = transport::Requester::Outcome;
using C = ReadoutsCounter;

constexpr std::uint64_t kCheckNs = 2'000'000;
constexpr unsigned kMostClears = 8;              // Limit of clears to one readout without an answer.
constexpr std::uint64_t kResendNs = 20'000'000;  // Time after which a refused clear is sent again.
constexpr std::uint64_t kDescribeNs = 50'000'000;
constexpr std::uint64_t kProbeNs = 500'000'000;  // Pause between two requests to a dead readout that is connected.
constexpr std::uint64_t kWatchPolls = 20;        // The pause in poll_holdings, if a trigger announces events.
constexpr std::uint64_t kMostNamed = 1 << 24;    // Ids in one survey; exceeds the memory of a readout.
constexpr std::uint64_t kBehind = 1 << 16;       // Distance that events may come behind the newest one.

}  // namespace

Readouts::Readouts(const SupervisorSettings& settings, transport::Requester& requester, dispatch::ClearBook& clears,
                   dispatch::CommonSpan& span, OnHeld held)
    : settings_(settings), requester_(requester), clears_(clears), span_(span), on_held_(std::move(held)) {
  for (const std::string& name : settings.readouts)
    readouts_.push_back({.name = name, .service = requester_.add(name), .number = clears_.add_readout(), .from = 0});
}

void Readouts::poll(std::uint64_t now_ns) {
  if (now_ns >= checked_ns_ + kCheckNs) {
    checked_ns_ = now_ns;
    for (std::uint32_t i = 0; i < readouts_.size(); ++i) {
      check_connection(readouts_[i], now_ns);
      ask_holdings(i, now_ns);
      ask_description(i, now_ns);
      if (readouts_[i].more) send_clears(i);
    }
    if (follows_ && span_.check_time(now_ns)) survey(0);
  }
  if (std::exchange(batches_, clears_.batches_closed()) == clears_.batches_closed()) return;
  for (std::uint32_t i = 0; i < readouts_.size(); ++i) send_clears(i);
}

void Readouts::check_connection(Readout& readout, std::uint64_t now_ns) {
  const bool connected = requester_.connected(readout.service);
  const std::uint64_t connections = requester_.connections(readout.service);
  if (readout.away_ns == 0) readout.away_ns = now_ns;
  if (connected && connections != readout.connections) {
    // It may be another process now, whose events no clear has named.
    readout.connections = connections;
    readout.connected = true;
    readout.asked = readout.ended = readout.other_version = readout.described = false;
    const std::uint64_t instance = requester_.instance(readout.service);
    if (std::exchange(readout.instance, instance) != instance) span_.started_anew(readout.number);
    readout.newest = 0;
    readout.clears = 0;
    begin_survey(readout, 0);
    if (!clears_.lives(readout.number)) {
      counters_.add(C::readouts_back);
      messages_.push_back(fmt::format("readout {} is back", readout.name));
      extend_watch(readout, now_ns);
    }
    clears_.connected(readout.number);
    span_.lives(readout.number, true);
    readout.more = true;
  } else if (!connected && readout.connected) {
    readout.connected = readout.asked = false;
    readout.away_ns = now_ns;
    clears_.disconnected(readout.number);
  }
  if (!readout.connected && clears_.lives(readout.number) &&
      now_ns - readout.away_ns > static_cast<std::uint64_t>(settings_.readout_grace.count()))
    lose_readout(readout);
  if (readout.resend_ns != 0 && now_ns >= readout.resend_ns) {
    readout.resend_ns = 0;
    if (readout.connected && clears_.lives(readout.number)) clears_.connected(readout.number);
    readout.more = true;
  }
}

void Readouts::lose_readout(Readout& readout) {
  counters_.add(C::readouts_lost);
  messages_.push_back(fmt::format("readout {} {}: the farm no longer waits for it", readout.name,
                                  readout.connected ? "does not answer" : "has gone"));
  clears_.died(readout.number);
  span_.lives(readout.number, false);
}

const std::shared_ptr<const std::vector<std::byte>>& Readouts::bytes_of(const dispatch::ClearBook::Batch& batch) {
  if (encoded_sequence_ == batch.sequence) return encoded_;
  formats::ClearRequest request{.sequence = batch.sequence};
  request.ranges.reserve(batch.ids->ranges.size());
  for (const auto& range : batch.ids->ranges) request.ranges.push_back({range.first, range.count});
  request.bitmaps.reserve(batch.ids->bitmaps.size());
  for (const auto& bitmap : batch.ids->bitmaps) request.bitmaps.push_back({bitmap.first, bitmap.bits});
  auto bytes = std::make_shared<std::vector<std::byte>>();
  formats::append_clear_request(*bytes, request);
  encoded_ = std::move(bytes);
  encoded_sequence_ = batch.sequence;
  return encoded_;
}

void Readouts::send_clears(std::uint32_t index) {
  Readout& readout = readouts_[index];
  readout.more = true;
  while (readout.clears < kMostClears) {
    const auto batch = clears_.next(readout.number);
    if (!batch) {
      readout.more = false;
      return;
    }
    const auto& bytes = bytes_of(*batch);
    const std::span<const std::byte> parts[] = {*bytes};
    const auto request = requester_.ask(readout.service, static_cast<std::uint16_t>(FragmentRequest::clear), parts,
                                        settings_.readout_silence);
    if (!request) return;
    clears_.sent(readout.number, batch->sequence);
    pending_[*request] = {.readout = index, .what = Asked::clear, .sequence = batch->sequence, .bytes = bytes};
    ++readout.clears;
  }
}

void Readouts::ask_holdings(std::uint32_t index, std::uint64_t now_ns) {
  Readout& readout = readouts_[index];
  if (!readout.connected || readout.asked || now_ns < readout.next_ask_ns) return;
  const bool dead = !clears_.lives(readout.number);
  if (!readout.from) {
    const bool is_watched = now_ns < readout.watch_end_ns;
    if (!follows_ && !dead && !is_watched) return;
    readout.from = is_watched || readout.newest < kBehind ? 0 : readout.newest - kBehind;
  }
  request_.clear();
  formats::append_holdings_request(request_, {.from = *readout.from, .run_at = run_at(readout)});
  const auto request = requester_.ask(readout.service, static_cast<std::uint16_t>(FragmentRequest::holdings),
                                      std::span<const std::byte>(request_), settings_.readout_silence);
  if (!request) return;
  readout.asked = true;
  pending_[*request] = {.readout = index, .what = Asked::holdings, .from = *readout.from, .survey = readout.survey};
}

/// Returns where the run is. Without a trigger, the other readouts show this.
std::optional<std::uint64_t> Readouts::run_at(const Readout& asked) const {
  std::optional<std::uint64_t> newest = run_at_;
  for (const Readout& other : readouts_) {
    if (!run_at_ && &other != &asked && other.newest > newest.value_or(0)) newest = other.newest;
  }
  return newest;
}

void Readouts::ask_description(std::uint32_t index, std::uint64_t now_ns) {
  Readout& readout = readouts_[index];
  if (!readout.connected || readout.ended || now_ns < readout.next_describe_ns) return;
  if (readout.described && !follows_) return;
  readout.next_describe_ns = now_ns + kDescribeNs;
  const auto request = requester_.ask(readout.service, static_cast<std::uint16_t>(FragmentRequest::describe),
                                      std::span<const std::byte>{}, settings_.readout_silence);
  if (request) pending_[*request] = {.readout = index, .what = Asked::describe};
}

bool Readouts::on_reply(const transport::Requester::Reply& reply, std::uint64_t now_ns) {
  const auto found = pending_.find(reply.request);
  if (found == pending_.end()) return false;
  const Pending pending = std::move(found->second);
  pending_.erase(found);
  Readout& readout = readouts_[pending.readout];
  const bool this_connection = reply.outcome != Outcome::lost;
  if (reply.outcome == Outcome::answered && !clears_.lives(readout.number)) {
    // The readout was silent and answers again.
    counters_.add(C::readouts_back);
    messages_.push_back(fmt::format("readout {} answers again", readout.name));
    clears_.connected(readout.number);
    span_.lives(readout.number, true);
    readout.more = true;
    begin_survey(readout, 0);
    extend_watch(readout, now_ns);
  }
  if (reply.outcome == Outcome::refused && !std::exchange(readout.other_version, true)) {
    const auto why = static_cast<formats::FragmentRefusal>(reply.status);
    if (why == formats::FragmentRefusal::unknown_kind || why == formats::FragmentRefusal::old_version) {
      messages_.push_back(
          fmt::format("readout {} refuses this supervisor, because it does not know version {} of the requests for "
                      "fragments",
                      readout.name, formats::kFragmentRequestVersion));
    } else {
      readout.other_version = false;
    }
  }
  switch (pending.what) {
    case Asked::clear:
      if (this_connection && readout.clears > 0) --readout.clears;
      if (reply.outcome == Outcome::answered) {
        counters_.add(C::clears);
        ++readout.answered;
        clears_.answered(readout.number, pending.sequence);
      } else if (reply.outcome == Outcome::refused) {
        counters_.add(C::clears_refused);
        clears_.disconnected(readout.number);
        readout.resend_ns = now_ns + kResendNs;
      } else if (reply.outcome == Outcome::timed_out && clears_.lives(readout.number)) {
        lose_readout(readout);
      }
      if (readout.more) send_clears(pending.readout);
      break;
    case Asked::holdings:
      readout.asked = false;
      if (pending.survey == readout.survey) readout.next_ask_ns = now_ns + pause_ns(readout);
      if (reply.outcome == Outcome::answered) on_holdings(readout, pending, reply, now_ns);
      if (reply.outcome == Outcome::timed_out && clears_.lives(readout.number)) lose_readout(readout);
      break;
    case Asked::describe:
      if (reply.outcome != Outcome::answered) break;
      if (const auto description = formats::read_describe_reply(reply.message.in_one_piece(whole_))) {
        on_description(pending.readout, *description);
      } else {
        counters_.add(C::bad_answers);
        if (!std::exchange(readout.other_version, true))
          messages_.push_back(fmt::format("readout {} sent a description that is not of version {}: {}", readout.name,
                                          formats::kFragmentRequestVersion, description.error().message()));
      }
      break;
  }
  return true;
}

void Readouts::on_description(std::uint32_t index, const formats::DescribeReply& description) {
  Readout& readout = readouts_[index];
  readout.described = true;
  // With a trigger, ids are those of its events. Without one, the first readout that answers says what its ids count.
  if (settings_.trigger.empty() && numbering_of_.empty()) {
    numbering_ = description.numbering;
    numbering_of_ = readout.name;
  }
  if (!numbering_.fits(description.numbering) && !other_numbering_) {
    other_numbering_ = Error{
        "farm.other_numbering",
        fmt::format("the ids of readout {} count {}, those of {} count {}", readout.name, description.numbering.text(),
                    settings_.trigger.empty() ? "readout " + numbering_of_ : "the trigger authority", numbering_.text()),
        "",
        settings_.trigger.empty() ? "give all readouts of the farm the same extractor and orbits_per_frame"
                                  : "leave farm.supervisor.trigger out where readouts build time frames"};
  }
  if (!numbering_.phase && numbering_.fits(description.numbering)) numbering_.phase = description.numbering.phase;
  if (description.first) span_.first(readout.number, *description.first);
  if (description.ended && !readout.ended) {
    readout.ended = true;
    begin_survey(readout, 0);  // Begins the last survey.
  }
}

void Readouts::ask_descriptions(std::uint64_t now_ns) {
  for (std::uint32_t i = 0; i < readouts_.size(); ++i) {
    readouts_[i].connected = requester_.connected(readouts_[i].service);
    if (!readouts_[i].described) ask_description(i, now_ns);
  }
}

bool Readouts::all_described() const {
  return std::ranges::all_of(readouts_,
                             [&](const Readout& readout) { return readout.described || !clears_.lives(readout.number); });
}

/// Returns the pause between two requests for what a readout holds.
std::uint64_t Readouts::pause_ns(const Readout& readout) const {
  if (!clears_.lives(readout.number)) return kProbeNs;
  return static_cast<std::uint64_t>(settings_.poll_holdings.count()) * (follows_ ? 1 : kWatchPolls);
}

void Readouts::on_holdings(Readout& readout, const Pending& asked, const transport::Requester::Reply& reply,
                           std::uint64_t now_ns) {
  const auto held = formats::read_holdings_reply(reply.message.in_one_piece(whole_));
  if (!held) {
    counters_.add(C::bad_answers);
    return;
  }
  std::uint64_t last = asked.from;
  for (const formats::GlobalIdRange& range : held->ranges) {
    for (std::uint32_t i = 0; i < range.count; ++i) on_held_(asked.readout, range.first + i);
    last = range.first + range.count;
    readout.named += range.count;
  }
  if (asked.survey != readout.survey) return;  // The readout answers an older survey.
  readout.newest = held->newest.value_or(0);
  if (held->newest) span_.newest(readout.number, *held->newest);
  if (readout.watch_end_ns == UINT64_MAX && held->newest && *held->newest >= readout.watched_below)
    readout.watch_end_ns = now_ns + static_cast<std::uint64_t>(settings_.readout_grace.count());
  // The search is for lower ids.
  const bool enough = readout.surveyed && now_ns < readout.watch_end_ns && last >= readout.watched_below;
  const bool too_many = readout.named > kMostNamed;
  if (too_many) counters_.add(C::bad_answers);
  if (held->more && last > asked.from && !enough && !too_many) {
    readout.from = last;
    readout.next_ask_ns = 0;
    return;
  }
  readout.from.reset();
  readout.named = 0;
  readout.surveyed = true;
  if (readout.ended) span_.ended(readout.number);
  counters_.add(C::surveys);
}

void Readouts::watch(std::uint64_t below) {
  for (Readout& readout : readouts_) {
    if (readout.watched_below == below) continue;
    readout.watched_below = below;
    readout.watch_end_ns = UINT64_MAX;
  }
}

/// Asks for readout_grace longer. Fragments of events that ended without this readout may still be on their way through it.
void Readouts::extend_watch(Readout& readout, std::uint64_t now_ns) const {
  if (follows_) return;  // The supervisor asks this readout all the time.
  const std::uint64_t end_ns = now_ns + static_cast<std::uint64_t>(settings_.readout_grace.count());
  readout.watch_end_ns = std::max(readout.watch_end_ns, end_ns);
}

bool Readouts::watch_is_over() const {
  return std::ranges::all_of(readouts_, [&](const Readout& readout) {
    return !readout.connected || readout.watch_end_ns != UINT64_MAX || readout.watched_below == UINT64_MAX;
  });
}

void Readouts::survey(std::uint64_t from) {
  for (Readout& readout : readouts_) begin_survey(readout, from);
}

/// Begins a survey. Answers that are still under way belong to an older survey.
void Readouts::begin_survey(Readout& readout, std::uint64_t from) {
  readout.from = from;
  readout.surveyed = false;
  readout.next_ask_ns = 0;
  readout.named = 0;
  ++readout.survey;
}

bool Readouts::surveyed() const {
  return std::ranges::all_of(readouts_,
                             [&](const Readout& readout) { return readout.surveyed || !clears_.lives(readout.number); });
}

bool Readouts::all_ended() const {
  bool some = false;
  for (const Readout& readout : readouts_) {
    // A readout that has ended may be gone before its last survey, and then holds nothing more.
    if (clears_.lives(readout.number) && (!readout.ended || (readout.connected && !readout.surveyed))) return false;
    some = some || readout.connections > 0;
  }
  return some;
}

std::vector<SupervisedReadout> Readouts::status() const {
  std::vector<SupervisedReadout> out;
  for (const Readout& readout : readouts_)
    out.push_back({.name = readout.name,
                   .connected = readout.connected,
                   .lives = clears_.lives(readout.number),
                   .ended = readout.ended,
                   .behind = clears_.behind(readout.number),
                   .answered = readout.answered,
                   .trouble = readout.connected ? "" : requester_.trouble(readout.service)});
  return out;
}

std::vector<NamedCounter> Readouts::counters() const {
  return base::named_counters(counters_, kReadoutsCounters, [](ReadoutsCounter) { return true; });
}

}  // namespace rodeo::farm
