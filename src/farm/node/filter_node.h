// A filter node: a thread that is assigned events, fetches their fragments, has them selected, and hands what is kept to a recorder.
//
//     supervisor ──assignments──► slot: fetching ──► selecting ──► fetching the rest ──► recording ──► decided, until that is safe
//                                  │  ▲ more             │ rejected                         │
//                                  ▼  │                  └──────────────────────────────────┴──► decisions ──► supervisor
//     readouts ◄── EventCollector: who is asked for what         SelectionPool: threads
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/counters.h"
#include "base/latency_histogram.h"
#include "farm/node/assignment_session.h"
#include "farm/node/event_collector.h"
#include "farm/node/event_data.h"
#include "farm/node/selection_pool.h"
#include "farm/node/settings.h"
#include "transport/requester.h"

namespace rodeo::farm {

enum class NodeCounter : std::uint8_t {
  assigned,
  accepted,
  rejected,
  debug,
  lost,
  partial,
  build_only,
  given_up,
  let_go,
  had_already,
  selection_failed,
  bad_selection,
  record_refused,
  record_again,
  recorded_elsewhere,
  recorded_bytes,
  bad_orders,
  count
};
inline constexpr std::array<base::CounterInfo, static_cast<std::size_t>(NodeCounter::count)> kNodeCounters{{
    {"assigned", "events", "Events that the supervisor has assigned."},
    {"accepted", "events", "Decided: accepted, and safe with a recorder."},
    {"rejected", "events", "Decided: rejected by the selection."},
    {"debug", "events", "Decided: recorded to a debug stream, for no selection has decided."},
    {"lost", "events", "Decided: no readout has anything of them, nothing is recorded."},
    {"partial", "events", "Events that lack fragments."},
    {"build_only", "events", "Assigned a second time, only to be built and recorded."},
    {"given_up", "events", "Neither built nor recorded within their time: left to the supervisor, who assigns them again."},
    {"let_go", "events", "Dropped, for they are another node's by now, or were assigned here once more."},
    {"had_already", "events", "Of those recorded: the recorder had them already."},
    {"selection_failed", "events", "Events whose selection threw, crashed or did not answer: to a debug stream."},
    {"bad_selection", "events", "Events whose selection said what cannot be carried out: to a debug stream."},
    {"record_refused", "requests", "Events that a recorder refused; they are sent to another one, or again."},
    {"record_again", "requests", "Events that were sent to a recorder again, for it did not answer."},
    {"recorded_elsewhere", "events",
     "Sent to another recorder although one that stayed away may have them: they may be recorded twice."},
    {"recorded_bytes", "bytes", "Of events that are recorded."},
    {"bad_orders", "replies", "Answers of the supervisor that cannot be read, or whose numbers do not follow."},
}};

struct NodeStatus {
  bool connected = false;  ///< to the supervisor
  bool over = false;       ///< the run has no more events
  std::uint32_t run_number = 0;
  std::string system;
  std::string supervisor_trouble;
  std::vector<NamedCounter> counters;  ///< of node, collector, data, selection, network
  std::uint32_t slots_used = 0;
  std::uint32_t fetching = 0;
  std::uint32_t selecting = 0;
  std::uint32_t recording = 0;
  std::uint64_t unsafe_decisions = 0;
  std::uint64_t fragments_under_way = 0;
  std::uint64_t bytes_under_way = 0;
  struct Peer {
    std::string name;
    bool connected = false;
    std::string trouble;
  };
  std::vector<Peer> readouts;
  std::vector<Peer> recorders;
  double cpu_seconds = 0;
  double selection_cpu_seconds = 0;
  std::uint64_t collecting_p50_ns =
      0;  ///< from the first request for fragments to the last of those that were wanted at a time
  std::uint64_t collecting_p99_ns = 0;
  std::uint64_t building_p50_ns = 0;  ///< from assignment to all fragments: what waits for credit included
  std::uint64_t building_p99_ns = 0;
  std::uint64_t deciding_p50_ns = 0;  ///< from assignment to decision
  std::uint64_t deciding_p99_ns = 0;
  std::string failure;  ///< why the node must end; empty while all is well
  std::uint64_t operator[](std::string_view counter) const;
};

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
  bool ended() const { return ended_.load(std::memory_order_acquire); }

  NodeStatus status() const;
  std::vector<std::string> take_messages();

 private:
  using Slot = EventCollector::Slot;
  using Requester = transport::Requester;

  enum class State : std::uint8_t { free, fetching, selecting, completing, recording };
  struct Event {
    State state = State::free;
    bool knew_all = false;  // all readouts were known when it began
    bool dropped = false;   // nobody's any more: ends as soon as nobody works on it
    bool wants_all = false;
    bool built = false;  // it had all, once
    formats::AssignedEvent assigned;
    std::uint64_t assigned_ns = 0;
    std::uint64_t asked_ns = 0;  // the first request of those that are under way; 0: none yet
    EventData data;
    SelectionJob job;
    std::vector<formats::RecordStream> streams;
    formats::Verdict verdict = formats::Verdict::accepted;
    std::uint32_t status = 0;
    // Recording
    std::uint32_t recorder = 0;
    std::uint32_t to_ask = 0;    // recorders that may have it from another node; the one in hand included
    std::uint32_t refusals = 0;  // one after the other
    bool unanswered = false;     // the recorder may have it
    std::uint64_t recorder_since_ns = 0;
    std::uint64_t record_at_ns = 0;  // not before
    std::optional<Requester::Request> request;
  };
  struct Readout {
    std::string name;
    Requester::Service service = 0;
    std::uint64_t instance = 0;
    bool connected = false;
    bool describing = false;
    bool described = false;
    std::uint64_t describe_at_ns = 0;
  };
  struct Recorder {
    std::string name;
    Requester::Service service = 0;
  };
  struct Pending {
    enum class What : std::uint8_t { hello, work, describe, fetch, have, record } what = What::work;
    std::uint32_t number = 0;  // readout, ask, slot, or which greeting it belongs to
    Slot slot = 0;             // of a fetch
  };

  void run();
  bool turn(std::uint64_t now_ns);
  void take_reply(Requester::Reply& reply, std::uint64_t now_ns);

  // The supervisor
  void say_hello(std::uint64_t now_ns);
  void take_welcome(Requester::Reply& reply, std::uint64_t now_ns);
  void take_orders(Requester::Reply& reply, std::uint64_t now_ns);
  void say_work(std::uint64_t now_ns);
  std::uint32_t slots_free() const;
  void fail(const Error& error);

  // Readouts
  void look_after_readouts(std::uint64_t now_ns);
  void take_description(std::uint32_t readout, Requester::Reply& reply, std::uint64_t now_ns);
  void fetch(std::uint64_t now_ns);
  void take_fragments(EventCollector::AskId ask, Slot slot, Requester::Reply& reply, std::uint64_t now_ns);

  // Events
  void begin(const formats::AssignedEvent& assigned, std::uint64_t now_ns);
  void want_all(Slot slot);
  void drop(Slot slot);
  void fetched(Slot slot, std::uint64_t now_ns);
  void select(Slot slot);
  void selected(SelectionJob& job, std::uint64_t now_ns);
  void keep(Slot slot, formats::Verdict verdict, std::vector<formats::RecordStream> streams, std::uint64_t now_ns);
  void make_record(Slot slot, std::uint64_t now_ns);
  void record(std::uint64_t now_ns);
  std::uint32_t recorder_of(const Event& event) const;
  void take_have_answer(Slot slot, Requester::Reply& reply, std::uint64_t now_ns);
  void take_record_answer(Slot slot, Requester::Reply& reply, std::uint64_t now_ns);
  void decide(Slot slot, formats::Verdict verdict, std::uint64_t now_ns);
  void free_slot(Slot slot);
  bool all_described() const;
  bool lacks_fragments(Slot slot) const { return collector_->lost(slot) > 0 || !events_[slot].knew_all; }
  void show(std::uint64_t now_ns, bool last);
  void say(std::string text);

  const NodeSettings settings_;
  // What threads of the pool look at, and what is on its way, outlives both.
  std::vector<Event> events_;
  std::vector<std::byte> hello_;
  std::vector<std::span<const std::byte>> hello_parts_;
  SelectionPool pool_;
  Requester requester_;
  Requester::Service supervisor_ = 0;

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
  AssignmentSession session_;
  EventContext context_;
  std::uint64_t event_timeout_ns_ = 10'000'000'000;
  std::uint64_t patience_ns_ = 500'000'000;
  std::string system_;
  std::unique_ptr<EventCollector> collector_;  // null: no welcome yet
  std::vector<Readout> readouts_;
  std::vector<Recorder> recorders_;
  std::unordered_map<Requester::Request, Pending> pending_;
  std::vector<std::byte> have_bytes_;
  bool greeting_ = false;
  std::uint32_t greetings_ = 0;
  std::uint64_t described_by_ns_ = 0;  // then readouts that nobody knows are not waited for
  std::uint64_t looked_ns_ = 0;
  std::uint64_t leave_at_ns_ = 0;
  std::vector<EventCollector::RobIndex> asked_;
  bool over_ = false;
  std::uint64_t hello_at_ns_ = 0;
  std::uint32_t works_under_way_ = 0;
  std::uint64_t greeted_connections_ = 0;
  std::vector<Requester::Reply> replies_;
  std::vector<Slot> complete_;
  std::vector<EventCollector::Result> results_;
  std::vector<std::byte> bytes_;
  std::vector<std::byte> scratch_;
  formats::NodeOrders orders_;
  std::string failure_;
  std::uint64_t shown_ns_ = 0;
  std::uint32_t recording_ = 0;
  base::CounterBlock<NodeCounter> counters_;
  base::CounterBlock<DataCounter> data_counters_;
  base::LatencyHistogram collecting_;
  base::LatencyHistogram building_;
  base::LatencyHistogram deciding_;
  base::ThreadCpu cpu_;
  std::thread thread_;
};

}  // namespace rodeo::farm
