// One request, one reply, a line each, over a Unix socket: how a running process takes orders from the command line.
// Protocol: docs/protocols/control.md.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"

namespace rodeo::process {

/// The server's end. One thread; it does its work inside serve().
class LineServer {
 public:
  /// Listens at `path`, for this user only. Beside it stands a locked file `path.lock`, so that a second process with the same
  /// name is refused (code "control.name_taken"), while what a dead process left behind is replaced. Throws SetupError.
  explicit LineServer(std::filesystem::path path);
  ~LineServer();

  LineServer(const LineServer&) = delete;
  LineServer& operator=(const LineServer&) = delete;

  /// Waits up to `wait` for requests and answers those that are there: `answer` gets a line without its end and returns one.
  /// Nobody holds up the others: a client that sends more than 64 KiB on a line or whose answer throws is dropped, and the seventeenth takes
  /// the place of the one that has been there longest.
  void serve(std::chrono::milliseconds wait, const std::function<std::string(const std::string&)>& answer);

  const std::filesystem::path& path() const { return path_; }

 private:
  struct Client {
    int fd = -1;
    std::string in;
    std::string out;
  };

  void take_lock();
  void accept_clients();
  bool serve_client(Client& client, const std::function<std::string(const std::string&)>& answer);

  std::filesystem::path path_;
  std::filesystem::path lock_path_;
  int lock_ = -1;
  int listener_ = -1;
  std::vector<Client> clients_;
};

/// Whether somebody listens at `path`. What a dead process left there is removed, with its lock file, if that can be told for certain.
bool somebody_listens(const std::filesystem::path& path);

/// The client's end: sends a line and returns the one that comes back. Errors "control.unreachable" (nobody listens, or no whole answer
/// within `patience`).
Result<std::string> ask(const std::filesystem::path& path, const std::string& line, std::chrono::milliseconds patience);

}  // namespace rodeo::process
