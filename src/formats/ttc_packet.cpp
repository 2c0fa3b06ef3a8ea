#include "formats/ttc_packet.h"

#include <cassert>
#include <cstring>

namespace rodeo::formats {

using enum DecodeFault;

namespace {

constexpr std::size_t kBcidAt = 2;
constexpr std::size_t kL1idAt = 4;
constexpr std::size_t kOrbitAt = 8;
constexpr std::size_t kTriggerTypeAt = 12;
constexpr std::size_t kL0idAt = 16;
constexpr std::size_t kL1aAt = 20;
constexpr std::size_t kTagAt = 26;
constexpr std::size_t kL1aBytes = 6;

template <typename T>
T get(std::span<const std::byte> chunk, std::size_t at) {
  T value;
  std::memcpy(&value, chunk.data() + at, sizeof value);
  return value;
}

template <typename T>
void put(std::span<std::byte> chunk, std::size_t at, T value) {
  std::memcpy(chunk.data() + at, &value, sizeof value);
}

/// Smallest size of a packet of this format; 0 for an unknown one.
constexpr std::size_t least_bytes(std::uint8_t format) {
  return format == 1 ? TtcPacket::kFormat1Bytes : format == 2 || format == 3 ? TtcPacket::kFormat2Bytes : 0;
}

bool readable(std::span<const std::byte> chunk) {
  if (chunk.size() < TtcPacket::kFormat1Bytes) return false;
  const std::size_t least = least_bytes(get<std::uint8_t>(chunk, 0));
  return least != 0 && chunk.size() >= least;
}

}  // namespace

std::size_t TtcPacket::write(std::span<std::byte> chunk) const {
  const std::size_t size = size_bytes();
  assert(chunk.size() >= size && (l1a_counter || !trigger_tag));
  std::memset(chunk.data(), 0, size);
  put<std::uint8_t>(chunk, 0, trigger_tag ? 3 : l1a_counter ? 2 : 1);
  put(chunk, 1, static_cast<std::uint8_t>(size));
  put(chunk, kBcidAt, static_cast<std::uint16_t>(bcid & 0xfffU));
  put(chunk, kL1idAt, l1id.value);
  put(chunk, kOrbitAt, orbit);
  put(chunk, kTriggerTypeAt, trigger_type);
  put(chunk, kL0idAt, l0id);
  if (l1a_counter) std::memcpy(chunk.data() + kL1aAt, &*l1a_counter, kL1aBytes);
  if (trigger_tag) put(chunk, kTagAt, *trigger_tag);
  return size;
}

Decoded<TtcPacket> TtcPacket::read(std::span<const std::byte> chunk) {
  if (chunk.size() < kFormat1Bytes) return decode_error(truncated, 0, "TTC packet", chunk.size(), kFormat1Bytes);
  const auto format = get<std::uint8_t>(chunk, 0);
  const std::size_t least = least_bytes(format);
  if (least == 0) return decode_error(unknown, 0, "TTC packet format", format);
  if (chunk.size() < least) return decode_error(truncated, 0, "TTC packet", chunk.size(), least);

  TtcPacket packet;
  packet.bcid = get<std::uint16_t>(chunk, kBcidAt) & 0xfffU;
  packet.l1id = {get<std::uint32_t>(chunk, kL1idAt)};
  packet.orbit = get<std::uint32_t>(chunk, kOrbitAt);
  packet.trigger_type = get<std::uint16_t>(chunk, kTriggerTypeAt);
  packet.l0id = get<std::uint32_t>(chunk, kL0idAt);
  if (format != 1) {
    std::uint64_t counter = 0;
    std::memcpy(&counter, chunk.data() + kL1aAt, kL1aBytes);
    packet.l1a_counter = counter;
    if (chunk.size() >= kTaggedBytes) packet.trigger_tag = get<std::uint8_t>(chunk, kTagAt);
  }
  return packet;
}

std::uint32_t TtcTriggerExtractor::extract(const ChunkRun& run, std::uint32_t first, std::uint32_t n, std::uint32_t* l1ids,
                                           std::uint16_t* bcids) {
  for (std::uint32_t i = 0; i < n; ++i) {
    const auto chunk = run.chunk(first + i);
    if (!readable(chunk)) return i;
    l1ids[i] = get<std::uint32_t>(chunk, kL1idAt);
    bcids[i] = get<std::uint16_t>(chunk, kBcidAt) & 0xfffU;
  }
  return n;
}

std::uint8_t TtcTriggerExtractor::trigger_type(std::span<const std::byte> chunk) {
  return readable(chunk) ? get<std::uint8_t>(chunk, kTriggerTypeAt) : std::uint8_t{0};
}

}  // namespace rodeo::formats
