#include "network/laboratory/message.h"

#include <bit>
#include <cstring>

namespace rodeo::network::laboratory {

using Words = std::array<std::uint64_t, 3>;  // magic, bytes, event

std::array<std::byte, kMessageBytes> encode(std::uint32_t magic, const Message& message) {
  return std::bit_cast<std::array<std::byte, kMessageBytes>>(Words{magic, message.bytes, message.event});
}

std::optional<Message> decode(std::uint32_t magic, std::span<const std::byte, kMessageBytes> bytes) {
  Words words;
  std::memcpy(words.data(), bytes.data(), bytes.size());
  if (words[0] != magic || words[1] > kLargestFragmentBytes) return std::nullopt;
  return Message{.event = words[2], .bytes = words[1]};
}

}  // namespace rodeo::network::laboratory
