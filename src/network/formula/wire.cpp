#include "network/formula/wire.h"

#include <fmt/core.h>

namespace rodeo::network {

Result<WireSize> wire_size(std::uint64_t payload_bytes, std::uint32_t mtu_bytes, std::uint32_t fragments) {
  if (payload_bytes == 0)
    return std::unexpected(Error{"network.zero", "the event size is 0", "", "give a size, for example 5MB"});
  if (fragments == 0 || fragments > payload_bytes) {
    return std::unexpected(Error{"network.zero",
                                 fmt::format("{} bytes cannot come in {} fragments", payload_bytes, fragments), "",
                                 "give at least one readout, and at least one byte to each"});
  }
  // Every IPv4 host accepts 576 bytes (RFC 791); the length field of IPv4 allows at most 65535.
  if (mtu_bytes < 576 || mtu_bytes > 65535) {
    return std::unexpected(Error{"network.bad_mtu", fmt::format("an MTU of {} bytes is outside 576 to 65535", mtu_bytes), "",
                                 "1500 is Ethernet's, 9000 that of jumbo frames"});
  }
  WireSize size{.payload_bytes = payload_bytes, .segment_bytes = mtu_bytes - kIpTcpBytes};
  const auto packets = [&](std::uint64_t bytes) { return (bytes + size.segment_bytes - 1) / size.segment_bytes; };
  const std::uint64_t larger = payload_bytes % fragments;  // number of fragments with one byte more
  const std::uint64_t bytes = payload_bytes / fragments;
  size.packets = larger * packets(bytes + 1) + (fragments - larger) * packets(bytes);
  size.wire_bytes = payload_bytes + size.packets * (kEthernetBytes + kIpTcpBytes);
  return size;
}

}  // namespace rodeo::network
