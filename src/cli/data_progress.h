// Progress of long work of `rodeo data`, on stderr: a redrawn line on a terminal, a plain line every few seconds elsewhere.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "process/live_view.h"
#include "storage/progress.h"

namespace rodeo::cli {

/// Short work, over before the first line is due, prints nothing. Any thread may call advance(). The object must outlive the
/// functions of told().
class ProgressLine {
 public:
  /// `doing`: "verifying run._0001.data"; `total_bytes`: 0 if unknown; `passes`: how often the work reads these bytes.
  ProgressLine(std::string doing, std::uint64_t total_bytes, unsigned passes = 1);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void advance(std::uint64_t bytes);
  storage::Progress told() {
    return [this](std::uint64_t bytes) { advance(bytes); };
  }

  /// Removes the line from the screen before other output; advance() shows it again.
  void clear();

  /// Sets a text after the bytes: "12 000 events".
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
