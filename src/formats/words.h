// Little-endian 32-bit words in memory of any alignment: the units of all ATLAS events and file records.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace rodeo::formats {

static_assert(std::endian::native == std::endian::little, "words are copied as they are");

inline constexpr std::size_t kWordBytes = 4;

inline std::uint32_t load_word(const std::byte* at) {
  std::uint32_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

inline void store_word(std::byte* at, std::uint32_t word) { std::memcpy(at, &word, sizeof word); }

inline void append_word(std::vector<std::byte>& out, std::uint32_t word) {
  const std::size_t at = out.size();
  out.resize(at + kWordBytes);
  store_word(out.data() + at, word);
}

inline void append_bytes(std::vector<std::byte>& out, std::span<const std::byte> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

constexpr std::size_t padded_to_word(std::size_t bytes) { return (bytes + kWordBytes - 1) / kWordBytes * kWordBytes; }

/// A view of whole words; owns nothing. Bytes after the last whole word of a span are not part of it.
class WordView {
 public:
  WordView() = default;
  explicit WordView(std::span<const std::byte> bytes) : data_(bytes.data()), count_(bytes.size() / kWordBytes) {}

  std::size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  std::uint32_t operator[](std::size_t i) const { return load_word(data_ + i * kWordBytes); }
  std::span<const std::byte> bytes() const { return {data_, count_ * kWordBytes}; }

  /// Words [first, first + count), which must exist.
  WordView sub(std::size_t first, std::size_t count) const {
    WordView view;
    view.data_ = data_ + first * kWordBytes;
    view.count_ = count;
    return view;
  }

  std::vector<std::uint32_t> to_vector() const {
    std::vector<std::uint32_t> words(count_);
    if (count_ > 0) std::memcpy(words.data(), data_, count_ * kWordBytes);
    return words;
  }

 private:
  const std::byte* data_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace rodeo::formats
