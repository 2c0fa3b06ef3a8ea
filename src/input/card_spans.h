// The memory that a card fills, walked by several workers: each takes its own links from the same spans, and memory goes back to the card
// at the slowest worker's position.
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

/// What a DMA channel is to its reader: an ordered sequence of spans. One caller at a time.
class SpanSource {
 public:
  virtual ~SpanSource() = default;
  /// Lets the card fill memory.
  virtual Result<void> start() = 0;
  /// Ends the filling; what is filled by then still comes from next().
  /// An Error says that what it still had may be lost.
  virtual Result<void> stop() = 0;
  /// The next filled span, without blocking; nothing if there is none yet. An Error ends the input.
  virtual Result<std::optional<CardSpan>> next() = 0;
  /// The oldest span that was not given back yet goes back to the card.
  virtual void give_back() = 0;
  /// After stop(): packets (pages, blocks) that the card itself says it has lost since start(), where it counts them.
  virtual std::uint64_t lost_packets() const { return 0; }
  /// Bytes that the card may fill, all together.
  virtual std::uint64_t memory_bytes() const = 0;
};

/// A ring of spans between one source and its walkers. Walkers are the workers' threads; any of them that finds nothing new asks the
/// source for more, one at a time. A full ring leaves data where they are: the card, and at last the trigger, wait.
class CardSpans {
 public:
  explicit CardSpans(std::unique_ptr<SpanSource> source);

  /// Before start(): one more walker that will pass every span.
  void add_walker() { ++walkers_; }
  /// Workers may walk before; there is nothing for them until it has returned.
  Result<void> start();

  struct Slot {
    CardSpan span;
    std::atomic<std::uint32_t> pending{0};  ///< walkers that have not passed it, and pages that point into it
  };

  /// The span with this number, or nullptr if it has not come yet. Any walker.
  Slot* at(std::uint64_t number) {
    return number < published_.load(std::memory_order_acquire) ? &slots_[number & kMask] : nullptr;
  }
  /// A walker has passed it, or a page that pointed into it is gone. Any thread.
  static void let_go(Slot& slot) { slot.pending.fetch_sub(1, std::memory_order_release); }
  static void keep(Slot& slot) { slot.pending.fetch_add(1, std::memory_order_relaxed); }

  /// Gives back what everybody has let go of and fetches what is new. Returns at once if another walker is doing so.
  /// `now_ns` is a steady time read before the call.
  void pump(std::uint64_t now_ns);

  /// The application: no more data are wanted. What the card has filled is still fetched. The source is stopped when it had
  /// nothing for `quiet_ns`, at the latest after `limit_ns`; ended() becomes true when what it had filled until then is
  /// published. Both times are spent looking: longer than 20 ms between two looks counts as 20 ms of silence (100 ms of the
  /// limit), and a ring that is full is no silence.
  void stop(std::uint64_t quiet_ns, std::uint64_t limit_ns);
  /// It was still bringing data when `limit_ns` was over: what it had not written by then is not here. After ended().
  bool cut_off() const { return cut_off_; }
  /// True once no span will come after the published ones.
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  std::uint64_t published() const { return published_.load(std::memory_order_acquire); }

  /// Time up to which everything that the card has written is published. It follows the steady clock while data come; when all of
  /// them stop it waits for a second of looking (longer than 20 ms between two looks counts as 20 ms) before it goes on, and it never leaps: a
  /// card that stands still as a whole loses nothing.
  std::uint64_t clock_ns() const { return clock_ns_.load(std::memory_order_acquire); }

  /// Share of the card's memory that is published and not given back, 0 to 1. Any thread.
  double memory_fill() const {
    return static_cast<double>(held_bytes_.get()) / static_cast<double>(source_->memory_bytes());
  }
  std::uint64_t bytes() const { return bytes_.get(); }
  /// For how long the card has had nothing, of looking (longer than 20 ms between two looks counts as 20 ms). Any thread.
  std::uint64_t nothing_for_ns() const { return nothing_ns_.get(); }
  /// See SpanSource; after ended().
  std::uint64_t lost_packets() const { return source_->lost_packets(); }
  /// What ended the input before its time; after ended().
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

  // Of whoever pumps.
  alignas(64) std::atomic_flag pumping_;
  std::uint64_t returned_ = 0;
  std::uint64_t last_pump_ns_ = 0;
  std::uint64_t unheard_ns_ = 0;  // of looking, since the last data
  std::uint64_t last_look_ns_ = 0;
  std::uint64_t silent_ns_ = 0;    // of looking, since the last data
  std::uint64_t stopping_ns_ = 0;  // of looking, since a stop was asked for
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
