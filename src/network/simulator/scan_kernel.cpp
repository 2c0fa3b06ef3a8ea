#include "network/simulator/scan_kernel.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>

namespace rodeo::network {

namespace {

Picoseconds earliest_v2(const Picoseconds* times, std::size_t count) {
  return count == 0 ? kNever : *std::min_element(times, times + count);
}

std::size_t before_v2(const Picoseconds* times, std::size_t count, Picoseconds end, std::uint32_t* places) {
  std::size_t found = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (times[i] < end) places[found++] = static_cast<std::uint32_t>(i);
  }
  return found;
}

inline std::size_t put(unsigned mask, std::size_t first, std::uint32_t* places, std::size_t found) {
  for (; mask != 0; mask &= mask - 1) places[found++] = static_cast<std::uint32_t>(first) + std::countr_zero(mask);
  return found;
}

// AVX2 compares signed numbers, so the sign bit is flipped.
__attribute__((target("avx2"))) Picoseconds earliest_avx2(const Picoseconds* times, std::size_t count) {
  const __m256i sign = _mm256_set1_epi64x(INT64_MIN);
  __m256i least = _mm256_set1_epi64x(INT64_MAX);
  for (std::size_t i = 0; i < count; i += 4) {
    const __m256i some = _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(times + i)), sign);
    least = _mm256_blendv_epi8(least, some, _mm256_cmpgt_epi64(least, some));
  }
  alignas(32) Picoseconds four[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(four), _mm256_xor_si256(least, sign));
  return std::min({four[0], four[1], four[2], four[3]});
}

__attribute__((target("avx2"))) std::size_t before_avx2(const Picoseconds* times, std::size_t count, Picoseconds end,
                                                        std::uint32_t* places) {
  const __m256i sign = _mm256_set1_epi64x(INT64_MIN);
  const __m256i limit = _mm256_xor_si256(_mm256_set1_epi64x(static_cast<long long>(end)), sign);
  std::size_t found = 0;
  for (std::size_t i = 0; i < count; i += 8) {
    const __m256i low = _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(times + i)), sign);
    const __m256i high = _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(times + i + 4)), sign);
    const int mask = _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(limit, low))) |
                     _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(limit, high))) << 4;
    found = put(static_cast<unsigned>(mask), i, places, found);
  }
  return found;
}

__attribute__((target("avx512f"))) Picoseconds earliest_avx512(const Picoseconds* times, std::size_t count) {
  __m512i least = _mm512_set1_epi64(-1);
  // The masked form avoids an undefined register, of which GCC 12 warns.
  for (std::size_t i = 0; i < count; i += 8) least = _mm512_maskz_min_epu64(0xff, least, _mm512_loadu_si512(times + i));
  alignas(64) Picoseconds eight[8];
  _mm512_store_si512(eight, least);
  return *std::min_element(eight, eight + 8);
}

__attribute__((target("avx512f"))) std::size_t before_avx512(const Picoseconds* times, std::size_t count, Picoseconds end,
                                                             std::uint32_t* places) {
  const __m512i limit = _mm512_set1_epi64(static_cast<long long>(end));
  std::size_t found = 0;
  for (std::size_t i = 0; i < count; i += 8) {
    found = put(_mm512_cmplt_epu64_mask(_mm512_loadu_si512(times + i), limit), i, places, found);
  }
  return found;
}

}  // namespace

const ScanKernel& scan_kernel(base::CpuLevel level) {
  static constexpr ScanKernel kV2{earliest_v2, before_v2};
  static constexpr ScanKernel kAvx2{earliest_avx2, before_avx2};
  static constexpr ScanKernel kAvx512{earliest_avx512, before_avx512};
  switch (level) {
    case base::CpuLevel::avx512: return kAvx512;
    case base::CpuLevel::avx2: return kAvx2;
    case base::CpuLevel::v2: break;
  }
  return kV2;
}

}  // namespace rodeo::network
