// Patterns of generators, written past the caches at the speed of the memory. The layouts are those of
// formats/superpage_check.h and formats/rdh_payload.h; tests compare these writers with the plain writers there.
#pragma once

#include <emmintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "formats/provable.h"

namespace rodeo::emulator {

namespace detail {

template <typename Next>
inline void stream(std::byte* at, std::size_t vectors, Next&& next) {
  if (reinterpret_cast<std::uintptr_t>(at) % 16 == 0) {
    for (std::size_t i = 0; i < vectors; ++i) _mm_stream_si128(reinterpret_cast<__m128i*>(at) + i, next());
  } else {
    for (std::size_t i = 0; i < vectors; ++i) _mm_storeu_si128(reinterpret_cast<__m128i*>(at) + i, next());
  }
}

}  // namespace detail

/// {c, c, c & 0xffff, 0}, c + 1 ...; `bytes` a multiple of 16. Returns the next counter.
inline std::uint32_t stream_ddg(std::byte* at, std::size_t bytes, std::uint32_t counter) {
  const __m128i mask = _mm_set_epi32(0, 0xffff, -1, -1);
  const __m128i step = _mm_set_epi32(0, 1, 1, 1);
  const int c = static_cast<int>(counter);
  __m128i word = _mm_set_epi32(0, c, c, c);
  detail::stream(at, bytes / 16, [&] {
    const __m128i now = _mm_and_si128(word, mask);
    word = _mm_add_epi32(word, step);
    return now;
  });
  return counter + static_cast<std::uint32_t>(bytes / 16);
}

/// 32-bit words that count up; `bytes` a multiple of 16. Returns the next counter.
inline std::uint32_t stream_words(std::byte* at, std::size_t bytes, std::uint32_t counter) {
  const __m128i step = _mm_set1_epi32(4);
  __m128i word = _mm_add_epi32(_mm_set1_epi32(static_cast<int>(counter)), _mm_set_epi32(3, 2, 1, 0));
  detail::stream(at, bytes / 16, [&] {
    const __m128i now = word;
    word = _mm_add_epi32(word, step);
    return now;
  });
  return counter + static_cast<std::uint32_t>(bytes / 4);
}

/// Eight times c, eight times c + 1 ...; `bytes` a multiple of 32. Returns the next counter.
inline std::uint32_t stream_cru_internal(std::byte* at, std::size_t bytes, std::uint32_t counter) {
  const __m128i step = _mm_set1_epi32(1);
  __m128i word = _mm_set1_epi32(static_cast<int>(counter));
  bool second = false;
  detail::stream(at, bytes / 16, [&] {
    const __m128i now = word;
    if (second) word = _mm_add_epi32(word, step);
    second = !second;
    return now;
  });
  return counter + static_cast<std::uint32_t>(bytes / 32);
}

/// A provable chunk without CRC; `bytes` a multiple of 16.
inline void stream_provable(std::byte* at, std::size_t bytes, std::uint64_t header, std::uint64_t key) {
  if (bytes == 0) return;
  constexpr std::uint64_t kStep = formats::Provable::kStep;
  const auto pair = [](std::uint64_t low, std::uint64_t high) {
    return _mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(low));
  };
  // The header and the word with the size, then key + step, key + 2 steps, ...
  __m128i word = pair(key - kStep, key);
  const __m128i step = pair(2 * kStep, 2 * kStep);
  bool first = true;
  detail::stream(at, bytes / 16, [&] {
    const __m128i now = first ? pair(header, key + bytes) : word;
    first = false;
    word = _mm_add_epi64(word, step);
    return now;
  });
}

}  // namespace rodeo::emulator
