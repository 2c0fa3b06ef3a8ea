// Two processes, a sender and a receiver, measured by a third one, which has neither other threads nor a network library.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <new>

#include "base/latency_histogram.h"
#include "base/mapping.h"

namespace rodeo::bench {

/// The memory that the three processes share.
struct Meeting {
  struct Side {
    std::atomic<bool> failed{false};
    char code[64] = {};
    char what[448] = {};
  };
  Side sender;
  Side receiver;
  std::atomic<bool> stop{false};  ///< true: the sender ends, then the receiver

  // The receiver writes these all the time.
  alignas(64) std::atomic<std::uint64_t> chunks{0};
  std::atomic<std::uint64_t> bytes{0};  ///< bytes of chunks; of pages if the data have no chunks
  std::atomic<std::uint64_t> mismatches{0};
  std::atomic<std::uint64_t> lost{0};  ///< chunks that the receiver knows as lost
  base::LatencyHistogram latency;

  // The sender writes these at its end.
  alignas(64) std::atomic<std::uint64_t> sent_chunks{0};
  std::atomic<std::uint64_t> sent_bytes{0};  ///< bytes of pages
};

/// Zeroed memory that is shared with all processes forked later.
class SharedMeeting {
 public:
  /// Throws SetupError (bench.processes).
  SharedMeeting();
  Meeting& operator*() const { return *std::launder(reinterpret_cast<Meeting*>(memory_.data())); }
  Meeting* operator->() const { return &**this; }

 private:
  base::Mapping memory_;
};

/// A folder of this process alone; the destructor removes it.
class BenchFolder {
 public:
  BenchFolder();
  ~BenchFolder();
  BenchFolder(const BenchFolder&) = delete;
  BenchFolder& operator=(const BenchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// The data moved between two readings of the receiver's counts.
struct Window {
  double seconds = 0;
  double chunks = 0;
  double bytes = 0;
  double sender_cpu_seconds = 0;
  double receiver_cpu_seconds = 0;

  double bytes_per_second() const { return bytes / seconds; }
  /// The bytes per second of CPU time of both sides: valid on a busy machine, too.
  double bytes_per_core_second() const { return bytes / (sender_cpu_seconds + receiver_cpu_seconds); }
};

/// The number of rounds in a measurement of this length; a very short one has one round. Results are medians of rounds.
int rounds_of(double seconds);

/// Runs `work(i)` in a thread for each i below `count`. An exception sets `stop`, and is thrown on when all threads have
/// ended.
void in_threads(std::uint32_t count, Meeting& meeting, const std::function<void(std::uint32_t)>& work);

/// Runs each side in its own process, and measures for `seconds`, from shortly after the first bytes have arrived. Then sets
/// `stop` and waits for both. Throws SetupError: the error of a side, or bench.processes.
Window measure(Meeting& meeting, double seconds, const std::function<void()>& sender, const std::function<void()>& receiver);

}  // namespace rodeo::bench
