// Checks that runs are read up to the first malformed chunk, that the BCID is corrected, and that no damaged chunk passes
// the check.
#include "calorimeter.h"

#include <cstdio>
#include <vector>

namespace {

int failures = 0;

void expect(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "failed: %s\n", what);
  ++failures;
}

}  // namespace

int main() {
  const char* digits = "123456789";
  expect(calorimeter::crc32(std::as_bytes(std::span(digits, 9))) == 0xcbf43926,
         "the CRC of \"123456789\" is the published 0xcbf43926");

  constexpr std::uint32_t kChunk = 64;
  constexpr std::uint32_t kCount = 5;
  std::vector<std::byte> memory(kChunk * kCount, std::byte{0x11});
  for (std::uint32_t i = 0; i < kCount; ++i) {
    calorimeter::restamp(std::span(memory).subspan(i * kChunk, kChunk),
                         {.l1id = 0x07000000U + i, .bcid = static_cast<std::uint16_t>(i), .trigger_type = 0x81});
  }
  const rodeo::ChunkRun run{.data = memory.data(), .size = kChunk, .stride = kChunk, .count = kCount};
  std::uint32_t l1ids[kCount] = {};
  std::uint16_t bcids[kCount] = {};
  calorimeter::Extractor extractor({.bcid_offset = 2});
  expect(extractor.extract(run, 0, kCount, l1ids, bcids) == kCount, "a good run is read whole");
  expect(l1ids[4] == 0x07000004 && bcids[4] == 2, "ECR, L1 id and the corrected BCID are read");
  expect(bcids[0] == calorimeter::kOrbit - 2, "the BCID wraps at the end of the orbit");
  expect(extractor.trigger_type(run.chunk(0)) == 0x81, "the trigger type is read");

  memory[3 * kChunk] ^= std::byte{1};
  expect(extractor.extract(run, 0, kCount, l1ids, bcids) == 3, "reading stops before a chunk without its marker");
  expect(extractor.extract(run, 4, 1, l1ids, bcids) == 1 && l1ids[0] == 0x07000004, "and continues after it");
  memory[3 * kChunk] ^= std::byte{1};

  const auto chunk = std::span(memory).first(kChunk);
  expect(calorimeter::check(chunk), "a good chunk passes");
  for (std::size_t bit = 0; bit < 8 * chunk.size(); ++bit) {
    chunk[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    expect(!calorimeter::check(chunk), "any flipped bit is found");
    chunk[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
  }
  for (std::size_t size = 0; size < chunk.size(); ++size)
    expect(!calorimeter::check(chunk.first(size)), "a chunk cut short is corrupt");
  return failures == 0 ? 0 : 1;
}
