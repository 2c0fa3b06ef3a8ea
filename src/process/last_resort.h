// Ends a process whose end stands still where nothing can be given up: in a driver, a disk or a plug-in that does not return.
#pragma once

#include <chrono>
#include <string>
#include <thread>

namespace rodeo::process {

/// From begin() on the process has `limit` and a moment to come to the end of this object's life; then it says so on stderr and ends with exit status 1,
/// without a report. One thread; costs a thread from begin() on.
class LastResort {
 public:
  explicit LastResort(std::chrono::nanoseconds limit, std::string name) : limit_(limit), name_(std::move(name)) {}

  /// The end was asked for. Again changes nothing.
  void begin();

 private:
  const std::chrono::nanoseconds limit_;
  const std::string name_;
  std::jthread thread_;
};

}  // namespace rodeo::process
