// Requests and replies in network format: messages in pieces of at most one page (docs/reference/formats/request-reply.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/decode_error.h"

namespace rodeo::formats {

inline constexpr std::size_t kPieceHeadBytes = 24;

enum class MessageType : std::uint8_t {
  request = 1,
  reply = 2,
  refusal = 3,  ///< a reply with a status only
  cancel = 4,   ///< the requester no longer waits for the reply
};

/// The head before the bytes of each piece.
struct PieceHead {
  std::uint64_t number = 0;  ///< number of the request, chosen by the requester
  MessageType type = MessageType::request;
  std::uint16_t code = 0;           ///< a request's kind, or the status of a reply or refusal
  std::uint32_t message_bytes = 0;  ///< size of the whole message
  std::uint32_t offset = 0;         ///< place of this piece in the message
  std::uint32_t credit = 0;  ///< total number of pages that the other side may send on this connection: the low 32 bits
  bool operator==(const PieceHead&) const = default;
};

std::array<std::byte, kPieceHeadBytes> encode_piece_head(const PieceHead& head);

struct Piece {
  PieceHead head;
  std::span<const std::byte> bytes;
};

/// Decodes a received page. Accepts any bytes.
Decoded<Piece> decode_piece(std::span<const std::byte> page);

}  // namespace rodeo::formats
