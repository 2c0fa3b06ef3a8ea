// The memory that a card fills, read by several workers. Each takes its own links from the same spans. Memory returns to the
// card at the slowest worker's position.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/counters.h"
#include "base/error.h"
#include "rodeo/card.h"

namespace rodeo::input {

/// A DMA channel as its reader sees it: an ordered sequence of spans. One caller at a time.
class SpanSource {
 public:
  virtual ~SpanSource() = default;
  /// Lets the card fill memory.
  virtual Result<void> start() = 0;
  /// Stops the filling; next() still returns the spans filled until then.
  /// An Error means that data not yet read may be lost.
  virtual Result<void> stop() = 0;
  /// The next filled span, without blocking; nothing if no span is filled. An Error ends the input.
  virtual Result<std::optional<CardSpan>> next() = 0;
  /// Returns the oldest span to the card that has not been returned yet.
  virtual void give_back() = 0;
  /// After stop(): packets (pages, blocks) that the card reports as lost since start(), if it counts them.
  virtual std::uint64_t lost_packets() const { return 0; }
  /// Bytes of all memory that the card may fill.
  virtual std::uint64_t memory_bytes() const = 0;
};

/// A ring of spans between one source and its walkers. Walkers are the workers' threads. A walker that finds nothing new
/// asks the source for more, one walker at a time. If the ring is full, data stay with the card; at last the card is busy
/// and the trigger waits.
class CardSpans {
 public:
  explicit CardSpans(std::unique_ptr<SpanSource> source);

  /// Adds a walker that will pass every span. Before start().
  void add_walker() { ++walkers_; }
  /// Starts the source. Workers may poll earlier; they find nothing until start() has returned.
  Result<void> start();

  struct Slot {
    CardSpan span;
    std::atomic<std::uint32_t> pending{0};  ///< walkers that have not passed the span, and pages that point into it
  };

  /// The span with this number, or nullptr if it has not arrived. Any walker.
  Slot* at(std::uint64_t number) {
    return number < published_.load(std::memory_order_acquire) ? &slots_[number & kMask] : nullptr;
  }
  /// Says that a walker has passed the span, or has dropped a page that pointed into it. Any thread.
  static void release(Slot& slot) { slot.pending.fetch_sub(1, std::memory_order_release); }
  static void keep(Slot& slot) { slot.pending.fetch_add(1, std::memory_order_relaxed); }

  /// Returns spans that are no longer used to the card, and fetches new ones. Returns at once if another walker does it.
  /// `now_ns` is a steady time read before the call.
  void pump(std::uint64_t now_ns);

  /// For the application: asks for the end. Data that the card has filled are still fetched. The source is stopped after
  /// `quiet_ns` without data, at the latest after `limit_ns`. ended() becomes true when the data filled until then are
  /// published. Both times count polling: a pause of more than 20 ms counts as 20 ms of silence (more than 100 ms: as 100 ms
  /// of the limit). Time with a full ring is not silence.
  void stop(std::uint64_t quiet_ns, std::uint64_t limit_ns);
  /// True if data still came when `limit_ns` was over; data that the card wrote later are lost. Valid after ended().
  bool cut_off() const { return cut_off_; }
  /// True once no more spans follow the published ones.
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  std::uint64_t published() const { return published_.load(std::memory_order_acquire); }

  /// The time up to which all data that the card has written are published. The clock follows the steady clock while data
  /// come. When they stop, the clock stops for a second of polling (a pause of more than 20 ms counts as 20 ms), then runs
  /// again. It never leaps, so a card that stands still as a whole loses nothing.
  std::uint64_t clock_ns() const { return clock_ns_.load(std::memory_order_acquire); }

  /// Share of the card's memory that is published and not yet returned, 0 to 1. Any thread.
  double memory_fill() const {
    return static_cast<double>(held_bytes_.get()) / static_cast<double>(source_->memory_bytes());
  }
  std::uint64_t bytes() const { return bytes_.get(); }
  /// Time without data from the card, in polling time (a pause of more than 20 ms counts as 20 ms). Any thread.
  std::uint64_t nothing_for_ns() const { return nothing_ns_.get(); }
  /// See SpanSource; valid after ended().
  std::uint64_t lost_packets() const { return source_->lost_packets(); }
  /// The reason why the source ended early; valid after ended().
  const std::optional<Error>& failure() const { return failure_; }

 private:
  static constexpr std::uint64_t kSlots = 4096;
  static constexpr std::uint64_t kMask = kSlots - 1;

  enum class Fetched : std::uint8_t { data, nothing, no_room };
  Fetched fetch(std::uint64_t now_ns);
  void stop_source();
  void advance_clock(std::uint64_t now_ns, bool data);

  std::unique_ptr<SpanSource> source_;
  std::uint32_t walkers_ = 0;
  std::vector<Slot> slots_{kSlots};
  alignas(64) std::atomic<std::uint64_t> published_{0};
  std::atomic<std::uint64_t> clock_ns_{0};
  std::atomic<bool> started_{false};
  std::atomic<bool> ended_{false};

  // For the thread that pumps:
  alignas(64) std::atomic_flag pumping_;
  std::uint64_t returned_ = 0;
  std::uint64_t last_pump_ns_ = 0;
  std::uint64_t unheard_ns_ = 0;  // polling time since the last data
  std::uint64_t last_look_ns_ = 0;
  std::uint64_t silent_ns_ = 0;    // polling time since the last data, during a stop
  std::uint64_t stopping_ns_ = 0;  // polling time since a stop was asked for
  bool source_stopped_ = false;
  bool cut_off_ = false;
  std::optional<Error> failure_;
  base::Gauge<std::uint64_t> held_bytes_;
  base::Gauge<std::uint64_t> bytes_;
  base::Gauge<std::uint64_t> nothing_ns_;

  std::atomic<bool> stop_asked_{false};
  std::uint64_t quiet_ns_ = 0;
  std::uint64_t limit_ns_ = 0;
};

}  // namespace rodeo::input
