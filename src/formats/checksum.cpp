#include "formats/checksum.h"

#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#include <zlib.h>

#include <algorithm>

namespace rodeo::formats {
namespace {

// ISA-L uses 32-bit lengths in places.
constexpr std::size_t kPieceBytes = std::size_t{1} << 30;

template <typename Update>
std::uint32_t in_pieces(std::span<const std::byte> bytes, std::uint32_t sum, Update update) {
  while (!bytes.empty()) {
    const std::size_t size = std::min(bytes.size(), kPieceBytes);
    sum = update(sum, reinterpret_cast<const unsigned char*>(bytes.data()), size);
    bytes = bytes.subspan(size);
  }
  return sum;
}

}  // namespace

std::uint32_t adler32(std::span<const std::byte> bytes, std::uint32_t sum) {
  return in_pieces(bytes, sum, [](std::uint32_t so_far, const unsigned char* data, std::size_t size) {
    return isal_adler32(so_far, data, size);
  });
}

std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t sum) {
  return in_pieces(bytes, sum, [](std::uint32_t so_far, const unsigned char* data, std::size_t size) {
    return crc32_gzip_refl(so_far, data, size);
  });
}

std::uint16_t crc16(std::span<const std::byte> bytes, std::uint16_t sum) {
  return static_cast<std::uint16_t>(
      in_pieces(bytes, sum, [](std::uint32_t so_far, const unsigned char* data, std::size_t size) {
        return std::uint32_t{crc16_t10dif(static_cast<std::uint16_t>(so_far), data, size)};
      }));
}

std::uint32_t adler32_of_both(std::uint32_t a, std::uint32_t b, std::size_t b_bytes) {
  return static_cast<std::uint32_t>(adler32_combine(a, b, static_cast<z_off_t>(b_bytes)));
}

std::uint32_t crc32_of_both(std::uint32_t a, std::uint32_t b, std::size_t b_bytes) {
  return static_cast<std::uint32_t>(crc32_combine(a, b, static_cast<z_off_t>(b_bytes)));
}

}  // namespace rodeo::formats
