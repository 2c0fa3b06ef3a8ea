// TCP sockets for the emulators, and the kernel's counters of them.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "base/fd_socket.h"

namespace rodeo::network::laboratory {

/// Listens at an IPv4 address; port 0: a free port is chosen. Accepted connections inherit the congestion control. Errors:
/// network.agent, network.unsupported (no such congestion control).
Result<base::UniqueFd> listen_at(const std::string& address, std::uint16_t port, const std::string& congestion_control);
std::uint16_t port_of(int socket);

/// Connects to "ADDRESS:PORT" within 10 s; non-blocking afterwards, without Nagle's delay. Errors as for listen_at().
Result<base::UniqueFd> connect_to(const std::string& endpoint, const std::string& congestion_control);

/// Makes an accepted socket non-blocking, without Nagle's delay, with time stamps of arrival on received data.
void prepare_accepted(int socket);

struct TcpCounters {
  std::uint64_t retransmits = 0;
  std::uint64_t smallest_round_trip_ns = 0;  ///< 0: no round trip measured
};
TcpCounters tcp_counters(int socket);

/// A counter of the calling thread's namespace in /proc/net/netstat ("TCPTimeouts"); 0 if there is no such counter.
std::uint64_t tcp_statistic(const std::string& name);

/// Number of packets that this machine lost because its backlog was full, in all its namespaces.
std::uint64_t machine_drops();

/// Sets SCHED_FIFO; returns true if the system allowed it.
bool become_real_time();

}  // namespace rodeo::network::laboratory
