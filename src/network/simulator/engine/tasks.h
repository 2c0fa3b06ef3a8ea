// The work of one step from all queues, sorted by time.
#pragma once

#include <cstdint>

#include "network/simulator/packet.h"
#include "network/simulator/tcp_sender.h"
#include "network/simulator/time.h"

namespace rodeo::network {

/// A task of a readout.
struct Task {
  enum class Kind : std::uint8_t { returning, answer, timer, request };

  Picoseconds time;
  Kind kind;
  std::uint32_t flow;
  /// For an answer or a request: the event; for a returned packet: its index in the list of returned packets.
  std::uint32_t what;
  bool operator<(const Task& other) const {
    if (time != other.time) return time < other.time;
    if (kind != other.kind) return kind < other.kind;
    return flow < other.flow;
  }
};

/// A packet that returned to a readout, with its selective acknowledgements.
struct Returned {
  Returning one;
  Acknowledgement blocks;
};

/// A task of a filter node: a delayed acknowledgement.
struct DelayedAck {
  Picoseconds time;
  std::uint32_t flow;
};

}  // namespace rodeo::network
