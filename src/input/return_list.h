// The lock-free way back of pages: any thread returns one, the owner takes all.
#pragma once

#include <atomic>

namespace rodeo::input {

/// T has a member `T* next_free`. Because the list is only ever taken whole, a plain push cannot meet the ABA problem.
template <typename T>
class ReturnList {
 public:
  /// Any thread.
  void push(T& item) noexcept {
    item.next_free = head_.load(std::memory_order_relaxed);
    while (!head_.compare_exchange_weak(item.next_free, &item, std::memory_order_release, std::memory_order_relaxed)) {
    }
  }

  bool empty() const { return head_.load(std::memory_order_relaxed) == nullptr; }

  /// The owner. The last one returned comes first.
  T* take_all() { return head_.exchange(nullptr, std::memory_order_acquire); }

 private:
  alignas(64) std::atomic<T*> head_{nullptr};
};

}  // namespace rodeo::input
