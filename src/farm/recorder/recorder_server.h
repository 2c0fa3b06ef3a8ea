// The service `events` on the network: a thread that takes events from whoever sends them, has them recorded, and answers when they are safe.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/thread.h"
#include "farm/recorder/run_recording.h"
#include "farm/recorder/settings.h"
#include "transport/replier.h"

namespace rodeo::farm {

struct RecorderStatus {
  std::uint32_t run_number = 0;
  std::vector<NamedCounter> counters;  ///< kRecorderCounters, then those of the network
  std::size_t open_files = 0;
  std::size_t events_waiting = 0;    ///< taken, and not safe yet
  std::size_t requests_waiting = 0;  ///< not taken yet, for the disk is busy
  std::uint64_t ids = 0;
  std::size_t clients = 0;
  double cpu_seconds = 0;
  std::string trouble;                        ///< why nothing is taken at the moment
  std::vector<FragmentConsumer::File> files;  ///< closed in this life of the recorder
  std::uint64_t operator[](std::string_view counter) const;
};

/// start(), end() and the rest by one thread, which is not the server's.
class RecorderServer {
 public:
  /// Listens: requests are refused as `not_ready` until start(). Throws SetupError.
  explicit RecorderServer(const RecorderSettings& settings);
  ~RecorderServer();

  /// Reads back what this run has here, and takes events from then on. Blocks for that long. Throws SetupError.
  void start(std::uint32_t run_number);
  /// Files are closed, what waits is answered; does not wait. Then ended() becomes true.
  void end();
  /// After end(): what waits for a disk is not answered any more. Nodes keep it, and files that are open are for `rodeo data recover`.
  void give_up() { leaving_.store(true, std::memory_order_release); }
  bool ended() const { return ended_.load(std::memory_order_acquire); }

  void slow_down(std::chrono::nanoseconds each_write) { delay_ns_.store(each_write.count()); }

  RecorderStatus status() const;
  std::vector<std::string> take_messages();

 private:
  using Request = transport::Replier::Request;

  void run();
  bool take(Request& request, std::uint64_t now_ns);
  bool answer_have(const Request& request);
  void show(std::uint64_t now_ns, bool last);

  const RecorderSettings settings_;
  std::unique_ptr<transport::Replier> replier_;

  // Between the two threads
  mutable std::mutex mutex_;
  std::unique_ptr<RunRecording> next_;  // from start() to the server
  RecorderStatus shown_;
  std::vector<std::string> messages_;
  std::atomic<bool> ending_{false};
  std::atomic<bool> leaving_{false};
  std::atomic<bool> ended_{false};
  std::atomic<std::int64_t> delay_ns_{0};

  // Of the server
  std::unique_ptr<RunRecording> recording_;
  std::deque<Request> waiting_;
  std::vector<Request> requests_;
  std::vector<transport::Replier::Dropped> dropped_;
  std::vector<RunRecording::Answer> answers_;
  std::vector<std::byte> scratch_;
  std::vector<FragmentConsumer::File> files_;
  std::uint64_t shown_ns_ = 0;
  std::int64_t delay_set_ns_ = 0;
  base::ThreadCpu cpu_;
  std::thread thread_;
};

}  // namespace rodeo::farm
