// A filter node. Its thread gets events, fetches their fragments, passes them to a selection, and sends kept events to a
// recorder.
//
//     SupervisorLink ──► slot: fetching ──► selecting ──► fetching the rest ──► recording ──► decided, until that is safe
//                         │  ▲ more             │ rejected                         │
//                         ▼  │                  └──────────────────────────────────┴──► decisions ──► SupervisorLink
//     ReadoutLinks ◄── EventCollector: what to ask of which readout  SelectionPool: threads; RecorderLinks: what is where
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/latency_histogram.h"
#include "farm/node/event_collector.h"
#include "farm/node/node_events.h"
#include "farm/node/node_status.h"
#include "farm/node/readout_links.h"
#include "farm/node/recorder_links.h"
#include "farm/node/selection_pool.h"
#include "farm/node/settings.h"
#include "farm/node/supervisor_link.h"
#include "transport/requester.h"

namespace rodeo::farm {

/// One thread, another than the node's, calls start(), end() and all other functions.
class FilterNode {
 public:
  using MakeSelection = std::function<std::unique_ptr<EventSelection>()>;

  /// Makes the selections and searches the supervisor. Throws SetupError.
  FilterNode(const NodeSettings& settings, MakeSelection make);
  ~FilterNode();

  /// Accepts only events of this run; 0: of the supervisor's run.
  void start(std::uint32_t run_number);
  /// Accepts no more events. The node finishes the events that it has, and waits until their decisions are safe. Does not
  /// block.
  void end();
  /// After end(): stops all waits. Unfinished events, and decisions that are not safe, stay in the node's counts.
  void give_up() { leaving_.store(true, std::memory_order_release); }
  bool ended() const { return ended_.load(std::memory_order_acquire); }

  NodeStatus status() const;
  std::vector<std::string> take_messages();

 private:
  using Slot = EventCollector::Slot;
  using Requester = transport::Requester;

  void run();
  bool step(std::uint64_t now_ns);
  bool must_end(std::uint64_t now_ns);
  void on_reply(Requester::Reply& reply, std::uint64_t now_ns);
  void on_welcome(std::uint64_t now_ns);
  std::uint32_t free_slots() const;
  void check_selections(std::uint64_t now_ns, NodeStatus& status);
  void fail(const Error& error);

  // Events
  void begin(const formats::AssignedEvent& assigned, std::uint64_t now_ns);
  void want_all(Slot slot);
  void give_back(std::uint32_t count, std::uint64_t newer_than);
  bool may_give_back(Slot slot) const;
  void drop(Slot slot);
  void drop_all_of(std::uint64_t id);
  void on_fetched(Slot slot, std::uint64_t now_ns);
  void build(Slot slot, std::uint64_t now_ns);
  void select(Slot slot);
  void on_selected(SelectionJob& job, std::uint64_t now_ns);
  void keep(Slot slot, formats::Verdict verdict, std::vector<formats::RecordStream> streams);
  void make_record(Slot slot, std::uint64_t now_ns);
  /// `another_copy`: the recorded copy was built by another node.
  void decide(Slot slot, formats::Verdict verdict, std::uint64_t now_ns, bool another_copy = false);
  void free_slot(Slot slot);
  bool lacks_fragments(Slot slot) const {
    return collector_->lost_robs(slot) > 0 || !events_.slots[slot].all_readouts_known;
  }
  void show(std::uint64_t now_ns, bool last);
  void say(std::string text);

  const NodeSettings settings_;
  // Threads of the pool and requests use this memory, so it outlives both.
  NodeEvents events_;
  SelectionPool pool_;
  Requester requester_;
  SupervisorLink supervisor_;
  RecorderLinks recorders_;

  // The two threads share these members.
  mutable std::mutex mutex_;
  NodeStatus shown_;
  std::vector<std::string> messages_;
  std::atomic<std::uint32_t> wanted_run_{0};
  std::atomic<bool> started_{false};
  std::atomic<bool> ending_{false};
  std::atomic<bool> leaving_{false};
  std::atomic<bool> ended_{false};

  // Only the node's thread uses these members.
  std::uint64_t event_timeout_ns_ = 10'000'000'000;
  std::string system_;
  std::unique_ptr<EventCollector> collector_;  // Null before the welcome.
  std::unique_ptr<ReadoutLinks> readouts_;     // Made with the collector.
  std::uint64_t described_by_ns_ = 0;          // After this time the node does not wait for unknown readouts.
  std::uint64_t end_by_ns_ = 0;
  bool run_over_ = false;
  bool all_selections_hang_ = false;  // All threads of the selection hang.
  std::vector<Requester::Reply> replies_;
  std::vector<Slot> complete_;
  std::string failure_;
  std::uint64_t shown_ns_ = 0;
  base::LatencyHistogram collecting_;
  base::LatencyHistogram building_;
  base::LatencyHistogram deciding_;
  base::ThreadCpu cpu_;
  std::thread thread_;
};

}  // namespace rodeo::farm
