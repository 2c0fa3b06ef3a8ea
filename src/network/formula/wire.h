// Payload to bytes on the wire: every TCP segment carries headers; the MTU gives the number of segments.
#pragma once

#include <cstdint>

#include "base/error.h"

namespace rodeo::network {

/// Ethernet header 14 (the frame check sequence, preamble and gap are not stored in buffers), IPv4 20, TCP 20, TCP
/// timestamps 12.
inline constexpr std::uint32_t kEthernetBytes = 14;
inline constexpr std::uint32_t kIpTcpBytes = 20 + 20 + 12;

struct WireSize {
  std::uint64_t payload_bytes = 0;
  std::uint64_t wire_bytes = 0;
  std::uint64_t packets = 0;
  std::uint32_t segment_bytes = 0;  ///< payload of a full packet: MTU - 52

  double overhead() const { return static_cast<double>(wire_bytes) / static_cast<double>(payload_bytes); }
};

/// The size of an event of `payload_bytes` in `fragments` answers of equal size; the last packet of an answer is rarely
/// full. Errors: network.zero, network.bad_mtu (no room for payload after the headers, or more than IPv4 carries).
Result<WireSize> wire_size(std::uint64_t payload_bytes, std::uint32_t mtu_bytes, std::uint32_t fragments = 1);

}  // namespace rodeo::network
