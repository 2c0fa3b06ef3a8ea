// The service `events`. Its thread receives events from clients, has them recorded, and answers when they are safe.
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
  std::vector<NamedCounter> counters;  ///< Counters of kRecorderCounters, then those of the network.
  std::size_t open_files = 0;
  std::size_t events_waiting = 0;    ///< Events that are received, but not safe yet.
  std::size_t requests_waiting = 0;  ///< Requests that wait because the disk is busy.
  std::uint64_t ids = 0;
  std::size_t clients = 0;
  double cpu_seconds = 0;
  std::string trouble;                        ///< Reason why no event is accepted at the moment.
  std::vector<FragmentConsumer::File> files;  ///< Files closed in this life of the recorder.
  std::uint64_t operator[](std::string_view counter) const;
};

/// One thread, another than the server's, calls start(), end() and all other functions.
class RecorderServer {
 public:
  /// Listens. Requests are refused as `not_ready` until start(). Throws SetupError.
  explicit RecorderServer(const RecorderSettings& settings);
  ~RecorderServer();

  /// Reads back the ids of this run in its files, then accepts events. Blocks while it reads. Throws SetupError.
  void start(std::uint32_t run_number);
  /// Begins to close files and to answer waiting requests; does not block. ended() becomes true afterwards.
  void end();
  /// After end(): waiting requests get no answer. Nodes keep these events; `rodeo data recover` can recover the open files.
  void give_up() { leaving_.store(true, std::memory_order_release); }
  bool ended() const { return ended_.load(std::memory_order_acquire); }

  void slow_down(std::chrono::nanoseconds each_write) { delay_ns_.store(each_write.count()); }

  RecorderStatus status() const;
  std::vector<std::string> take_messages();

 private:
  using Request = transport::Replier::Request;

  void run();
  bool handle(Request& request, std::uint64_t now_ns);
  bool answer_have(const Request& request);
  void show(std::uint64_t now_ns, bool last);

  const RecorderSettings settings_;
  std::unique_ptr<transport::Replier> replier_;

  // The two threads share these members.
  mutable std::mutex mutex_;
  std::unique_ptr<RunRecording> next_recording_;  // start() passes it to the server's thread.
  RecorderStatus shown_;
  std::vector<std::string> messages_;
  std::atomic<bool> ending_{false};
  std::atomic<bool> leaving_{false};
  std::atomic<bool> ended_{false};
  std::atomic<std::int64_t> delay_ns_{0};

  // Only the server's thread uses these members.
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
