// Free pages. The owner takes them; any thread returns them without a lock.
#pragma once

#include <atomic>
#include <cstddef>

namespace rodeo::input {

/// T has a member `T* next_free`. The page that came back last is taken first, so that its memory is still in the cache.
/// Returned pages are always collected all at once, so a plain push has no ABA problem.
template <typename T>
class FreeList {
 public:
  // For the owner.

  /// The next free page; nullptr if all are in use.
  T* acquire() {
    collect();
    T* const item = own_;
    if (item == nullptr) return nullptr;
    own_ = item->next_free;
    --count_;
    return item;
  }
  void put(T& item) {
    item.next_free = own_;
    own_ = &item;
    ++count_;
  }
  bool at_least(std::size_t count) {
    if (count_ < count) collect();
    return count_ >= count;
  }

  /// Any thread.
  void give_back(T& item) noexcept {
    item.next_free = returned_.load(std::memory_order_relaxed);
    while (!returned_.compare_exchange_weak(item.next_free, &item, std::memory_order_release, std::memory_order_relaxed)) {
    }
  }

 private:
  void collect() {
    if (returned_.load(std::memory_order_relaxed) == nullptr) return;
    T* const first = returned_.exchange(nullptr, std::memory_order_acquire);
    T* last = first;
    for (++count_; last->next_free != nullptr; last = last->next_free) ++count_;
    last->next_free = own_;
    own_ = first;
  }

  T* own_ = nullptr;
  std::size_t count_ = 0;  // number of pages in own_
  alignas(64) std::atomic<T*> returned_{nullptr};
};

}  // namespace rodeo::input
