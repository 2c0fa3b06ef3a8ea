// The network with nothing of ours on it: what pages and ping-pongs reach over a FabricPort or a socket when nobody looks at them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/fd_socket.h"
#include "bench/network/two_processes.h"

namespace rodeo::bench {

/// Two connected sockets, for the two processes that are made next.
struct SocketPair {
  std::array<base::UniqueFd, 2> ends;
  static SocketPair messages();  ///< each send is one receive
  static SocketPair tcp();       ///< over loopback
};

/// How many ends there are on each side: a thread each, and a connection between every two of them.
struct BareMesh {
  std::uint32_t senders = 1;
  std::uint32_t receivers = 1;
};

/// Pages over a FabricPort of this provider; credit goes over a plain socket. `filled`: each is copied from other memory before it goes, as data of a card
/// must be; else the same bytes are sent again and again, which caches like.
Window bare_pages(const std::string& provider, std::size_t page_bytes, bool filled, double seconds, BareMesh mesh = {});
/// Writes of a page, reads of a page.
Window socket_pages(std::size_t page_bytes, double seconds);
/// One message there, one back. Half of the round trip that half of them do not exceed [ns].
double bare_half_round_trip_ns(const std::string& provider, std::size_t bytes, double seconds);

}  // namespace rodeo::bench
