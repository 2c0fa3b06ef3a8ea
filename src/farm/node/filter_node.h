// A filter node: a thread that is assigned events, fetches their fragments, has them selected, and hands what is kept to a recorder.
//
//     SupervisorLink ──► slot: fetching ──► selecting ──► fetching the rest ──► recording ──► decided, until that is safe
//                         │  ▲ more             │ rejected                         │
//                         ▼  │                  └──────────────────────────────────┴──► decisions ──► SupervisorLink
//     ReadoutLinks ◄── EventCollector: who is asked for what         SelectionPool: threads; RecorderLinks: who has it
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

/// start(), end() and the rest by one thread, which is not the node's.
class FilterNode {
 public:
  using MakeSelection = std::function<std::unique_ptr<EventSelection>()>;

  /// Makes the selections, and looks for its supervisor. Throws SetupError.
  FilterNode(const NodeSettings& settings, MakeSelection make);
  ~FilterNode();

  /// Takes events of this run, and of no other; 0: of whichever run its supervisor has.
  void start(std::uint32_t run_number);
  /// Takes no more events; those that it has are finished, and it waits until their decisions are safe. Does not wait here.
  void end();
  /// After end(): nothing is waited for any more; events that it has, and decisions that are not safe, stay in its counts.
  void give_up() { leaving_.store(true, std::memory_order_release); }
  bool ended() const { return ended_.load(std::memory_order_acquire); }

  NodeStatus status() const;
  std::vector<std::string> take_messages();

 private:
  using Slot = EventCollector::Slot;
  using Requester = transport::Requester;

  void run();
  bool turn(std::uint64_t now_ns);
  bool over(std::uint64_t now_ns);
  void take_reply(Requester::Reply& reply, std::uint64_t now_ns);
  void take_welcome(std::uint64_t now_ns);
  std::uint32_t slots_free() const;
  void look_at_selections(std::uint64_t now_ns, NodeStatus& status);
  void fail(const Error& error);

  // Events
  void begin(const formats::AssignedEvent& assigned, std::uint64_t now_ns);
  void want_all(Slot slot);
  void give_back(std::uint32_t count, std::uint64_t newer_than);
  bool can_go_back(Slot slot) const;
  void drop(Slot slot);
  void drop_all_of(std::uint64_t id);
  void fetched(Slot slot, std::uint64_t now_ns);
  void build(Slot slot, std::uint64_t now_ns);
  void select(Slot slot);
  void selected(SelectionJob& job, std::uint64_t now_ns);
  void keep(Slot slot, formats::Verdict verdict, std::vector<formats::RecordStream> streams);
  void make_record(Slot slot, std::uint64_t now_ns);
  /// `another_copy`: what is recorded of it is not what this node has built.
  void decide(Slot slot, formats::Verdict verdict, std::uint64_t now_ns, bool another_copy = false);
  void free_slot(Slot slot);
  bool lacks_fragments(Slot slot) const { return collector_->lost(slot) > 0 || !events_.slots[slot].knew_all; }
  void show(std::uint64_t now_ns, bool last);
  void say(std::string text);

  const NodeSettings settings_;
  // What threads of the pool look at, and what is on its way, outlives both.
  NodeEvents events_;
  SelectionPool pool_;
  Requester requester_;
  SupervisorLink supervisor_;
  RecorderLinks recorders_;

  // Between the two threads
  mutable std::mutex mutex_;
  NodeStatus shown_;
  std::vector<std::string> messages_;
  std::atomic<std::uint32_t> wanted_run_{0};
  std::atomic<bool> started_{false};
  std::atomic<bool> ending_{false};
  std::atomic<bool> leaving_{false};
  std::atomic<bool> ended_{false};

  // Of the node's thread
  std::uint64_t event_timeout_ns_ = 10'000'000'000;
  std::string system_;
  std::unique_ptr<EventCollector> collector_;  // null: no welcome yet
  std::unique_ptr<ReadoutLinks> readouts_;     // with it
  std::uint64_t described_by_ns_ = 0;          // then readouts that nobody knows are not waited for
  std::uint64_t leave_at_ns_ = 0;
  bool over_ = false;
  bool all_hang_ = false;  // each thread that selects is at an event whose time is over
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
