// Reader: a thread that reads one stream of an input and publishes what it brings.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>

#include "base/counters.h"
#include "base/thread.h"
#include "router/router_status.h"
#include "router/wanted_links.h"
#include "transport/publisher.h"

namespace rodeo::router {

class Reader {
 public:
  struct Settings {
    std::string thread_name;
    int cpu = -1;  ///< pinned to it unless negative
    base::IdlePolicy idle = base::IdlePolicy::sleep;
    bool trigger_list = false;
    bool waits = false;  ///< for a subscriber of each link
  };

  /// Listens, and is on the bus. Throws SetupError, as Publisher does.
  Reader(Settings settings, std::unique_ptr<DataStream> stream, const transport::PublisherSettings& publisher,
         std::span<const Fid> links);
  /// Waits for the thread.
  ~Reader();

  void start();
  void join();

  /// The input starts.
  void stop_waiting() { waits_.store(false, std::memory_order_relaxed); }

  /// The run is ending: who takes nothing for `grace` is not waited for any longer. Any thread.
  void end() { ending_.store(true, std::memory_order_relaxed); }
  /// Stops waiting for subscribers; what they have not taken is counted. Any thread.
  void give_up() { told_to_give_up_.store(true, std::memory_order_relaxed); }

  // Any thread, any time.
  bool all_links_subscribed() const { return subscribed_.load(std::memory_order_acquire); }  ///< or nobody asked
  bool stream_ended() const { return stream_ended_.load(std::memory_order_acquire); }
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  std::string failure() const;
  ReaderStatus status() const;

 private:
  transport::PublisherSettings with_own_losses(transport::PublisherSettings publisher) const;
  void run();
  void read();
  void send_what_is_left();
  void tell_what_is_wanted(std::uint64_t now_ns, bool empty);
  bool publish(Page& page, std::uint64_t now_ns);

  const Settings settings_;
  const std::string name_;
  const std::vector<Fid> links_;
  const std::uint64_t grace_ns_;
  std::unique_ptr<DataStream> stream_;
  transport::Publisher publisher_;

  base::CounterBlock<ReaderCounter> counters_;
  std::optional<std::uint64_t> told_changes_;  ///< of the publisher's demand, as `wanted_` knows it
  WantedLinks wanted_;
  std::uint64_t refused_since_ns_ = 0;  ///< the page at hand; 0: it was not refused yet
  std::uint64_t taken_ = 0;             ///< pages_taken() when it was refused last
  bool given_up_ = false;               ///< the subscriber takes nothing: its chunks are counted and dropped
  std::atomic<bool> ending_{false};
  std::atomic<bool> told_to_give_up_{false};
  std::atomic<bool> waits_;
  std::atomic<bool> subscribed_;
  std::atomic<bool> stream_ended_{false};
  std::atomic<bool> ended_{false};
  mutable std::mutex failure_mutex_;
  std::string failure_;
  base::ThreadCpu cpu_;
  std::thread thread_;
};

}  // namespace rodeo::router
