// Serves sampled events to any number of readers on a Unix socket; none of them can hold up the others
// (docs/formats/sampling.md).
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
  /// Throws SetupError: readout.socket if another one has this name, and what base::UnixEndpoint says.
  explicit SampleServer(std::filesystem::path path);

  /// Waits up to `timeout_ms` for readers that come, go, or can take more, and serves them. `now_ns`: steady clock.
  void serve(int timeout_ms, std::uint64_t now_ns);

  /// Sends to each reader that has taken all before; the others miss it. `event` is only read during the call.
  void send(SampleHeader header, std::span<const std::byte> event, std::uint64_t now_ns);

  /// Ends all connections, in order: what a socket holds is still read.
  void close_readers() { readers_.clear(); }

  std::size_t readers() const { return readers_.size(); }

  struct Counters {
    std::uint64_t readers_seen = 0;
    std::uint64_t readers_dropped = 0;  ///< read nothing for too long
    std::uint64_t sent = 0;             ///< samples, summed over readers
    std::uint64_t missed = 0;           ///< by readers that were busy
  };
  const Counters& counters() const { return counters_; }

 private:
  struct Reader {
    base::UniqueFd fd;
    std::vector<std::byte> pending;  // what the socket did not take yet
    std::size_t pending_from = 0;
    std::uint64_t stuck_since_ns = 0;
    std::uint64_t missed = 0;
    bool gone = false;
  };

  void accept_readers();
  void push(Reader& reader, std::uint64_t now_ns);
  void forget_the_gone();

  base::UnixEndpoint endpoint_;
  std::vector<std::unique_ptr<Reader>> readers_;
  std::vector<pollfd> polled_;  // the listener, then one for each reader
  Counters counters_;
};

}  // namespace rodeo::readout
