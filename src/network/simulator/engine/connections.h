// The connections of an event-building network, one from each readout to each filter node: fragments under way, and TCP at
// both ends.
#pragma once

#include <cstdint>

#include "network/simulator/ring.h"
#include "network/simulator/tcp_receiver.h"
#include "network/simulator/tcp_sender.h"

namespace rodeo::network {

/// A readout's answer to a request, under way through a connection.
struct Fragment {
  std::uint32_t end;  ///< number of the segment after its last one
  std::uint32_t event;
  std::uint32_t last_payload;
};

/// The end of a connection at the node, on one cache line.
struct alignas(64) Receiving {
  TcpReceiver receiver;
  std::uint32_t fragment_end = 0;  ///< end of the fragment that is arriving
  bool arriving = false;           ///< a fragment is arriving
};

/// A connection, seen from the readout.
struct alignas(64) Flow {
  std::uint64_t deferred = 0;    ///< step in which one of its tasks waits for its turn
  std::uint32_t oldest_end = 0;  ///< end of fragments.front()
  std::uint32_t answers = 0;     ///< requests that the readout is working on
  TcpSender sender;
  Ring<Fragment> fragments;    ///< fragments that are not yet acknowledged
  std::uint64_t received = 0;  ///< index in `fragments` of the first one that was not received as a whole
  std::uint64_t dropped = 0;
  std::uint64_t fragments_done = 0;

  /// Drops fully acknowledged fragments.
  void drop_acknowledged() {
    while (!before(sender.unacknowledged(), oldest_end) && !fragments.empty()) {
      fragments.pop();
      if (!fragments.empty()) oldest_end = fragments.front().end;
    }
  }
};

}  // namespace rodeo::network
