// A queue in one block of memory that doubles when it is full. Elements keep their absolute index until they are popped.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace rodeo::network {

/// T is trivially copyable. Not thread-safe.
template <typename T>
class Ring {
 public:
  Ring() = default;
  Ring(Ring&&) noexcept = default;
  Ring& operator=(Ring&&) noexcept = default;
  Ring(const Ring& other) : capacity_(other.capacity_), mask_(other.mask_), first_(other.first_), end_(other.end_) {
    if (capacity_ == 0) return;
    data_ = std::make_unique_for_overwrite<T[]>(capacity_);
    for (std::uint64_t i = first_; i != end_; ++i) data_[i & mask_] = other.data_[i & mask_];
  }
  Ring& operator=(const Ring& other) {
    if (this != &other) *this = Ring(other);
    return *this;
  }
  ~Ring() = default;

  bool empty() const { return first_ == end_; }
  std::size_t size() const { return static_cast<std::size_t>(end_ - first_); }
  std::uint64_t first() const { return first_; }  ///< absolute index of front()
  std::uint64_t end() const { return end_; }      ///< absolute index of the next element to push

  T& front() { return data_[first_ & mask_]; }
  const T& front() const { return data_[first_ & mask_]; }
  T& back() { return data_[(end_ - 1) & mask_]; }
  T& at(std::uint64_t index) { return data_[index & mask_]; }
  const T& at(std::uint64_t index) const { return data_[index & mask_]; }

  /// The address of the element this number of places after front(), whether it exists or not.
  const T* ahead(std::uint64_t elements) const { return &data_[(first_ + elements) & mask_]; }

  void push(const T& value) {
    if (end_ - first_ == capacity_) grow();
    data_[end_ & mask_] = value;
    ++end_;
  }
  void pop() { ++first_; }

 private:
  void grow() {
    const std::uint64_t capacity = capacity_ == 0 ? 4 : capacity_ * 2;
    auto data = std::make_unique_for_overwrite<T[]>(capacity);
    for (std::uint64_t i = first_; i != end_; ++i) data[i & (capacity - 1)] = data_[i & mask_];
    data_ = std::move(data);
    capacity_ = capacity;
    mask_ = capacity - 1;
  }

  std::unique_ptr<T[]> data_;
  std::uint64_t capacity_ = 0;
  std::uint64_t mask_ = 0;
  std::uint64_t first_ = 0;
  std::uint64_t end_ = 0;
};

}  // namespace rodeo::network
