// Collects the fragments of events from readouts: what to ask of which readout, when to ask again, and when an event has all
// fragments that it will ever have. Pure: time is an argument; the caller sends the requests and reports the answers.
//
// A ROB of an event is first wanted, then asked for. At the end it has the state `arrived` or `lost`:
//
//     the fragment comes                             had
//     PENDING: not here yet                          asked for again, `pending_retry` later
//     LOST: it will never come                       lost, `by_readout`
//     another event's, no ROB, or not in the answer  lost, `bad`: a second request would get the same answer
//     the readout is busy                            asked for again
//     the connection ends                            asked for again over the next connection
//     ... and the readout was restarted              lost, `readout_died`, if the event began before the connection ended:
//                                                    the fragment is gone. Later events are asked for
//     ... and there is none for `readout_grace`      lost, `readout_away`, also for later events until there is one. The
//                                                    readout may still have the fragment, and other nodes may reach it
//     the time of the event is over                  lost, `timed_out`. Until then the collector waits: a request is not
//                                                    lost while its connection lives, so a slow readout is not asked twice
//
// An event is complete when each ROB that it wants is here or lost. Then it may want more (partial requests, then the rest),
// or it ends. With credits, requests wait in order until those under way leave room; a single request always goes.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "base/counters.h"
#include "rodeo/ids.h"

namespace rodeo::farm {

struct CollectorSettings {
  std::uint32_t slots = 32;            ///< Limit of events at a time.
  std::uint32_t credit_fragments = 0;  ///< Limit of fragments that are asked for at a time; 0: no limit.
  std::uint64_t credit_bytes = 0;      ///< The same limit in bytes, from recent fragment sizes; 0: no limit.
  std::chrono::nanoseconds pending_retry = std::chrono::milliseconds{1};
  std::chrono::nanoseconds readout_grace = std::chrono::seconds{2};
};

enum class RobState : std::uint8_t { unwanted, wanted, requested, arrived, lost };
enum class RobLoss : std::uint8_t { none, by_readout, bad, readout_died, readout_away, timed_out };

enum class CollectorCounter : std::uint8_t {
  requests,
  fragments,
  fragment_bytes,
  pending,
  asked_again,
  lost_by_readout,
  lost_bad,
  lost_readout_died,
  lost_readout_away,
  lost_timed_out,
  waits_for_credit,
  count
};
inline constexpr std::array<base::CounterInfo, static_cast<std::size_t>(CollectorCounter::count)> kCollectorCounters{{
    {"requests", "requests", "Requests for fragments of one event, each to one readout."},
    {"fragments", "fragments", "Fragments that arrived."},
    {"fragment_bytes", "bytes", "Bytes of these fragments."},
    {"pending", "fragments", "Times that a readout did not have a fragment yet; it is asked again."},
    {"asked_again", "requests", "Requests that were refused as busy or lost with their connection; they are made again."},
    {"lost_by_readout", "fragments", "Fragments that will never come, as their readout says."},
    {"lost_bad", "fragments", "Fragments that were missing in an answer, invalid, or of another event."},
    {"lost_readout_died", "fragments", "Fragments of a readout that was restarted after their event was assigned."},
    {"lost_readout_away", "fragments",
     "Fragments of a readout that could not be reached for farm.node.readout_grace; it may have them still."},
    {"lost_timed_out", "fragments", "Fragments that had not arrived when the time of their event was over."},
    {"waits_for_credit", "waits", "Times that a request had to wait for credit (shaping)."},
}};

/// One thread.
class EventCollector {
 public:
  using Slot = std::uint32_t;
  using RobIndex = std::uint32_t;  ///< Counts the ROBs of all readouts from 0.
  using RequestId = std::uint32_t;

  EventCollector(CollectorSettings settings, std::uint32_t readouts);
  /// A copy has the counts of this moment, so that tests can continue one state in several ways.
  EventCollector(const EventCollector& other);

  // Functions of a readout, which has a number.

  /// The readout is connected and has these ROBs. A later call with other ROBs counts for events that begin after it.
  void on_description(std::uint32_t readout, std::span<const SourceId> robs);
  bool described(std::uint32_t readout) const { return readouts_[readout].known; }
  /// A connection is made. `restarted`: the process has restarted, and has nothing of the events that began before
  /// on_disconnect().
  void on_connect(std::uint32_t readout, bool restarted);
  void on_disconnect(std::uint32_t readout, std::uint64_t now_ns);
  /// The number of fragments of this readout that events lack, for any reason.
  std::uint64_t lost_fragments_of(std::uint32_t readout) const { return readouts_[readout].lost; }
  bool any_connected() const { return std::ranges::any_of(readouts_, &Readout::connected); }
  std::span<const RobIndex> robs_of(std::uint32_t readout) const { return readouts_[readout].robs; }
  std::uint32_t readouts() const { return static_cast<std::uint32_t>(readouts_.size()); }
  std::size_t robs() const { return robs_.size(); }
  /// All ROBs, in the order of readouts and of their descriptions; each node has the same order.
  std::span<const RobIndex> ordered_robs() const { return order_; }
  SourceId source_id(RobIndex rob) const { return robs_[rob].source_id; }
  /// Returns no index if no readout has the ROB.
  std::optional<RobIndex> find(SourceId source_id) const;

  // Functions of an event.

  /// Returns a slot, or nothing if all are in use. At first the event wants no fragment.
  std::optional<Slot> begin(std::uint64_t deadline_ns);
  /// Adds ROBs to those that the event wants.
  void want(Slot slot, std::span<const RobIndex> robs);
  void want_all(Slot slot);
  /// The state of a ROB. A ROB that was described after the event began is unwanted.
  RobState state(Slot slot, RobIndex rob) const { return event_rob(slot, rob).state; }
  RobLoss loss(Slot slot, RobIndex rob) const { return event_rob(slot, rob).loss; }
  /// True while the event waits for fragments.
  bool is_waiting(Slot slot) const { return events_[slot].open > 0; }
  /// The number of wanted ROBs that are lost.
  std::uint32_t lost_robs(Slot slot) const { return events_[slot].lost; }
  /// True if a ROB is lost in this way.
  bool has_loss(Slot slot, RobLoss loss) const {
    return std::ranges::any_of(events_[slot].robs, [loss](const EventRob& rob) { return rob.loss == loss; });
  }
  /// Frees the slot. Later answers are ignored.
  void end(Slot slot);
  std::uint32_t free_slots() const { return static_cast<std::uint32_t>(free_.size()); }

  // Functions of requests.

  struct Request {
    RequestId id = 0;
    Slot slot = 0;
    std::uint32_t readout = 0;
    bool all = false;                ///< Asks for all ROBs of the readout.
    std::uint64_t deadline_ns = 0;   ///< Time limit of the event; a later answer is useless.
    std::span<const RobIndex> robs;  ///< Valid until the next call.
  };
  /// Returns the next request that may go now. The caller sends it, or calls on_unsent().
  std::optional<Request> next_request();
  void on_unsent(RequestId request, std::uint64_t now_ns);

  struct Result {
    RobIndex rob = 0;
    enum class What : std::uint8_t { arrived, pending, lost, bad } what = What::arrived;
  };
  /// Reports an answer. False: its event does not wait for it any more. ROBs that were asked for and are not in `results`
  /// count as `bad`.
  bool on_answer(RequestId request, std::span<const Result> results, std::uint64_t bytes, std::uint64_t now_ns);
  /// Reports a request that ended without an answer. The collector makes it again, except `permanent`: then its ROBs are
  /// lost.
  void on_failure(RequestId request, bool permanent, std::uint64_t now_ns);
  /// True if the event that now has the slot waits for this answer.
  bool is_awaited(RequestId request, Slot slot) const {
    const OpenRequest& one = requests_[request];
    return one.open && one.slot == slot && events_[slot].active && one.number == events_[slot].number;
  }
  std::span<const RobIndex> robs_of_request(RequestId request) const { return requests_[request].robs; }

  /// Checks the time. Appends the slots whose event has become complete since the last call.
  void poll(std::uint64_t now_ns, std::vector<Slot>& complete);

  std::uint64_t fragments_under_way() const { return fragments_under_way_; }
  std::uint64_t bytes_under_way() const { return bytes_under_way_; }
  const base::CounterBlock<CollectorCounter>& counters() const { return counters_; }

 private:
  struct Rob {
    SourceId source_id;
    std::uint32_t readout = 0;
  };
  struct Readout {
    bool known = false;
    bool connected = false;
    bool given_up = false;
    std::uint64_t down_since_ns = 0;
    std::uint64_t begun_before = 0;  // Number of events before the readout went down.
    std::vector<RobIndex> robs;
    double fragment_bytes = 0;  // Mean size of recent fragments.
    std::uint64_t lost = 0;
  };
  struct EventRob {
    RobState state = RobState::unwanted;
    RobLoss loss = RobLoss::none;
  };
  struct Work {  // The requests of one event to one readout.
    std::uint32_t wanted = 0;
    bool queued = false;  // The work is in ready_ or later_.
    bool asked = false;
  };
  struct Event {
    bool active = false;
    bool armed = false;  // The event wants something, and its completion was not reported yet.
    std::uint32_t number = 0;
    std::uint64_t begun = 0;  // Number among all events that began.
    std::uint64_t deadline_ns = 0;
    std::uint32_t open = 0;  // Number of ROBs that are wanted or asked for.
    std::uint32_t lost = 0;
    std::vector<EventRob> robs;
    std::vector<Work> work;
  };
  struct Item {
    Slot slot = 0;
    std::uint32_t number = 0;
    std::uint32_t readout = 0;
    std::uint64_t due_ns = 0;
  };
  struct OpenRequest {
    bool open = false;
    Slot slot = 0;
    std::uint32_t number = 0;
    std::uint32_t readout = 0;
    std::uint32_t fragments = 0;
    std::uint64_t bytes = 0;
    std::vector<RobIndex> robs;
  };

  EventRob event_rob(Slot slot, RobIndex rob) const {
    const auto& robs = events_[slot].robs;
    return rob < robs.size() ? robs[rob] : EventRob{};
  }
  void queue(Slot slot, std::uint32_t readout);
  void queue_later(Slot slot, std::uint32_t readout, std::uint64_t now_ns);
  void lose(Slot slot, RobIndex rob, RobLoss loss);
  void lose_all_of(std::uint32_t readout, RobLoss loss, std::uint64_t begun_up_to);
  bool close_request(RequestId request);  // True: the event still waits for the answer.
  bool has_credit_for(std::uint32_t fragments, std::uint64_t bytes) const;

  const CollectorSettings settings_;
  std::vector<Readout> readouts_;
  std::vector<Rob> robs_;
  std::vector<RobIndex> order_;
  std::vector<Event> events_;
  std::vector<Slot> free_;
  std::uint64_t begun_ = 0;
  std::deque<Item> ready_;
  std::deque<Item> later_;  // All items wait equally long, so they are in order of time.
  std::vector<OpenRequest> requests_;
  std::vector<RequestId> free_requests_;
  std::vector<Slot> complete_;
  std::uint64_t fragments_under_way_ = 0;
  std::uint64_t bytes_under_way_ = 0;
  bool waited_for_credit_ = false;
  base::CounterBlock<CollectorCounter> counters_;
};

}  // namespace rodeo::farm
