// Epochs: how extended L1 ids, whose L1 part restarts at every event counter reset, become one increasing sequence.
//
// An epoch is the time between two resets. Within it, sequence = base + L1 id (unwrapped where the counter is narrow or wraps). The
// first link that crosses a reset opens the next epoch for everybody, a gap above the highest event that anyone has seen, so that
// events of the old epoch which that link has lost still have their own numbers. Numbers in the gap that nobody delivers are void:
// they are passed over and never built.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>

#include "base/spsc_ring.h"
#include "rodeo/ids.h"

namespace rodeo::readout {

struct Epoch {
  std::uint64_t resets = 0;  ///< unwrapped ECR counter; its low 8 bits are what the extended L1 id carries
  Sequence base = 0;         ///< sequence number of L1 id 0
  Sequence first = 0;        ///< lowest sequence number that belongs to this epoch
  Sequence begin = 0;        ///< of the event that told of it

  L1Id l1id(Sequence sequence) const {
    return L1Id::of(static_cast<std::uint32_t>(resets & 0xff), static_cast<std::uint32_t>(sequence - base));
  }
};

/// How far a worker has come; written by it alone, read by its peers.
struct alignas(base::kCacheLine) WorkerProgress {
  std::atomic<Sequence> head{0};    ///< highest sequence number opened
  std::atomic<Sequence> passed{0};  ///< every number up to here is published
  std::atomic<bool> busy{false};    ///< its last look at its input found a page
  std::atomic<bool> ended{false};   ///< its stream has ended and all is published
  std::atomic<std::uint32_t> active_links{0};
  std::atomic<std::uint32_t> links_ahead{0};  ///< links whose ids have left the window
  std::atomic<std::uint32_t> links_near{
      0};                           ///< links that were in the window at its last look at the clock; all before that
  std::atomic<Sequence> first{0};   ///< where its foremost link was at its last look at the clock
  std::atomic<Sequence> second{0};  ///< and the one behind that
};

/// Shared by the workers of one builder. Locked: it is asked where a link begins, jumps or crosses a reset, not where
/// it goes on.
class EpochMap {
 public:
  /// `gap`: numbers left free before a new epoch; also how far below the very first event others may begin. `on_start` is called
  /// once, under the lock, with the lowest number of the run.
  EpochMap(std::uint64_t gap, std::span<const WorkerProgress> workers, std::function<void(Sequence)> on_start)
      : gap_(gap), workers_(workers), on_start_(std::move(on_start)) {}

  std::uint64_t gap() const { return gap_; }

  /// The newest epoch; nothing before the first event of the run.
  std::optional<Epoch> newest() const;

  /// The epoch that this number belongs to; the oldest that is remembered for what lies before.
  Epoch at(Sequence sequence) const;

  /// The lowest sequence number of the run; nothing before its first event.
  std::optional<Sequence> run_first() const;

  /// Defines the first epoch by the first event of the run, unless somebody has: then returns theirs.
  Epoch start(std::uint32_t ecr, std::uint32_t l1);

  /// The first epoch after this reset count, if anybody has opened it: what belongs to an older one lies below its `first`.
  std::optional<Epoch> after(std::uint64_t resets) const;

  /// Epochs ever opened; for workers that look whether a peer has opened one. Not locked.
  std::size_t opened() const { return opened_.load(std::memory_order_acquire); }

  /// The epoch with this unwrapped reset count, if anybody has opened it and it is not forgotten.
  std::optional<Epoch> find(std::uint64_t resets) const;

  /// The epoch with this reset count; opened above everything that any worker has seen if it is new. `first_l1` is the L1 id of
  /// the chunk that tells of it.
  Epoch open(std::uint64_t resets, std::uint32_t first_l1);

 private:
  static constexpr std::size_t kRemembered = 64;  // a worker may be a whole window behind its peers

  mutable std::mutex mutex_;
  std::array<Epoch, kRemembered> epochs_{};
  std::size_t count_ = 0;  // epochs ever opened
  std::atomic<std::size_t> opened_{0};
  Sequence run_first_ = 0;
  Sequence highest_ = 0;  // of any event that an epoch was opened with
  const std::uint64_t gap_;
  const std::span<const WorkerProgress> workers_;
  const std::function<void(Sequence)> on_start_;
};

}  // namespace rodeo::readout
