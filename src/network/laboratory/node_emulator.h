// An emulated filter node: requests the fragments of its events from all readouts at the times of the schedule, receives and
// discards them (paper §3.1). A separate thread paces the requests with clock_nanosleep.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/fd_socket.h"
#include "network/laboratory/message.h"
#include "network/laboratory/schedule.h"

namespace rodeo::network::laboratory {

class NodeEmulator {
 public:
  struct Result {
    std::uint64_t scheduled = 0;  ///< events of this node after warm-up
    /// Scheduled events that were requested; fewer if too many others were under way until the end.
    std::uint64_t requested = 0;
    std::uint64_t held = 0;                   ///< requested events that waited because `in_flight` others were under way
    std::uint64_t completed = 0;              ///< requested events that were complete by the end of the drain
    double completed_in_time = 0;             ///< sum, over all completed events, of the share of their time while counting
    std::vector<std::uint64_t> latencies_ns;  ///< latencies of completed events: from the first request to the last byte
    /// Lateness of the first request relative to the schedule, of events that did not wait.
    std::vector<std::uint64_t> lateness_ns;
    bool real_time = false;
  };

  /// Connects to the readouts. Errors: network.agent, network.unsupported.
  rodeo::Result<void> connect(const std::vector<std::string>& readouts, const std::string& congestion_control);

  /// Blocks until all events are complete, or `drain_ns` after the end; then closes the connections. `start_ns` is on this
  /// host's steady clock. Ends early when `control` hangs up. Errors: network.agent (a readout closed or sent an invalid
  /// reply, the start is in the past).
  rodeo::Result<Result> run(const std::vector<ScheduledEvent>& schedule, std::uint64_t start_ns, std::uint64_t duration_ns,
                            std::uint64_t drain_ns, std::uint32_t in_flight, int control);

 private:
  struct Connection {
    base::UniqueFd socket;
    std::array<std::byte, kMessageBytes> head{};
    std::size_t head_filled = 0;
    std::uint64_t payload_left = 0;
    std::uint64_t event = 0;
  };
  struct UnderWay {
    std::uint64_t requested_ns = 0;
    std::uint64_t bytes = 0;
    std::uint32_t missing = 0;  ///< number of missing fragments
    bool counts = false;
  };

  void pace(const std::vector<ScheduledEvent>& schedule, std::uint64_t start_ns, std::uint64_t end_ns,
            std::uint32_t in_flight);
  bool request(const ScheduledEvent& event);
  bool read(Connection& connection, std::size_t readout, std::uint64_t start_ns, std::uint64_t end_ns);
  bool finish_fragment(Connection& connection, std::uint64_t start_ns, std::uint64_t end_ns);

  std::vector<Connection> connections_;
  std::vector<std::byte> scratch_;
  base::UniqueFd paced_;  // eventfd: signals that the pacing thread has ended

  std::mutex mutex_;  // protects all members below
  std::condition_variable changed_;
  std::unordered_map<std::uint64_t, UnderWay> under_way_;
  Result result_;
  bool stopped_ = false;
  std::string wrong_;
};

}  // namespace rodeo::network::laboratory
