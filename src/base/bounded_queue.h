// Bounded queue for many producers and many consumers: each fragment consumer has one in front of it.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include "base/spsc_ring.h"

namespace rodeo::base {

/// Fixed capacity (rounded up to a power of two), allocated at construction; first in first out per producer. A full queue
/// refuses a push: try_push returns false, and the value stays with the caller. An empty queue refuses a pop. The caller
/// decides how to wait. Each slot carries a ticket that gives its next user, so producers and consumers contend only for the
/// slot they share. There is no lock, but a thread that is stopped inside try_push or try_pop holds its slot: until it
/// continues, the queue looks full or empty to threads that reach this slot.
template <typename T>
class BoundedQueue {
  static_assert(std::is_nothrow_move_assignable_v<T>,
                "a thread that throws while it holds a slot would hold the slot for ever");

 public:
  explicit BoundedQueue(std::size_t capacity)
      : mask_(std::bit_ceil(capacity < 2 ? std::size_t{2} : capacity) - 1), slots_(std::make_unique<Slot[]>(mask_ + 1)) {
    for (std::size_t i = 0; i <= mask_; ++i) slots_[i].ticket.store(i, std::memory_order_relaxed);
  }

  bool try_push(T&& value) {
    std::size_t at = tail_.load(std::memory_order_relaxed);
    for (;;) {
      Slot& slot = slots_[at & mask_];
      const std::size_t ticket = slot.ticket.load(std::memory_order_acquire);
      if (ticket == at) {
        if (tail_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) {
          slot.value = std::move(value);
          slot.ticket.store(at + 1, std::memory_order_release);
          return true;
        }
      } else if (static_cast<std::ptrdiff_t>(ticket - at) < 0) {
        return false;
      } else {
        at = tail_.load(std::memory_order_relaxed);
      }
    }
  }

  bool try_pop(T& value) {
    std::size_t at = head_.load(std::memory_order_relaxed);
    for (;;) {
      Slot& slot = slots_[at & mask_];
      const std::size_t ticket = slot.ticket.load(std::memory_order_acquire);
      if (ticket == at + 1) {
        if (head_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) {
          value = std::move(slot.value);
          slot.ticket.store(at + mask_ + 1, std::memory_order_release);
          return true;
        }
      } else if (static_cast<std::ptrdiff_t>(ticket - (at + 1)) < 0) {
        return false;
      } else {
        at = head_.load(std::memory_order_relaxed);
      }
    }
  }

  /// An estimate while others push and pop, never more than the capacity.
  std::size_t size() const {
    const std::size_t head = head_.load(std::memory_order_acquire);
    const std::size_t tail = tail_.load(std::memory_order_acquire);
    return tail > head ? std::min(tail - head, capacity()) : 0;
  }
  std::size_t capacity() const { return mask_ + 1; }

 private:
  struct Slot {
    std::atomic<std::size_t> ticket{0};
    T value{};
  };

  const std::size_t mask_;
  const std::unique_ptr<Slot[]> slots_;
  alignas(kCacheLine) std::atomic<std::size_t> tail_{0};
  alignas(kCacheLine) std::atomic<std::size_t> head_{0};
};

}  // namespace rodeo::base
