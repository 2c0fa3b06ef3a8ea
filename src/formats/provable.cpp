#include "formats/provable.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <zlib.h>

namespace rodeo::formats {
namespace {

std::uint64_t header_word(const ProvableTrigger& trigger, L1Id l1id) {
  return std::uint64_t{Provable::kMark} << 56 | std::uint64_t{trigger.trigger_type} << 48 | std::uint64_t{trigger.bcid} << 32 |
         l1id.value;
}

std::uint32_t crc_of(const std::byte* data, std::size_t size) {
  return static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const unsigned char*>(data), size));
}

}  // namespace

void Provable::write(std::span<std::byte> chunk, std::uint32_t link_id, L1Id l1id) const {
  if (chunk.empty()) return;
  const std::size_t crc_bytes = crc_ && chunk.size() >= kHeaderBytes + 4 ? 4 : 0;
  const std::size_t body = chunk.size() - crc_bytes;
  const std::uint64_t header = header_word(trigger(l1id), l1id);
  std::memcpy(chunk.data(), &header, std::min(body, sizeof header));
  std::uint64_t word = key(link_id, l1id);
  std::size_t at = kHeaderBytes;
  for (; at + 8 <= body; at += 8, word += kStep) std::memcpy(chunk.data() + at, &word, 8);
  if (at < body) std::memcpy(chunk.data() + at, &word, body - at);
  if (crc_bytes != 0) {
    const std::uint32_t crc = crc_of(chunk.data(), body);
    std::memcpy(chunk.data() + body, &crc, sizeof crc);
  }
}

bool Provable::matches(std::span<const std::byte> chunk, std::uint32_t link_id, L1Id l1id) const {
  if (chunk.empty()) return true;
  const std::size_t crc_bytes = crc_ && chunk.size() >= kHeaderBytes + 4 ? 4 : 0;
  const std::size_t body = chunk.size() - crc_bytes;
  const std::uint64_t header = header_word(trigger(l1id), l1id);
  if (std::memcmp(chunk.data(), &header, std::min(body, sizeof header)) != 0) return false;
  std::uint64_t word = key(link_id, l1id);
  std::uint64_t difference = 0;
  std::size_t at = kHeaderBytes;
  for (; at + 8 <= body; at += 8, word += kStep) {
    std::uint64_t found;
    std::memcpy(&found, chunk.data() + at, 8);
    difference |= found ^ word;
  }
  if (at < body && std::memcmp(chunk.data() + at, &word, body - at) != 0) return false;
  if (difference != 0) return false;
  if (crc_bytes != 0) {
    std::uint32_t crc;
    std::memcpy(&crc, chunk.data() + body, sizeof crc);
    if (crc != crc_of(chunk.data(), body)) return false;
  }
  return true;
}

}  // namespace rodeo::formats
