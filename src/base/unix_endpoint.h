// A Unix socket on which one process serves: the lock on the file beside it marks the owner of the name.
#pragma once

#include <sys/socket.h>

#include <filesystem>

#include "base/lock_file.h"

namespace rodeo::base {

/// Listens at a path, for this user only. Replaces a dead process's socket of this name, but not that of a living process.
/// The destructor removes the socket, and the lock file while it is still locked. Move only; one thread at a time.
class UnixEndpoint {
 public:
  struct Settings {
    std::filesystem::path path;
    Error taken;                      ///< the error if another process has the name
    std::filesystem::path lock = {};  ///< path of the lock file; empty: the socket's path with ".lock" appended
    LockedPart part = LockedPart::whole();
    int type = SOCK_STREAM;
    int backlog = 64;
  };

  /// Errors: `taken`, and those of listen_unix().
  static Result<UnixEndpoint> open(Settings settings);

  UnixEndpoint() = default;
  UnixEndpoint(UnixEndpoint&&) = default;
  UnixEndpoint& operator=(UnixEndpoint&& other) noexcept;  ///< swaps the two
  ~UnixEndpoint();

  const std::filesystem::path& path() const { return settings_.path; }
  int get() const { return listener_.get(); }  ///< for poll(); -1: not listening
  explicit operator bool() const { return static_cast<bool>(listener_); }

  /// The next connection, non-blocking and close-on-exec; empty if none waits.
  UniqueFd accept() const;

  /// Stops accepting connections; the name stays taken until listen().
  void hide();
  Result<void> listen();

 private:
  Settings settings_;
  UniqueFd lock_;
  UniqueFd listener_;
};

}  // namespace rodeo::base
