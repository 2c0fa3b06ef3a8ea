#include "formats/from_host.h"

#include <algorithm>
#include <cstring>

namespace rodeo::formats {
namespace {

constexpr unsigned kElinkShift = 5;
constexpr unsigned kEndOfMessage = 1;
constexpr unsigned kWordsShift = 1;
constexpr unsigned kWordsMask = 0xf;
constexpr unsigned kBytesMask = 0x1f;
constexpr unsigned kGoesOn = 0x1f;

unsigned length_field(std::size_t bytes, bool last, FromHostLength length) {
  if (length == FromHostLength::bytes) return last ? static_cast<unsigned>(bytes) : kGoesOn;
  return static_cast<unsigned>((bytes + 1) / 2) << kWordsShift | (last ? kEndOfMessage : 0);
}

}  // namespace

void append_from_host(std::vector<std::byte>& to, std::uint16_t elink, std::span<const std::byte> message,
                      FromHostLength length) {
  const std::size_t packets = from_host_packets(message.size());
  std::size_t at = to.size();
  to.resize(at + packets * kFromHostPacketBytes);
  for (std::size_t packet = 0; packet < packets; ++packet, at += kFromHostPacketBytes) {
    const std::size_t bytes = std::min(message.size(), kFromHostPayloadBytes);
    // The bytes are reversed: the first byte of the message is last, before the header.
    std::reverse_copy(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(bytes),
                      to.begin() + static_cast<std::ptrdiff_t>(at + kFromHostPayloadBytes - bytes));
    const auto header =
        static_cast<std::uint16_t>(elink << kElinkShift | length_field(bytes, packet + 1 == packets, length));
    std::memcpy(to.data() + at + kFromHostPayloadBytes, &header, sizeof header);
    message = message.subspan(bytes);
  }
}

Decoded<FromHostPacket> read_from_host(std::span<const std::byte, kFromHostPacketBytes> packet, FromHostLength length) {
  std::uint16_t header = 0;
  std::memcpy(&header, packet.data() + kFromHostPayloadBytes, sizeof header);
  FromHostPacket read{.elink = static_cast<std::uint16_t>(header >> kElinkShift)};
  if (length == FromHostLength::bytes) {
    const unsigned bytes = header & kBytesMask;
    read.last = bytes != kGoesOn;
    read.bytes = static_cast<std::uint8_t>(read.last ? bytes : kFromHostPayloadBytes);
  } else {
    const unsigned words = header >> kWordsShift & kWordsMask;
    read.last = (header & kEndOfMessage) != 0;
    read.bytes = static_cast<std::uint8_t>(2 * words);
    if (!read.last && read.bytes != kFromHostPayloadBytes) {
      return decode_error(DecodeFault::wrong_value, kFromHostPayloadBytes, "length of a packet that is not the last", words,
                          kFromHostPayloadBytes / 2);
    }
  }
  std::reverse_copy(packet.begin() + static_cast<std::ptrdiff_t>(kFromHostPayloadBytes - read.bytes),
                    packet.begin() + kFromHostPayloadBytes, read.payload.begin());
  return read;
}

std::optional<std::span<const std::byte>> FromHostMessages::add(const FromHostPacket& packet) {
  Message& message = messages_[packet.elink];
  if (message.complete) {
    message.bytes.clear();
    message.complete = false;
  }
  const std::span<const std::byte> data = packet.data();
  message.dropped = message.dropped || message.bytes.size() + data.size() > most_bytes_;
  if (!message.dropped) message.bytes.insert(message.bytes.end(), data.begin(), data.end());
  if (!packet.last) return std::nullopt;
  message.complete = true;
  if (!message.dropped) return message.bytes;
  message.dropped = false;
  ++too_long_;
  return std::nullopt;
}

std::size_t FromHostMessages::begun(std::uint16_t elink) const {
  const auto found = messages_.find(elink);
  return found == messages_.end() || found->second.complete ? 0 : found->second.bytes.size();
}

}  // namespace rodeo::formats
