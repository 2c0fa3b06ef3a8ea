// A Unix socket on which one process serves: the lock on the file beside it says whose the name is.
#pragma once

#include <sys/socket.h>

#include <filesystem>

#include "base/lock_file.h"

namespace rodeo::base {

/// Listens at a path, for this user only. What a dead process left under the name is replaced; a living one's is not. The end removes the
/// socket, and the lock file while it is still locked. Move only; one thread at a time.
class UnixEndpoint {
 public:
  struct Settings {
    std::filesystem::path path;
    Error taken;                      ///< what it is refused with if somebody else has the name
    std::filesystem::path lock = {};  ///< of the lock file; empty: the path with ".lock" behind it
    LockedPart part = LockedPart::whole();
    int type = SOCK_STREAM;
    int backlog = 64;
  };

  /// Errors: `taken`, and those of listen_unix().
  static Result<UnixEndpoint> open(Settings settings);

  UnixEndpoint() = default;
  UnixEndpoint(UnixEndpoint&&) = default;
  UnixEndpoint& operator=(UnixEndpoint&& other) noexcept;  ///< the other one has what this one had
  ~UnixEndpoint();

  const std::filesystem::path& path() const { return settings_.path; }
  int get() const { return listener_.get(); }  ///< for poll(); -1: it does not listen
  explicit operator bool() const { return static_cast<bool>(listener_); }

  /// The next who has connected, non-blocking and close-on-exec; empty if nobody waits.
  UniqueFd accept() const;

  /// Nobody reaches it any more, and the name stays taken until listen().
  void hide();
  Result<void> listen();

 private:
  Settings settings_;
  UniqueFd lock_;
  UniqueFd listener_;
};

}  // namespace rodeo::base
