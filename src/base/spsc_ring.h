// Single-producer, single-consumer ring: hands values from exactly one thread to exactly one other without a lock.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <memory>
#include <utility>

namespace rodeo::base {

inline constexpr std::size_t kCacheLine = 64;

/// Fixed capacity (rounded up to a power of two), allocated at construction. When full, try_push() returns false and the value
/// stays with the caller. One thread calls try_push(), one other try_pop(); size() may be called by any, as an estimate.
template <typename T>
class SpscRing {
 public:
  explicit SpscRing(std::size_t capacity)
      : mask_(std::bit_ceil(capacity < 2 ? std::size_t{2} : capacity) - 1), slots_(std::make_unique<T[]>(mask_ + 1)) {}

  bool try_push(T&& value) {
    const std::size_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - known_head_ > mask_) {
      known_head_ = head_.load(std::memory_order_acquire);
      if (tail - known_head_ > mask_) return false;
    }
    slots_[tail & mask_] = std::move(value);
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }

  bool try_pop(T& value) {
    const std::size_t head = head_.load(std::memory_order_relaxed);
    if (head == known_tail_) {
      known_tail_ = tail_.load(std::memory_order_acquire);
      if (head == known_tail_) return false;
    }
    value = std::move(slots_[head & mask_]);
    head_.store(head + 1, std::memory_order_release);
    return true;
  }

  std::size_t size() const {
    const std::size_t head = head_.load(std::memory_order_acquire);
    const std::size_t tail = tail_.load(std::memory_order_acquire);
    return tail > head ? tail - head : 0;
  }
  std::size_t capacity() const { return mask_ + 1; }

 private:
  const std::size_t mask_;
  const std::unique_ptr<T[]> slots_;
  alignas(kCacheLine) std::atomic<std::size_t> tail_{0};
  std::size_t known_head_ = 0;  // producer's copy
  alignas(kCacheLine) std::atomic<std::size_t> head_{0};
  std::size_t known_tail_ = 0;  // consumer's copy
};

}  // namespace rodeo::base
