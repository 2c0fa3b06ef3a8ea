#include "readout/builder/append_kernel.h"

#include <immintrin.h>

#include <cstring>

#include "formats/rod_data.h"

namespace rodeo::readout {
namespace {

// If fragments are kept for long, slices come back after they have left the caches. So the line that the same event needs a
// few links later is prefetched. If the line is in the cache already, this costs one load.
constexpr std::size_t kBytesAhead = 160;
inline __attribute__((always_inline)) void prefetch_ahead(const std::byte* next) {
  __builtin_prefetch(next + kBytesAhead, 1);
}

// Updates the slot for one appended chunk; all kernels use it.
inline __attribute__((always_inline)) void account(EventSlot& slot, std::byte* next, std::uint16_t bcid) {
  prefetch_ahead(next);
  slot.write = next;
  slot.remaining -= 1;
  slot.bcid_difference = static_cast<std::uint16_t>(slot.bcid_difference | (slot.bcid ^ bcid));
}

std::uint32_t append_v2(EventSlot* ring, std::size_t mask, const AppendRun& run) {
  const std::uint32_t record = formats::short_record_bytes(run.size);
  const std::byte* source = run.data;
  for (std::uint32_t i = 0; i < run.count; ++i, source += run.stride) {
    EventSlot& slot = ring[(run.first + i) & mask];
    std::byte* out = slot.write;
    if (static_cast<std::size_t>(slot.end - out) < record) return i;
    std::memcpy(out, &run.header, 8);
    const std::uint32_t zero = 0;
    std::memcpy(out + record - 4, &zero, 4);
    std::memcpy(out + 8, source, run.size);
    account(slot, out + record, run.bcids[i]);
  }
  return run.count;
}

// For 40-byte chunks, the size of a GBT readout, in 16-byte registers.
std::uint32_t append_v2_40(EventSlot* ring, std::size_t mask, const AppendRun& run) {
  constexpr std::uint32_t kRecord = formats::short_record_bytes(40);
  const std::byte* source = run.data;
  for (std::uint32_t i = 0; i < run.count; ++i, source += run.stride) {
    EventSlot& slot = ring[(run.first + i) & mask];
    std::byte* out = slot.write;
    if (static_cast<std::size_t>(slot.end - out) < kRecord) return i;
    std::memcpy(out, &run.header, 8);
    std::memcpy(out + 8, source, 40);
    account(slot, out + kRecord, run.bcids[i]);
  }
  return run.count;
}

__attribute__((target("avx2"))) std::uint32_t append_avx2_40(EventSlot* ring, std::size_t mask, const AppendRun& run) {
  constexpr std::uint32_t kRecord = formats::short_record_bytes(40);
  const std::byte* source = run.data;
  for (std::uint32_t i = 0; i < run.count; ++i, source += run.stride) {
    EventSlot& slot = ring[(run.first + i) & mask];
    std::byte* out = slot.write;
    if (static_cast<std::size_t>(slot.end - out) < kRecord) return i;
    const __m256i body = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source));
    std::uint64_t tail;
    std::memcpy(&tail, source + 32, 8);
    std::memcpy(out, &run.header, 8);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 8), body);
    std::memcpy(out + 40, &tail, 8);
    account(slot, out + kRecord, run.bcids[i]);
  }
  return run.count;
}

// For chunks of up to 56 bytes: header and chunk are in one register. The load starts 8 bytes early to leave lane 0 for the
// header; masked-out bytes are never read. Zeros pad the rest. One store writes the record and up to 56 bytes beyond it,
// which is harmless.
__attribute__((target("avx512f,avx512bw,avx512vl"))) std::uint32_t append_avx512_short(EventSlot* ring, std::size_t mask,
                                                                                       const AppendRun& run) {
  const std::uint32_t record = formats::short_record_bytes(run.size);
  const __mmask64 bytes = ((std::uint64_t{1} << run.size) - 1) << 8;
  const __m512i header = _mm512_zextsi128_si512(_mm_cvtsi64_si128(static_cast<long long>(run.header)));
  const std::byte* source = run.data;
  for (std::uint32_t i = 0; i < run.count; ++i, source += run.stride) {
    EventSlot& slot = ring[(run.first + i) & mask];
    std::byte* out = slot.write;
    if (static_cast<std::size_t>(slot.end - out) < record) return i;
    _mm512_storeu_si512(out, _mm512_mask_loadu_epi8(header, bytes, source - 8));
    account(slot, out + record, run.bcids[i]);
  }
  return run.count;
}

__attribute__((target("avx512f,avx512bw,avx512vl"))) std::uint32_t append_avx512(EventSlot* ring, std::size_t mask,
                                                                                 const AppendRun& run) {
  const std::uint32_t record = formats::short_record_bytes(run.size);
  const std::uint32_t whole = run.size / 64 * 64;
  const __mmask64 tail = (std::uint64_t{1} << (run.size % 64)) - 1;
  const std::byte* source = run.data;
  for (std::uint32_t i = 0; i < run.count; ++i, source += run.stride) {
    EventSlot& slot = ring[(run.first + i) & mask];
    std::byte* out = slot.write;
    if (static_cast<std::size_t>(slot.end - out) < record) return i;
    std::memcpy(out, &run.header, 8);
    for (std::uint32_t at = 0; at < whole; at += 64) _mm512_storeu_si512(out + 8 + at, _mm512_loadu_si512(source + at));
    if (tail != 0) _mm512_storeu_si512(out + 8 + whole, _mm512_maskz_loadu_epi8(tail, source + whole));
    account(slot, out + record, run.bcids[i]);
  }
  return run.count;
}

}  // namespace

AppendKernel append_kernel(std::uint32_t size, base::CpuLevel level) {
  if (level == base::CpuLevel::avx512) return size <= 56 ? append_avx512_short : append_avx512;
  if (size == 40) return level == base::CpuLevel::avx2 ? append_avx2_40 : append_v2_40;
  return append_v2;
}

}  // namespace rodeo::readout
