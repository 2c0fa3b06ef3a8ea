// How far long work of `rodeo data` is, on stderr: a line that is redrawn on a terminal, a plain line every few seconds elsewhere.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "process/live_view.h"
#include "storage/progress.h"

namespace rodeo::cli {

/// Work that is over before the first line is due says nothing. advance() by any thread; the object outlives what it gave out.
class ProgressLine {
 public:
  /// "verifying run._0001.data", the bytes that it is about (0: not known), and how often the work goes through them.
  ProgressLine(std::string doing, std::uint64_t total_bytes, unsigned passes = 1);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void advance(std::uint64_t bytes);
  storage::Progress told() {
    return [this](std::uint64_t bytes) { advance(bytes); };
  }

  /// Takes the line off the screen, before something else is printed; advance() brings it back.
  void clear();

  /// What else there is to say, behind the bytes: "12 000 events".
  void say(std::string also);

 private:
  std::string line(double seconds, std::uint64_t done) const;

  const std::string doing_;
  const std::uint64_t total_;
  const unsigned passes_;
  const std::uint64_t start_ns_;
  std::atomic<std::uint64_t> done_{0};
  std::mutex mutex_;
  std::string also_;
  process::LiveView view_;
};

}  // namespace rodeo::cli
