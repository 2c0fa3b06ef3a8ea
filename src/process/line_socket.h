// One request, one reply, a line each, over a Unix socket: how a running process takes orders from the command line.
// Protocol: docs/protocols/control.md.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/unix_endpoint.h"

namespace rodeo::process {

/// The server's end. One thread; it does its work inside serve().
class LineServer {
 public:
  /// Throws SetupError: process.name_taken if a process of this name runs, and what base::UnixEndpoint says.
  explicit LineServer(const std::filesystem::path& path);

  /// Waits up to `wait` for requests and answers those that are there: `answer` gets a line without its end and returns one.
  /// Nobody holds up the others: a client that sends more than 64 KiB on a line or whose answer throws is dropped, and the seventeenth takes
  /// the place of the one that has been there longest.
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

/// Whether somebody listens at `path`. What a dead process left there is removed, with its lock file, if that can be told for certain.
bool somebody_listens(const std::filesystem::path& path);

/// The client's end: sends a line and returns the one that comes back. Errors "process.unreachable" (nobody listens, or no whole answer
/// within `patience`).
Result<std::string> ask(const std::filesystem::path& path, const std::string& line, std::chrono::milliseconds patience);

}  // namespace rodeo::process
