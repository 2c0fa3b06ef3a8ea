// Two processes, one that sends and one that takes what comes, measured by a third: this one, which has neither threads nor a network library.
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

/// What the three of them share.
struct Meeting {
  struct Side {
    std::atomic<bool> failed{false};
    char code[64] = {};
    char what[448] = {};
  };
  Side sender;
  Side receiver;
  std::atomic<bool> stop{false};  ///< the sender ends, then the receiver

  // By the receiver, as it goes on.
  alignas(64) std::atomic<std::uint64_t> chunks{0};
  std::atomic<std::uint64_t> bytes{0};  ///< of chunks; of pages where there are none
  std::atomic<std::uint64_t> mismatches{0};
  std::atomic<std::uint64_t> lost{0};  ///< chunks of which it knows that they were lost
  base::LatencyHistogram latency;

  // By the sender, at its end.
  alignas(64) std::atomic<std::uint64_t> sent_chunks{0};
  std::atomic<std::uint64_t> sent_bytes{0};  ///< of pages
};

/// Zeroed memory that processes made from here on share.
class SharedMeeting {
 public:
  /// Throws SetupError (bench.processes).
  SharedMeeting();
  Meeting& operator*() const { return *std::launder(reinterpret_cast<Meeting*>(memory_.data())); }
  Meeting* operator->() const { return &**this; }

 private:
  base::Mapping memory_;
};

/// A folder of this process alone, gone at its owner's end.
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

/// What moved between two looks at the receiver's counts.
struct Window {
  double seconds = 0;
  double chunks = 0;
  double bytes = 0;
  double sender_cpu_seconds = 0;
  double receiver_cpu_seconds = 0;

  double bytes_per_second() const { return bytes / seconds; }
  /// Of the CPU of both sides: holds on a busy machine, too.
  double bytes_per_core_second() const { return bytes / (sender_cpu_seconds + receiver_cpu_seconds); }
};

/// Into how many rounds a measurement of so many seconds is cut, of which medians are taken: a moment is one.
int rounds_of(double seconds);

/// A thread of one side for each number from 0; what one throws sets `stop`, and comes out when all have ended.
void in_threads(std::uint32_t count, Meeting& meeting, const std::function<void(std::uint32_t)>& work);

/// Runs both sides, each in a process of its own, and measures for so long, from a moment after the first bytes have come. Then `stop`, and both end.
/// Throws SetupError: what a side has thrown, or bench.processes.
Window measure(Meeting& meeting, double seconds, const std::function<void()>& sender, const std::function<void()>& receiver);

}  // namespace rodeo::bench
