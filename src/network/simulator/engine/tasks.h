// What has to be done within a step in order of time, whatever queue it came from.
#pragma once

#include <cstdint>

#include "network/simulator/packet.h"
#include "network/simulator/tcp_sender.h"
#include "network/simulator/time.h"

namespace rodeo::network {

/// Of a readout.
struct Task {
  enum class Kind : std::uint8_t { returning, answer, timer, request };

  Picoseconds time;
  Kind kind;
  std::uint32_t flow;
  std::uint32_t what;  ///< answer, request: the event; returning: its place among what has returned
  bool operator<(const Task& other) const {
    if (time != other.time) return time < other.time;
    if (kind != other.kind) return kind < other.kind;
    return flow < other.flow;
  }
};

/// What has come back to a readout, with the selective acknowledgements in it.
struct Returned {
  Returning one;
  Acknowledgement blocks;
};

/// Of a filter node: an acknowledgement that was held back.
struct DelayedAck {
  Picoseconds time;
  std::uint32_t flow;
};

}  // namespace rodeo::network
