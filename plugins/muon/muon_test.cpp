// Checks that the fields of a muon chunk are read as written, and that no damaged chunk passes the check.
#include "muon.h"

#include <cstdio>
#include <vector>

namespace {

int failures = 0;

void expect(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "failed: %s\n", what);
  ++failures;
}

std::vector<std::byte> chunk_of(std::uint32_t l1id, std::uint16_t bcid, std::size_t hits) {
  std::vector<std::byte> chunk(muon::kHeaderBytes + 4 * hits + muon::kCrcBytes);
  for (std::size_t i = muon::kHeaderBytes; i < chunk.size(); ++i) chunk[i] = static_cast<std::byte>(7 * i);
  muon::restamp(chunk, {.l1id = l1id, .bcid = bcid});
  return chunk;
}

}  // namespace

int main() {
  const char* digits = "123456789";
  expect(muon::crc16(std::as_bytes(std::span(digits, 9))) == 0x29b1, "the CRC of \"123456789\" is the published 0x29b1");

  std::vector<std::byte> chunk = chunk_of(0x12345, 3563, 8);
  const rodeo::TriggerInfo trigger = muon::extract(chunk);
  expect(trigger.valid && trigger.l1id == 0x2345 && trigger.bcid == 3563, "16 bits of the L1 id and the BCID are read");
  expect(muon::check(chunk), "a good chunk passes");

  for (std::size_t bit = 0; bit < 8 * chunk.size(); ++bit) {
    chunk[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    expect(!muon::check(chunk), "any flipped bit is found");
    chunk[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
  }
  for (std::size_t size = 0; size < chunk.size(); ++size) {
    const auto cut = std::span<const std::byte>(chunk).first(size);
    expect(muon::extract(cut).valid == (size >= muon::kHeaderBytes), "a chunk too short for its header is malformed");
    expect(!muon::check(cut), "a chunk cut short is corrupt");
  }
  return failures == 0 ? 0 : 1;
}
