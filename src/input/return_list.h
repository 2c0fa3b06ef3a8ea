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

/// The pages of a stream: its worker takes one and puts it aside again, any thread gives it back.
template <typename T>
class FreeList {
 public:
  T* take() {
    if (own_ == nullptr) own_ = returned_.take_all();
    T* const item = own_;
    if (item != nullptr) own_ = item->next_free;
    return item;
  }
  void put(T& item) {
    item.next_free = own_;
    own_ = &item;
  }
  void give_back(T& item) noexcept { returned_.push(item); }

 private:
  T* own_ = nullptr;
  ReturnList<T> returned_;
};

}  // namespace rodeo::input
