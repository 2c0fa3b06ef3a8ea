// Packets: data packets (or trains of them), and packets from nodes to readouts.
#pragma once

#include <cstdint>

#include "network/simulator/time.h"

namespace rodeo::network {

inline constexpr unsigned kFlowBits = 21;
inline constexpr unsigned kNumberBits = 27;
inline constexpr std::uint32_t kMaxFlows = 1u << kFlowBits;

/// Connection, number of the first segment (its low bits) and payload of the last segment, in one word. All other segments
/// are full.
struct PacketWord {
  std::uint64_t bits = 0;

  static PacketWord of(std::uint32_t flow, std::uint32_t number, std::uint32_t last_payload) {
    return {flow | (static_cast<std::uint64_t>(number & ((1u << kNumberBits) - 1)) << kFlowBits) |
            (static_cast<std::uint64_t>(last_payload) << (kFlowBits + kNumberBits))};
  }
  std::uint32_t flow() const { return static_cast<std::uint32_t>(bits) & (kMaxFlows - 1); }
  /// The full number of the first segment, given a number near it.
  std::uint32_t number_near(std::uint32_t near) const {
    const auto low = static_cast<std::uint32_t>(bits >> kFlowBits);
    return near +
           static_cast<std::uint32_t>(static_cast<std::int32_t>((low - near) << (32 - kNumberBits)) >> (32 - kNumberBits));
  }
  std::uint32_t last_payload() const { return static_cast<std::uint32_t>(bits >> (kFlowBits + kNumberBits)); }
};

/// A packet at some place, with the time at which its last bit arrives or departs.
template <bool kTrain>
struct Packet {
  Picoseconds time;
  PacketWord word;
  static constexpr std::uint32_t count() { return 1; }
  static Packet of(Picoseconds time, PacketWord word, std::uint32_t) { return {time, word}; }
};

/// A train: consecutive segments of a connection.
template <>
struct Packet<true> {
  Picoseconds time;
  PacketWord word;
  std::uint32_t segments;
  std::uint32_t count() const { return segments; }
  static Packet of(Picoseconds time, PacketWord word, std::uint32_t count) { return {time, word, count}; }
};

/// The physical uplink of a connection: the hash of its addresses determines it.
inline std::uint32_t hash_to_uplink(std::uint32_t flow, std::uint32_t uplinks, std::uint64_t seed) {
  std::uint64_t z = (flow + seed * 0x100000001) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return static_cast<std::uint32_t>((z ^ (z >> 31)) % uplinks);
}

/// A packet from a filter node to a readout.
struct Returning {
  static constexpr std::uint32_t kNoEvent = UINT32_MAX;

  Picoseconds time;  ///< time of arrival at the readout
  std::uint32_t flow;
  std::uint32_t cumulative;  ///< all segments before this number are acknowledged
  std::uint32_t event;       ///< the event of a request; kNoEvent: an acknowledgement
  std::uint16_t count;       ///< number of acknowledgements in this packet, for a train of segments
  std::uint8_t blocks;       ///< number of selective acknowledgements in the queue of blocks
  bool duplicate;
};

}  // namespace rodeo::network
