#include "emulator/felix_kernels.h"

#include <immintrin.h>

#include <cstring>

namespace rodeo::emulator {
namespace {

using formats::Provable;

void keys_plain(const Provable& provable, std::uint32_t link_id, std::span<const std::uint32_t> l1ids, std::uint64_t* keys) {
  for (std::size_t i = 0; i < l1ids.size(); ++i) keys[i] = provable.key(link_id, L1Id{l1ids[i]});
}

__attribute__((target("avx512f,avx512dq,avx512vl"))) void keys_avx512(const Provable& provable, std::uint32_t link_id,
                                                                      std::span<const std::uint32_t> l1ids,
                                                                      std::uint64_t* keys) {
  using Ids = std::uint32_t __attribute__((vector_size(32)));
  using Keys = std::uint64_t __attribute__((vector_size(64)));
  const std::uint64_t link = std::uint64_t{link_id} << 32;
  std::size_t i = 0;
  for (; i + 8 <= l1ids.size(); i += 8) {
    Ids ids;
    std::memcpy(&ids, l1ids.data() + i, sizeof ids);
    Keys x = provable.seed() + (link | __builtin_convertvector(ids, Keys)) * Provable::kKeyFactor;
    x = (x ^ (x >> 32)) * Provable::kMixFactor;
    x = (x ^ (x >> 32)) * Provable::kMixFactor;
    x ^= x >> 28;
    std::memcpy(keys + i, &x, sizeof x);
  }
  keys_plain(provable, link_id, l1ids.subspan(i), keys + i);
}

void words_v2(std::byte* to, std::size_t count, std::uint64_t first) {
  for (std::size_t i = 0; i < count; ++i, first += Provable::kStep) std::memcpy(to + 8 * i, &first, 8);
}

__attribute__((target("avx512f"))) void words_avx512(std::byte* to, std::size_t count, std::uint64_t first) {
  using Words = std::uint64_t __attribute__((vector_size(64)));
  Words words = first + Words{0, 1, 2, 3, 4, 5, 6, 7} * Provable::kStep;
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8, words += 8 * Provable::kStep) std::memcpy(to + 8 * i, &words, sizeof words);
  words_v2(to + 8 * i, count - i, first + i * Provable::kStep);
}

void copy_v2(std::byte* to, const std::byte* from, std::size_t bytes) {
  auto* out = reinterpret_cast<__m128i*>(to);
  const auto* in = reinterpret_cast<const __m128i*>(from);
  for (std::size_t i = 0; i < bytes / 16; ++i) _mm_stream_si128(out + i, _mm_load_si128(in + i));
}

__attribute__((target("avx2"))) void copy_avx2(std::byte* to, const std::byte* from, std::size_t bytes) {
  auto* out = reinterpret_cast<__m256i*>(to);
  const auto* in = reinterpret_cast<const __m256i*>(from);
  for (std::size_t i = 0; i < bytes / 32; ++i) _mm256_stream_si256(out + i, _mm256_load_si256(in + i));
}

__attribute__((target("avx512f"))) void copy_avx512(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += 64)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + at), _mm512_load_si512(from + at));
}

}  // namespace

FelixKernels felix_kernels(base::CpuLevel level) {
  switch (level) {
    case base::CpuLevel::avx512: return {keys_avx512, words_avx512, copy_avx512};
    case base::CpuLevel::avx2: return {keys_plain, words_v2, copy_avx2};
    default: return {keys_plain, words_v2, copy_v2};
  }
}

}  // namespace rodeo::emulator
