// One request and one reply, a line each, over a Unix socket. The command line sends orders to running processes with it.
// Protocol: docs/reference/protocols/control.md.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/unix_endpoint.h"

namespace rodeo::process {

/// The server's end. Used by one thread, which does the work inside serve().
class LineServer {
 public:
  /// Throws SetupError: process.name_taken if a process of this name runs, and the errors of base::UnixEndpoint.
  explicit LineServer(const std::filesystem::path& path);

  /// Waits up to `wait` for requests and answers them. `answer` gets a line without its newline and returns one.
  /// No client blocks the others. A client is dropped if it sends a line of more than 64 KiB or if its answer throws. The
  /// seventeenth client replaces the oldest one.
  void serve(std::chrono::milliseconds wait, const std::function<std::string(const std::string&)>& answer);

  const std::filesystem::path& path() const { return endpoint_.path(); }

 private:
  struct Client {
    base::UniqueFd fd;
    std::string in;
    std::string out;
  };

  void accept_clients();
  bool serve_client(Client& client, const std::function<std::string(const std::string&)>& answer);

  base::UnixEndpoint endpoint_;
  std::vector<Client> clients_;
};

/// True if a process listens at `path`. Removes the socket and the lock file of a dead process if it is certainly dead.
bool is_listening(const std::filesystem::path& path);

/// The client's end: sends a line and returns the reply. Error "process.unreachable" (no process listens, or no complete
/// answer within `patience`).
Result<std::string> ask(const std::filesystem::path& path, const std::string& line, std::chrono::milliseconds patience);

}  // namespace rodeo::process
