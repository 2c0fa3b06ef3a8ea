#include "input/card_spans.h"

#include <algorithm>

namespace rodeo::input {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kLongestStep = kMillisecond;  // longest step of the clock, also after a long time without polling
constexpr std::uint64_t kFlowing = 5 * kMillisecond;  // after this time without data the clock stops
constexpr std::uint64_t kPatience = 1000 * kMillisecond;   // after this time without data the clock runs again
constexpr std::uint64_t kLongestLook = 20 * kMillisecond;  // the longest time that a pause between two looks adds to silence
constexpr std::uint64_t kLongestPause = 100 * kMillisecond;  // the longest time that such a pause adds to a stop
constexpr int kSpansPerPump = 64;

}  // namespace

CardSpans::CardSpans(std::unique_ptr<SpanSource> source) : source_(std::move(source)) {}

Result<void> CardSpans::start() {
  auto started = source_->start();
  // Set only after start(): the source allows one caller at a time, and workers poll as soon as they live.
  if (started) started_.store(true, std::memory_order_release);
  return started;
}

void CardSpans::stop(std::uint64_t quiet_ns, std::uint64_t limit_ns) {
  quiet_ns_ = quiet_ns;
  limit_ns_ = limit_ns;
  stop_asked_.store(true, std::memory_order_release);
  // A card that never started (or failed to) has no data, and no worker pumps it.
  if (!started_.load(std::memory_order_acquire)) ended_.store(true, std::memory_order_release);
}

void CardSpans::pump(std::uint64_t now_ns) {
  if (!started_.load(std::memory_order_acquire) || ended() || pumping_.test_and_set(std::memory_order_acquire)) return;
  const std::uint64_t published = published_.load(std::memory_order_relaxed);
  while (returned_ < published && slots_[returned_ & kMask].pending.load(std::memory_order_acquire) == 0) {
    held_bytes_.set(held_bytes_.get() - slots_[returned_ & kMask].span.bytes.size());
    source_->give_back();
    ++returned_;
  }
  const Fetched fetched = fetch(now_ns);
  // A long pause is the fault of this process or the machine, not silence of the card.
  const std::uint64_t passed = last_look_ns_ == 0 ? 0 : now_ns - std::min(now_ns, last_look_ns_);
  nothing_ns_.set(fetched == Fetched::nothing ? nothing_ns_.get() + std::min(passed, kLongestLook) : 0);
  if (!ended() && stop_asked_.load(std::memory_order_acquire)) {
    stopping_ns_ += std::min(passed, kLongestPause);
    silent_ns_ = fetched == Fetched::nothing ? silent_ns_ + std::min(passed, kLongestLook) : 0;
    if (source_stopped_) {
      if (fetched == Fetched::nothing) ended_.store(true, std::memory_order_release);
    } else if (silent_ns_ >= quiet_ns_) {
      stop_source();
    } else if (stopping_ns_ >= limit_ns_) {
      cut_off_ = true;
      stop_source();
    }
  }
  last_look_ns_ = std::max(last_look_ns_, now_ns);
  pumping_.clear(std::memory_order_release);
}

// Stops the source. The next fetch gets the data that the source had filled.
void CardSpans::stop_source() {
  source_stopped_ = true;
  if (auto stopped = source_->stop(); !stopped) {
    failure_ = std::move(stopped.error());
    ended_.store(true, std::memory_order_release);
  }
}

CardSpans::Fetched CardSpans::fetch(std::uint64_t now_ns) {
  std::uint64_t published = published_.load(std::memory_order_relaxed);
  bool data = false;
  for (int i = 0; i < kSpansPerPump && published - returned_ < kSlots; ++i) {
    auto next = source_->next();
    if (!next) {
      failure_ = std::move(next.error());
      ended_.store(true, std::memory_order_release);
      return Fetched::nothing;
    }
    if (!*next) break;
    Slot& slot = slots_[published & kMask];
    slot.span = **next;
    slot.pending.store(walkers_, std::memory_order_relaxed);
    held_bytes_.add(slot.span.bytes.size());
    bytes_.add(slot.span.bytes.size());
    published_.store(++published, std::memory_order_release);
    data = true;
  }
  const bool full = published - returned_ >= kSlots;
  advance_clock(now_ns, data);
  return data ? Fetched::data : full ? Fetched::no_room : Fetched::nothing;
}

void CardSpans::advance_clock(std::uint64_t now_ns, bool data) {
  const std::uint64_t elapsed = last_pump_ns_ == 0 ? 0 : now_ns - std::min(now_ns, last_pump_ns_);
  last_pump_ns_ = std::max(last_pump_ns_, now_ns);
  unheard_ns_ = data ? 0 : unheard_ns_ + std::min(elapsed, kLongestLook);
  if (clock_ns_.load(std::memory_order_relaxed) == 0) {
    clock_ns_.store(now_ns, std::memory_order_release);
    return;
  }
  // The time counts only while the workers poll: silence without polling, or without an answer of the card, is not the
  // card's silence.
  if (unheard_ns_ > kFlowing && unheard_ns_ < kPatience) return;
  clock_ns_.store(clock_ns_.load(std::memory_order_relaxed) + std::min(elapsed, kLongestStep), std::memory_order_release);
}

}  // namespace rodeo::input
