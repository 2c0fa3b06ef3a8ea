// Wakes a thread that waits in poll().
#pragma once

#include "base/fd_socket.h"

namespace rodeo::base {

/// Any thread may wake; one thread waits.
class Wake {
 public:
  /// Throws SetupError: base.resources.
  Wake();

  /// For poll() with POLLIN: readable from wake() until clear().
  int get() const { return event_.get(); }
  void wake() const noexcept;
  void clear() const noexcept;

 private:
  UniqueFd event_;
};

}  // namespace rodeo::base
