// Single-producer, single-consumer ring: hands values from exactly one thread to exactly one other without a lock.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <memory>
#include <utility>

namespace rodeo::base {

inline constexpr std::size_t kCacheLine = 64;

/// Fixed capacity, rounded up to a power of two, at least 2; allocated at construction. When full, try_push() returns false
/// and the value stays with the caller. One thread calls try_push(), one other try_pop(). T is default-constructible and
/// move-assignable; a slot keeps the moved-from value after a pop.
template <typename T>
class SpscRing {
 public:
  explicit SpscRing(std::size_t capacity)
      : mask_(std::bit_ceil(capacity < 2 ? std::size_t{2} : capacity) - 1), slots_(std::make_unique<T[]>(mask_ + 1)) {}

  [[nodiscard]] bool try_push(T&& value) {
    const std::size_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - cached_head_ > mask_) {
      cached_head_ = head_.load(std::memory_order_acquire);
      if (tail - cached_head_ > mask_) return false;
    }
    slots_[tail & mask_] = std::move(value);
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }

  [[nodiscard]] bool try_pop(T& value) {
    const std::size_t head = head_.load(std::memory_order_relaxed);
    if (head == cached_tail_) {
      cached_tail_ = tail_.load(std::memory_order_acquire);
      if (head == cached_tail_) return false;
    }
    value = std::move(slots_[head & mask_]);
    head_.store(head + 1, std::memory_order_release);
    return true;
  }

  /// An estimate, never more than the capacity. Any thread.
  std::size_t size() const {
    // Read the head first, so that the tail is not behind it.
    const std::size_t head = head_.load(std::memory_order_acquire);
    return std::min(tail_.load(std::memory_order_acquire) - head, mask_ + 1);
  }

 private:
  const std::size_t mask_;
  const std::unique_ptr<T[]> slots_;
  alignas(kCacheLine) std::atomic<std::size_t> tail_{0};
  std::size_t cached_head_ = 0;  // the producer's last reading, when the ring seemed full
  alignas(kCacheLine) std::atomic<std::size_t> head_{0};
  std::size_t cached_tail_ = 0;  // the consumer's last reading, when the ring seemed empty
};

}  // namespace rodeo::base
