// Recycling pool of fixed objects: one thread takes them, any thread returns them. The object that was returned last is
// taken first, so a healthy run reuses memory that is still in the cache.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/counters.h"
#include "base/thread.h"

namespace rodeo::readout {

/// T has a member `T* next_free`. Only the owner thread (the last that called own()) may call add() and acquire(); any
/// thread may call give_back(). From an empty pool, acquire() returns nullptr, and the caller decides whether to wait.
template <typename T>
class RecyclePool {
 public:
  /// Makes the calling thread the owner.
  void own() { owner_of_this_thread() = this; }

  /// Adds a new object, before the threads run.
  void add(T* object) {
    object->next_free = unused_;
    unused_ = object;
    ++total_;
  }

  /// Takes the object that was returned last; a new object only if none was returned.
  T* acquire() {
    if (hot_ == nullptr && returned_.load(std::memory_order_relaxed) != nullptr) {
      hot_ = returned_.exchange(nullptr, std::memory_order_acquire);
    }
    T*& list = hot_ != nullptr ? hot_ : unused_;
    T* object = list;
    if (object == nullptr) return nullptr;
    list = object->next_free;
    __builtin_prefetch(list);  // the thread that returned it wrote to it
    acquired_.add(1);
    return object;
  }

  void give_back(T* object) noexcept {
    if (owner_of_this_thread() == this) {
      object->next_free = hot_;
      hot_ = object;
      given_here_.add(1);
      return;
    }
    given_elsewhere_.fetch_add(1, std::memory_order_relaxed);
    T* head = returned_.load(std::memory_order_relaxed);
    do {
      object->next_free = head;
    } while (!returned_.compare_exchange_weak(head, object, std::memory_order_release, std::memory_order_relaxed));
  }

  std::size_t total() const { return total_; }
  /// Number of objects outside the pool; an estimate while threads run.
  std::size_t in_use() const {
    const std::uint64_t given = given_here_.get() + given_elsewhere_.load(std::memory_order_relaxed);
    const std::uint64_t acquired = acquired_.get();
    return acquired > given ? static_cast<std::size_t>(acquired - given) : 0;
  }

 private:
  static const void*& owner_of_this_thread() {
    thread_local const void* owner = nullptr;
    return owner;
  }

  T* hot_ = nullptr;  // returned objects, the last one first
  T* unused_ = nullptr;
  std::size_t total_ = 0;
  base::Gauge<std::uint64_t> acquired_;
  base::Gauge<std::uint64_t> given_here_;
  alignas(base::kCacheLine) std::atomic<T*> returned_{nullptr};
  std::atomic<std::uint64_t> given_elsewhere_{0};
};

/// Takes an object from a pool. If the pool is empty, waits until a consumer returns one (back-pressure).
template <typename Pool>
auto* acquire_or_wait(Pool& pool, std::atomic<bool>& held) {
  auto* object = pool.acquire();
  if (object != nullptr) return object;
  held.store(true, std::memory_order_relaxed);
  base::Backoff backoff;
  while ((object = pool.acquire()) == nullptr) backoff.idle();
  held.store(false, std::memory_order_relaxed);
  return object;
}

}  // namespace rodeo::readout
