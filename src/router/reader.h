// Reader: a thread that reads one stream of an input and publishes its links.
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
    int cpu = -1;  ///< CPU to which the thread is pinned; negative: none
    base::IdlePolicy idle = base::IdlePolicy::sleep;
    bool trigger_list = false;
    bool wait_for_subscribers = false;  ///< checks until every link has a subscriber
  };

  /// Listens, and enters itself on the bus. Throws SetupError, like Publisher.
  Reader(Settings settings, std::unique_ptr<DataStream> stream, const transport::PublisherSettings& publisher,
         std::span<const Fid> links);
  /// Joins the thread.
  ~Reader();

  void start();
  void join();

  /// Call it when the input starts: ends the check for subscribers.
  void stop_waiting() { waiting_for_subscribers_.store(false, std::memory_order_relaxed); }

  /// Call it when the run ends: the reader stops waiting for a subscriber that takes nothing for `grace`. Any thread may
  /// call it.
  void end() { ending_.store(true, std::memory_order_relaxed); }
  /// Stops waiting for subscribers, and counts the chunks that they have not taken. Any thread may call it.
  void give_up() { give_up_requested_.store(true, std::memory_order_relaxed); }

  // Any thread may call these functions at any time.
  bool all_links_subscribed() const { return subscribed_.load(std::memory_order_acquire); }  ///< also true without `waits`
  bool stream_ended() const { return stream_ended_.load(std::memory_order_acquire); }
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  std::string failure() const;
  ReaderStatus status() const;

 private:
  transport::PublisherSettings add_own_losses(transport::PublisherSettings publisher) const;
  void run();
  void read();
  void send_remaining();
  void update_wanted_links(std::uint64_t now_ns, bool empty);
  bool publish(Page& page, std::uint64_t now_ns);

  const Settings settings_;
  const std::string name_;
  const std::vector<Fid> links_;
  const std::uint64_t grace_ns_;
  std::unique_ptr<DataStream> stream_;
  transport::Publisher publisher_;

  base::CounterBlock<ReaderCounter> counters_;
  std::optional<std::uint64_t> seen_changes_;  ///< the publisher's wanted_changes() when `wanted_` was updated
  WantedLinks wanted_;
  std::uint64_t refused_since_ns_ = 0;  ///< time of the first refusal of the current page; 0: the page was not refused
  std::uint64_t pages_taken_ = 0;       ///< pages_taken() at the last refusal
  bool given_up_ = false;               ///< the subscriber takes nothing: its chunks are counted and dropped
  std::atomic<bool> ending_{false};
  std::atomic<bool> give_up_requested_{false};
  std::atomic<bool> waiting_for_subscribers_;
  std::atomic<bool> subscribed_;
  std::atomic<bool> stream_ended_{false};
  std::atomic<bool> ended_{false};
  mutable std::mutex failure_mutex_;
  std::string failure_;
  base::ThreadCpu cpu_;
  std::thread thread_;
};

}  // namespace rodeo::router
