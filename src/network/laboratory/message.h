// The messages of the laboratory: requests and replies between emulators.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace rodeo::network::laboratory {

/// A request for a fragment, and the head of the reply; `bytes` of payload follow the head. The layout is little-endian:
/// magic, 0, bytes, event.
struct Message {
  std::uint64_t event = 0;
  std::uint64_t bytes = 0;
};

inline constexpr std::size_t kMessageBytes = 24;
inline constexpr std::uint32_t kRequestMagic = 0x51524452;  // "RDRQ"
inline constexpr std::uint32_t kReplyMagic = 0x50524452;    // "RDRP"
inline constexpr std::uint64_t kLargestFragmentBytes = std::uint64_t{1} << 30;

std::array<std::byte, kMessageBytes> encode(std::uint32_t magic, const Message& message);
/// Nothing if the message is of another kind, or asks for more than the largest fragment.
std::optional<Message> decode(std::uint32_t magic, std::span<const std::byte, kMessageBytes> bytes);

}  // namespace rodeo::network::laboratory
