// A word for each segment in flight, indexed by its number; the capacity is a power of two.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>

namespace rodeo::network {

class SegmentWords {
 public:
  SegmentWords() = default;
  SegmentWords(SegmentWords&&) noexcept = default;
  SegmentWords& operator=(SegmentWords&&) noexcept = default;
  SegmentWords(const SegmentWords& other) : mask_(other.mask_) {
    if (!other.words_) return;
    words_ = std::make_unique_for_overwrite<std::uint64_t[]>(capacity());
    std::memcpy(words_.get(), other.words_.get(), capacity() * sizeof(std::uint64_t));
  }
  SegmentWords& operator=(const SegmentWords& other) {
    if (this != &other) *this = SegmentWords(other);
    return *this;
  }
  ~SegmentWords() = default;

  std::uint64_t& operator[](std::uint32_t number) { return words_[number & mask_]; }

  /// Makes room for this number of segments; keeps the words of [begin, end).
  void reserve(std::uint32_t segments, std::uint32_t begin, std::uint32_t end) {
    if (words_ && segments <= mask_ + 1) return;
    const std::uint32_t larger = std::bit_ceil(std::max(segments, 16u));
    auto moved = std::make_unique_for_overwrite<std::uint64_t[]>(larger);
    for (std::uint32_t s = begin; words_ && s != end; ++s) moved[s & (larger - 1)] = words_[s & mask_];
    words_ = std::move(moved);
    mask_ = larger - 1;
  }

 private:
  std::size_t capacity() const { return static_cast<std::size_t>(mask_) + 1; }

  std::unique_ptr<std::uint64_t[]> words_;
  std::uint32_t mask_ = 0;
};

}  // namespace rodeo::network
