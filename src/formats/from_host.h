// Messages to front-ends in the packets of a FELIX card, 32 bytes each (docs/reference/formats/from-host-packets.md).
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

/// The length field of a packet. `words`: register map 4, 4 bits count 16-bit words and a bit marks the last packet; a
/// message of odd size gets a zero byte at its end. `bytes`: register map 5, 5 bits count bytes; 31 means that the message
/// continues.
enum class FromHostLength : std::uint8_t { words, bytes };

/// Number of packets of a message; an empty message has one.
constexpr std::size_t from_host_packets(std::size_t message_bytes) {
  return message_bytes == 0 ? 1 : (message_bytes + kFromHostPayloadBytes - 1) / kFromHostPayloadBytes;
}

/// Appends the packets of a message to one E-link of the card, `link << 6 | e-group << 3 | e-path`, below 2048.
void append_from_host(std::vector<std::byte>& to, std::uint16_t elink, std::span<const std::byte> message,
                      FromHostLength length);

struct FromHostPacket {
  std::uint16_t elink = 0;
  bool last = true;  ///< the message ends here
  std::uint8_t bytes = 0;
  std::array<std::byte, kFromHostPayloadBytes> payload{};  ///< the first `bytes` are valid, in the order of the message

  std::span<const std::byte> data() const { return std::span(payload).first(bytes); }
};

/// Decodes one packet. Accepts any 32 bytes.
Decoded<FromHostPacket> read_from_host(std::span<const std::byte, kFromHostPacketBytes> packet, FromHostLength length);

/// Joins the packets of all E-links of a card to messages. One thread.
class FromHostMessages {
 public:
  /// Longer messages are dropped.
  explicit FromHostMessages(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  /// The message that this packet completes; valid until the next call.
  std::optional<std::span<const std::byte>> add(const FromHostPacket& packet);

  /// Bytes of the E-link's unfinished message.
  std::size_t begun(std::uint16_t elink) const;
  /// Forgets all unfinished messages.
  void clear() { messages_.clear(); }
  /// Number of messages above the limit.
  std::uint64_t too_long() const { return too_long_; }

 private:
  struct Message {
    std::vector<std::byte> bytes;
    bool complete = false;  // the next packet begins a new message
    bool dropped = false;
  };
  std::size_t most_bytes_;
  std::unordered_map<std::uint16_t, Message> messages_;
  std::uint64_t too_long_ = 0;
};

}  // namespace rodeo::formats
