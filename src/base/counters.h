// Pulled per-thread counters: each thread writes its own block with plain stores, and a reader adds up all blocks
// (felixcore-statistics-slides: separate atomics, pull).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/spsc_ring.h"

namespace rodeo::base {

/// The description of a counter, declared beside the code that counts.
struct CounterInfo {
  std::string_view name;  ///< snake_case
  std::string_view unit;  ///< "chunks", "bytes", "fragments"
  std::string_view help;  ///< one sentence
};

/// One thread's block of counters, on cache lines of its own. Only the owner calls add() and raise(); any thread reads.
/// `Enum` has a last value `count`.
template <typename Enum>
class alignas(kCacheLine) CounterBlock {
 public:
  static constexpr std::size_t kCount = static_cast<std::size_t>(Enum::count);

  void add(Enum counter, std::uint64_t n = 1) {
    auto& cell = cells_[static_cast<std::size_t>(counter)];
    cell.store(cell.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  std::uint64_t read(Enum counter) const {
    return cells_[static_cast<std::size_t>(counter)].load(std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<std::uint64_t>, kCount> cells_{};
};

/// A cell with one writer and many readers: writing is a plain store.
template <typename T>
class Gauge {
 public:
  void set(T value) { cell_.store(value, std::memory_order_relaxed); }
  void add(T value) { set(get() + value); }
  T get() const { return cell_.load(std::memory_order_relaxed); }

 private:
  std::atomic<T> cell_{};
};

}  // namespace rodeo::base
