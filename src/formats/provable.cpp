#include "formats/provable.h"

#include <cstring>

#include "formats/checksum.h"

namespace rodeo::formats {
void Provable::write(std::span<std::byte> chunk, std::uint32_t link_id, L1Id l1id) const {
  if (chunk.empty()) return;
  const std::size_t crc_bytes = crc_ && chunk.size() >= kHeaderBytes + 4 ? 4 : 0;
  const std::size_t body = chunk.size() - crc_bytes;
  const std::uint64_t first = header(l1id);
  if (body < kHeaderBytes) {
    std::memcpy(chunk.data(), &first, body);
    return;
  }
  fill(chunk.data(), body, first, key(link_id, l1id), chunk.size());
  seal(chunk);
}

void Provable::seal(std::span<std::byte> chunk) const {
  if (!crc_ || chunk.size() < kHeaderBytes + 4) return;
  const std::size_t body = chunk.size() - 4;
  const std::uint32_t crc = crc32(chunk.first(body));
  std::memcpy(chunk.data() + body, &crc, sizeof crc);
}

bool Provable::crc_matches(std::span<const std::byte> chunk) {
  std::uint32_t crc;
  std::memcpy(&crc, chunk.data() + chunk.size() - sizeof crc, sizeof crc);
  return crc == crc32(chunk.first(chunk.size() - sizeof crc));
}

}  // namespace rodeo::formats
