// Ends a process that hangs while it ends: a driver, a disk or a plug-in does not return, so nothing can be given up.
#pragma once

#include <chrono>
#include <string>
#include <thread>

namespace rodeo::process {

/// After begin() the process has `limit` and three seconds to destroy this object. Otherwise the object writes a message to
/// stderr and ends the process with exit status 1, without a report. Called by one thread. begin() starts a thread.
class KillTimer {
 public:
  explicit KillTimer(std::chrono::nanoseconds limit, std::string name) : limit_(limit), name_(std::move(name)) {}

  /// The user asked for the end. Further calls change nothing.
  void begin();

 private:
  const std::chrono::nanoseconds limit_;
  const std::string name_;
  std::jthread thread_;
};

}  // namespace rodeo::process
