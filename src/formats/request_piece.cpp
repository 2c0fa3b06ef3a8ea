#include "formats/request_piece.h"

#include <bit>
#include <cstring>

namespace rodeo::formats {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are");

template <typename T>
void put(std::array<std::byte, kPieceHeadBytes>& bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

template <typename T>
T get(std::span<const std::byte> bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

}  // namespace

std::array<std::byte, kPieceHeadBytes> encode_piece_head(const PieceHead& head) {
  std::array<std::byte, kPieceHeadBytes> bytes{};
  put(bytes, 0, head.number);
  put(bytes, 8, static_cast<std::uint8_t>(head.type));
  put(bytes, 10, head.code);
  put(bytes, 12, head.message_bytes);
  put(bytes, 16, head.offset);
  put(bytes, 20, head.credit);
  return bytes;
}

Decoded<Piece> decode_piece(std::span<const std::byte> page) {
  if (page.size() < kPieceHeadBytes)
    return decode_error(DecodeFault::truncated, 0, "head of a piece", page.size(), kPieceHeadBytes);
  const auto type = get<std::uint8_t>(page, 8);
  if (type < static_cast<std::uint8_t>(MessageType::request) || type > static_cast<std::uint8_t>(MessageType::cancel))
    return decode_error(DecodeFault::unknown, 8, "type of a message", type);
  if (const auto reserved = get<std::uint8_t>(page, 9); reserved != 0)
    return decode_error(DecodeFault::wrong_value, 9, "reserved byte", reserved, 0);
  Piece piece{{.number = get<std::uint64_t>(page, 0),
               .type = static_cast<MessageType>(type),
               .code = get<std::uint16_t>(page, 10),
               .message_bytes = get<std::uint32_t>(page, 12),
               .offset = get<std::uint32_t>(page, 16),
               .credit = get<std::uint32_t>(page, 20)},
              page.subspan(kPieceHeadBytes)};
  const PieceHead& head = piece.head;
  const bool has_bytes = head.type == MessageType::request || head.type == MessageType::reply;
  if (!has_bytes && head.message_bytes != 0)
    return decode_error(DecodeFault::wrong_value, 12, "bytes of a message without any", head.message_bytes, 0);
  if (head.offset > head.message_bytes)
    return decode_error(DecodeFault::too_large, 16, "offset of a piece", head.offset, head.message_bytes);
  if (piece.bytes.size() > head.message_bytes - head.offset) {
    return decode_error(DecodeFault::too_large, kPieceHeadBytes, "bytes of a piece", piece.bytes.size(),
                        head.message_bytes - head.offset);
  }
  if (piece.bytes.empty() && head.message_bytes != 0)
    return decode_error(DecodeFault::too_small, kPieceHeadBytes, "bytes of a piece", 0, 1);
  return piece;
}

}  // namespace rodeo::formats
