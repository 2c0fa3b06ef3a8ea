// Serves sampled events to any number of readers on a Unix socket. A slow reader does not delay the others
// (docs/reference/formats/sampling.md).
#pragma once

#include <poll.h>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "base/unix_endpoint.h"
#include "readout/consumer/sample_message.h"

namespace rodeo::readout {

/// Used by one thread at a time.
class SampleServer {
 public:
  /// Throws SetupError: readout.socket if another readout uses this name, and errors of base::UnixEndpoint.
  explicit SampleServer(std::filesystem::path path);

  /// Waits up to `timeout_ms` for readers that connect, leave or can take data, and serves them. `now_ns`: steady clock.
  void serve(int timeout_ms, std::uint64_t now_ns);

  /// Sends to each reader that has taken all earlier samples; the others miss it. `event` is read only during the call.
  void send(SampleHeader header, std::span<const std::byte> event, std::uint64_t now_ns);

  /// Ends all connections in order: readers still get the data in their sockets.
  void close_readers() { readers_.clear(); }

  std::size_t readers() const { return readers_.size(); }

  struct Counters {
    std::uint64_t readers_seen = 0;
    std::uint64_t readers_dropped = 0;  ///< readers that read nothing for too long
    std::uint64_t sent = 0;             ///< samples, summed over readers
    std::uint64_t missed = 0;           ///< samples that readers missed because they were busy
  };
  const Counters& counters() const { return counters_; }

 private:
  struct Reader {
    base::UniqueFd fd;
    std::vector<std::byte> pending;  // bytes that the socket has not taken yet
    std::size_t pending_from = 0;
    std::uint64_t stuck_since_ns = 0;
    std::uint64_t missed = 0;
    bool gone = false;
  };

  void accept_readers();
  void push(Reader& reader, std::uint64_t now_ns);
  void erase_gone();

  base::UnixEndpoint endpoint_;
  std::vector<std::unique_ptr<Reader>> readers_;
  std::vector<pollfd> polled_;  // the listener, then one entry for each reader
  Counters counters_;
};

}  // namespace rodeo::readout
