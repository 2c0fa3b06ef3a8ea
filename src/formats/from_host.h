// Messages to front-ends on their way through a FELIX card: packets of 32 bytes (docs/formats/from-host-packets.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "formats/decode_error.h"

namespace rodeo::formats {

inline constexpr std::size_t kFromHostPacketBytes = 32;
inline constexpr std::size_t kFromHostPayloadBytes = 30;

/// How a packet tells its length. `words`: register map 4, 4 bits count 16-bit words and a bit marks the last packet, so a message of an odd number of
/// bytes gets one more, 0. `bytes`: register map 5, 5 bits count bytes, and 31 means that the message goes on.
enum class FromHostLength : std::uint8_t { words, bytes };

/// Packets of a message; an empty one has one.
constexpr std::size_t from_host_packets(std::size_t message_bytes) {
  return message_bytes == 0 ? 1 : (message_bytes + kFromHostPayloadBytes - 1) / kFromHostPayloadBytes;
}

/// Appends the packets of a message to one E-link of the card, `link << 6 | e-group << 3 | e-path`, below 2048.
void append_from_host(std::vector<std::byte>& to, std::uint16_t elink, std::span<const std::byte> message,
                      FromHostLength length);

struct FromHostPacket {
  std::uint16_t elink = 0;
  bool last = true;  ///< of its message
  std::uint8_t bytes = 0;
  std::array<std::byte, kFromHostPayloadBytes> payload{};  ///< the first `bytes` of it, in the order of the message

  std::span<const std::byte> data() const { return std::span(payload).first(bytes); }
};

/// Any 32 bytes.
Decoded<FromHostPacket> read_from_host(std::span<const std::byte, kFromHostPacketBytes> packet, FromHostLength length);

/// Puts the packets of all E-links of a card together again. One thread.
class FromHostMessages {
 public:
  /// A message that is longer is dropped.
  explicit FromHostMessages(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  /// The message that is complete with this packet; until the next call.
  std::optional<std::span<const std::byte>> take(const FromHostPacket& packet);

  /// Bytes that the E-link's message has so far.
  std::size_t begun(std::uint16_t elink) const;
  /// Forgets what has come in part.
  void clear() { messages_.clear(); }
  /// Messages that were longer than they may be.
  std::uint64_t too_long() const { return too_long_; }

 private:
  struct Message {
    std::vector<std::byte> bytes;
    bool complete = false;  // the next packet begins another
    bool dropped = false;
  };
  std::size_t most_bytes_;
  std::unordered_map<std::uint16_t, Message> messages_;
  std::uint64_t too_long_ = 0;
};

}  // namespace rodeo::formats
