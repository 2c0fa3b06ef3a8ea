// A first-in-first-out queue that allocates its memory once.
#pragma once

#include <cstddef>
#include <vector>

namespace rodeo::card {

/// For one thread. The caller must not push() to a full queue nor pop() from an empty one.
template <typename T>
class FixedQueue {
 public:
  explicit FixedQueue(std::size_t capacity = 0) : items_(capacity) {}
  std::size_t capacity() const { return items_.size(); }
  std::size_t size() const { return size_; }
  std::size_t room() const { return items_.size() - size_; }
  bool empty() const { return size_ == 0; }
  const T& front() const { return items_[begin_]; }
  T& front() { return items_[begin_]; }
  /// The i-th item from the front.
  const T& operator[](std::size_t i) const { return items_[wrap(begin_ + i)]; }
  void push(const T& item) {
    items_[wrap(begin_ + size_)] = item;
    ++size_;
  }
  T pop() {
    T item = items_[begin_];
    begin_ = wrap(begin_ + 1);
    --size_;
    return item;
  }
  void clear() { begin_ = size_ = 0; }

 private:
  std::size_t wrap(std::size_t i) const { return i < items_.size() ? i : i - items_.size(); }
  std::vector<T> items_;
  std::size_t begin_ = 0;
  std::size_t size_ = 0;
};

}  // namespace rodeo::card
