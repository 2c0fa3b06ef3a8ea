// An emulated readout: answers each request at once with the requested number of bytes (paper §3.1).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/fd_socket.h"
#include "base/latency_histogram.h"
#include "network/laboratory/message.h"

namespace rodeo::network::laboratory {

class ReadoutEmulator {
 public:
  struct Counters {
    std::uint64_t answers = 0;
    std::uint64_t retransmits = 0;
    std::uint64_t timeouts = 0;      ///< count of the whole namespace or host
    std::uint64_t loss_probes = 0;   ///< count of the whole namespace or host
    std::uint64_t bad_requests = 0;  ///< connections closed because of a bad request
    std::uint64_t machine_drops = 0;
  };

  explicit ReadoutEmulator(base::UniqueFd listener);
  ~ReadoutEmulator();

  /// Serves requests. Calls on_control when the descriptor `control` is readable, and ends when on_control returns false.
  void serve(int control, const std::function<bool()>& on_control);

  /// Restarts the counters at 0.
  void mark();
  Counters counters() const;  ///< counts since mark()
  /// The times that requests waited in the kernel before they were read, since mark(). Only this host's clock is used.
  const base::LatencyHistogram& lateness() const { return *lateness_; }
  std::uint64_t smallest_round_trip_ns() const;

 private:
  struct Connection;

  Counters total() const;
  void accept_all();
  bool read_requests(Connection& connection);  ///< false: close the connection
  bool write_replies(Connection& connection);
  void watch(Connection& connection, bool writable);
  void drop(int fd);

  base::UniqueFd listener_;
  base::UniqueFd epoll_;
  std::map<int, std::unique_ptr<Connection>> connections_;
  std::unique_ptr<base::LatencyHistogram> lateness_;
  Counters counted_;  // counts of this object, and of closed connections
  Counters marked_;
  std::uint64_t smallest_round_trip_ns_ = 0;
};

}  // namespace rodeo::network::laboratory
