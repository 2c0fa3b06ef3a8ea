#include "input/generator.h"

#include <algorithm>

namespace rodeo::input {
namespace {

constexpr int kBatchesPerCall = 16;
// A longer time between two calls is a stall of this process (stopped, or without a CPU), not of the readout.
constexpr std::uint64_t kStall = 10'000'000;
constexpr std::uint64_t kClockStep = 2'000'000;  // step of an idle clock: event time-outs need a moving clock

}  // namespace

Generator::Generator(GeneratorSettings settings)
    : settings_(std::move(settings)),
      provable_(settings_.seed, settings_.crc, settings_.l1id_bits),
      plan_({.rate_hz = settings_.rate_hz,
             .random = settings_.random,
             .seed = settings_.seed,
             .limit = settings_.events,
             .ecr_triggers = settings_.ecr_triggers,
             .ecr_period = settings_.ecr_period}),
      history_(run_period(settings_) + settings_.faults.lag_by + trigger_batch(settings_) + 2),
      period_(run_period(settings_)),
      batch_(trigger_batch(settings_)),
      flush_ns_(static_cast<std::uint64_t>(settings_.flush.count())) {}

PagedStream& Generator::add_stream(std::span<const LinkIndex> positions) {
  feeds_.push_back(std::make_unique<LinkFeed>(settings_, history_, counters_, positions));
  return feeds_.back()->stream();
}

PagedStream& Generator::add_trigger_list() {
  lists_.push_back(std::make_unique<TriggerListFeed>());
  return lists_.back()->stream();
}

void Generator::start(std::uint64_t now_ns) {
  plan_.start(now_ns);
  last_call_ns_ = now_ns;
  publish(now_ns - 1);  // the first trigger may be due now
}

std::uint64_t Generator::advance(std::uint64_t now_ns) {
  if (now_ns - last_call_ns_ > kStall) patience_ns_ += now_ns - last_call_ns_;
  last_call_ns_ = now_ns;
  bool refused = false;
  // With a trigger list, one batch a call: data and list share one clock reading per call, and the reader compares the two.
  const int batches = lists_.empty() ? kBatchesPerCall : 1;
  for (int round = 0; round < batches && !plan_.exhausted(); ++round) {
    if (plan_.paced() && plan_.due_ns() > now_ns) break;
    const std::uint64_t time = plan_.paced() ? plan_.due_ns() : now_ns;
    const std::uint64_t flush_at = oldest_pending_ns() + flush_ns_;
    if (flushed_ < plan_.accepted() && flush_at < time) flush(flush_at);
    if (busy()) {
      // Triggers that are overdue because of a stall wait: the readout was not busy then, and gets all of them in the end.
      counters_.add(GeneratorCounter::vetoed, plan_.refuse_until(now_ns - patience_ns_));
      refused = true;
      break;
    }
    const std::uint64_t first = plan_.accepted();
    const std::uint64_t end = accept_batch(now_ns, oldest_pending_ns() + flush_ns_);
    for (const auto& list : lists_) list->send(history_, first, end);
    for (const auto& feed : feeds_) feed->send(first, end);
  }
  const bool more = !refused && !plan_.exhausted() && plan_.due_ns() <= now_ns;
  const std::uint64_t accepted = plan_.accepted();
  const bool waiting = plan_.paced() && !plan_.exhausted() && plan_.due_ns() <= now_ns;
  const std::uint64_t processed = waiting ? plan_.due_ns() - 1 : now_ns;
  patience_ns_ = waiting ? std::min(patience_ns_, now_ns - plan_.due_ns()) : 0;
  // While this thread waits for memory, pending chunks may keep the memory's events open, so the flush uses the true time.
  const std::uint64_t waited_to = refused ? now_ns : processed;
  if (flushed_ < accepted && (plan_.exhausted() || oldest_pending_ns() + flush_ns_ <= waited_to)) flush(processed);
  for (const auto& feed : feeds_) feed->send_late(processed, false);
  publish(processed);
  if (more) return now_ns;
  std::uint64_t next = now_ns + kClockStep;
  if (!plan_.exhausted() && plan_.paced()) next = std::min(next, plan_.due_ns());
  if (flushed_ < accepted) next = std::min(next, oldest_pending_ns() + flush_ns_);
  return std::max(next, now_ns + 1);
}

void Generator::end_offering(std::uint64_t end_ns) {
  if (!behind(end_ns)) return;
  const std::uint64_t overdue = plan_.refuse_until(end_ns);
  counters_.add(GeneratorCounter::vetoed, overdue);
  counters_.add(GeneratorCounter::overdue, overdue);
}

bool Generator::exhausted() const {
  return plan_.exhausted() &&
         std::none_of(feeds_.begin(), feeds_.end(), [](const auto& feed) { return feed->holds_late_chunks(); });
}

bool Generator::busy() {
  return std::any_of(feeds_.begin(), feeds_.end(), [](const auto& feed) { return feed->busy(); }) ||
         std::any_of(lists_.begin(), lists_.end(), [](const auto& list) { return list->busy(); });
}

// Accepts due triggers, at most a batch, and none after the next flush time; but at least one trigger.
std::uint64_t Generator::accept_batch(std::uint64_t now_ns, std::uint64_t flush_at_ns) {
  const std::uint64_t end = plan_.accepted() + batch_;
  do {
    const std::uint64_t time = plan_.paced() ? plan_.due_ns() : now_ns;
    const std::uint64_t trigger = plan_.accepted();
    const L1Id l1id = plan_.accept(time);
    history_[trigger] = {provable_.header(l1id), time, l1id};
  } while (plan_.accepted() < end && !plan_.exhausted() && plan_.due_ns() <= std::min(now_ns, flush_at_ns));
  counters_.add(GeneratorCounter::triggers, plan_.accepted() + batch_ - end);
  return plan_.accepted();
}

// Every link has sent all triggers up to the end of its last run, which is at most a period ago. A lagging link is a fault,
// and does not count here.
std::uint64_t Generator::oldest_pending_ns() const {
  const std::uint64_t accepted = plan_.accepted();
  const std::uint64_t oldest = std::max(flushed_, accepted >= period_ ? accepted - period_ : 0);
  return oldest < accepted ? history_[oldest].time_ns : ~std::uint64_t{0} / 2;
}

void Generator::flush(std::uint64_t time_ns) {
  bool all = true;
  for (const auto& feed : feeds_) all = feed->flush(plan_.accepted(), false) && all;
  if (!all) return;
  flushed_ = plan_.accepted();
  for (const auto& feed : feeds_) feed->stream().set_page_clock(time_ns);
}

void Generator::publish(std::uint64_t processed_ns) {
  const std::uint64_t oldest = oldest_pending_ns();
  const std::uint64_t clock = oldest <= processed_ns ? oldest - 1 : processed_ns;
  for (const auto& list : lists_) list->publish(processed_ns);
  for (const auto& feed : feeds_) {
    feed->stream().close_page();
    feed->stream().advance_clock(clock);
  }
}

bool Generator::finish(std::uint64_t now_ns) {
  bool all = true;
  for (const auto& feed : feeds_) {
    const bool sent = feed->flush(plan_.accepted(), true) && feed->send_late(now_ns, true);
    feed->stream().close_page();
    all = all && sent;
  }
  if (!all) return false;
  flushed_ = plan_.accepted();
  for (const auto& list : lists_) list->publish(now_ns);
  for (const auto& list : lists_) list->stream().end();
  for (const auto& feed : feeds_) {
    feed->stream().advance_clock(now_ns);
    feed->stream().end();
  }
  return true;
}

std::uint64_t Generator::chunks_sent() const {
  std::uint64_t sum = 0;
  for (const auto& feed : feeds_) sum += feed->stream().chunks_sent();
  return sum;
}

std::uint64_t Generator::bytes_sent() const {
  std::uint64_t sum = 0;
  for (const auto& feed : feeds_) sum += feed->stream().bytes_sent();
  return sum;
}

}  // namespace rodeo::input
