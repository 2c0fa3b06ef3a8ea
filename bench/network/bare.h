// The network without Rodeo's transport: the rates of pages and ping-pongs over a FabricPort or a socket; the bytes are not
// read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/fd_socket.h"
#include "bench/network/two_processes.h"

namespace rodeo::bench {

/// Two connected sockets, for the next two processes.
struct SocketPair {
  std::array<base::UniqueFd, 2> ends;
  static SocketPair messages();  ///< each send is one receive
  static SocketPair tcp();       ///< over loopback
};

/// The number of ends on each side. Each end has a thread, and every sender a connection to every receiver.
struct BareMesh {
  std::uint32_t senders = 1;
  std::uint32_t receivers = 1;
};

/// Pages over a FabricPort of this provider; credit goes over a plain socket. `filled`: each page is copied from other
/// memory before it is sent, as a card's data must be; otherwise the same bytes are sent repeatedly from the cache.
Window bare_pages(const std::string& provider, std::size_t page_bytes, bool filled, double seconds, BareMesh mesh = {});
/// Pages over a plain socket: one write or read for each page.
Window socket_pages(std::size_t page_bytes, double seconds);
/// Half of the median round trip of one message [ns].
double bare_half_round_trip_ns(const std::string& provider, std::size_t bytes, double seconds);

}  // namespace rodeo::bench
