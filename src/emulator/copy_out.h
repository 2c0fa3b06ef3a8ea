// Stores past the caches: a card's data go to memory that this process never reads.
#pragma once

#include <emmintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rodeo::emulator {

/// Copies `bytes` to memory; past the caches where both ends are aligned to 16 bytes and the size is a multiple of it. Call copies_done() before
/// anybody is told.
inline void copy_out(std::byte* to, const std::byte* from, std::size_t bytes) {
  if ((reinterpret_cast<std::uintptr_t>(to) | bytes) % 16 != 0) {
    std::memcpy(to, from, bytes);
    return;
  }
  auto* out = reinterpret_cast<__m128i*>(to);
  const auto* in = reinterpret_cast<const __m128i*>(from);
  for (std::size_t i = 0; i < bytes / 16; ++i) _mm_stream_si128(out + i, _mm_loadu_si128(in + i));
}

/// Orders what copy_out() and plain stores wrote before what is stored next.
inline void copies_done() { _mm_sfence(); }

}  // namespace rodeo::emulator
