// Assigns events to nodes and records the result of each: time-outs, reassignments, decisions. Its books prove that each
// event ended once.
//
// A node decides an event. The effect depends on the owner of the event:
//
//   1  the node has it, as it was assigned       counted
//   2  the node had it last; it waits again      counted, and it no longer waits
//   3  another node has it, build only           late: the other node records it
//      another node got it later and is gone     a rejection is late: the other node may have recorded it
//   4  another node has it, to process it        a rejection is late; a recorded event is counted
//   5  the node has it again, build only, and
//      decides its first assignment              late
//   6  the event is decided                      repeated
//   7  the event is not in the books             unknown
//
// An assignment may end without a decision:
//
//   8  its time is out                           it waits again, build only, for another node if there is one
//   9  its node is gone                          the same
//  10  it never reached its node                 it waits again, to be processed as before
//  11  its node gives it back for an older one   it waits as before, in front of later offers
//
// The next waiting event:
//
//      events that wait again                    alternate with all others: neither delays the other
//      all others                                those `ahead` first; each queue in its order
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "base/counters.h"
#include "dispatch/assigner.h"
#include "dispatch/event.h"
#include "dispatch/event_table.h"
#include "dispatch/slots.h"

namespace rodeo::dispatch {

struct DispatcherSettings {
  Policy policy = Policy::least_loaded;
  std::uint32_t capacity = 1024;  ///< Limit of events from offer() to cleared().
  /// More room, for adopted events only: the books must never be full when a node connects.
  std::uint32_t reserve = 0;
  std::uint64_t timeout_ns = 0;    ///< 0: no time-out.
  std::uint32_t most_at_once = 1;  ///< Events in a row to one node while many events wait: fewer messages.
  std::uint64_t seed = 1;          ///< Seed of the random policy.
};

/// The way in which an event enters the books.
struct Offer {
  enum class Turn : std::uint8_t { in_order, ahead };
  bool build_only = false;  ///< It may have been recorded before.
  Turn turn = Turn::in_order;
};

enum class DispatchCounter : std::uint8_t {
  offered,
  repeated_offers,
  adopted,
  accepted,
  rejected,
  debug,
  lost,
  partial,
  assignments,
  timed_out,
  node_gone,
  undelivered,
  given_back,
  late_decisions,
  repeated_decisions,
  unknown_decisions,
  cleared,
  count
};

/// The descriptions, in the order of the enum.
inline constexpr std::array<base::CounterInfo, 17> kDispatchCounters{{
    {"offered", "events", "Events that the trigger announced, or that readouts held."},
    {"repeated_offers", "events", "Repeated announcements of events that the supervisor already has: ignored."},
    {"adopted", "events", "Events that a node had, or had decided, when it connected."},
    {"accepted", "events", "Decided events: recorded because their selection accepted them."},
    {"rejected", "events", "Decided events: rejected by their selection."},
    {"debug", "events", "Decided events: recorded to the debug stream without a selection's decision."},
    {"readout_died", "events", "Decided events: lost, because no readout has a fragment of them any more."},
    {"partial", "events", "Recorded events that lack fragments."},
    {"assignments", "events", "Assignments of events to nodes, including repeated ones."},
    {"timed_out", "events", "Assignments that ended because the node did not decide in time."},
    {"node_gone", "events", "Assignments that ended because the node has gone."},
    {"undelivered", "events", "Assignments that ended because they never reached the node."},
    {"given_back", "events",
     "Assignments that ended because the node gave the event back to make room for an older one, before any selection saw "
     "it."},
    {"late_decisions", "decisions", "Decisions on events that another node now has: ignored."},
    {"repeated_decisions", "decisions", "Repeated decisions on decided events: ignored."},
    {"unknown_decisions", "decisions", "Decisions on events that the supervisor no longer has, or never had: ignored."},
    {"cleared", "events", "Decided events that the supervisor has forgotten, because the readouts have cleared them."},
}};

/// Pure: time is an argument, nothing blocks. Only the constructor and add_node() allocate. O(log nodes) per call. One
/// thread; any thread may read counters(). Nodes are numbered from 0.
class Dispatcher {
 public:
  static constexpr std::uint32_t kNoNode = UINT32_MAX;

  explicit Dispatcher(DispatcherSettings settings);
  /// A copy has the counts of this moment. Tests continue one state in several ways.
  Dispatcher(const Dispatcher& other);

  // Events.

  enum class Offered : std::uint8_t { taken, full, repeated };
  Offered offer(const Event& event, Offer how = {});
  /// Enters an event that a node reports to have, if no other node has decided it. False: the event is not the node's,
  /// because another node has the event or had it later, the event is decided, or there is no room.
  bool adopt(const Event& event, std::uint32_t node, bool build_only, std::uint64_t now_ns);
  bool knows(std::uint64_t id) const { return table_.find(id) != EventTable::kNone; }
  /// Number of events that can still enter.
  std::uint32_t room() const {
    const auto free = static_cast<std::uint32_t>(free_.size());
    return free - std::min(free, settings_.reserve);
  }

  // Nodes.

  std::uint32_t add_node();
  /// Sets how many events the node takes now, in addition to those that it has.
  void set_room(std::uint32_t node, std::uint32_t events);
  std::uint32_t room_of(std::uint32_t node) const { return nodes_[node].room; }
  std::uint32_t events_of(std::uint32_t node) const { return nodes_[node].slots.size(); }
  /// Case 9, for all events of the node.
  void node_gone(std::uint32_t node);
  /// Calls visit(const Event&, build_only) for each event of the node.
  template <typename Visit>
  void for_each_event_of(std::uint32_t node, Visit&& visit) const {
    for (std::uint32_t at = nodes_[node].slots.front(); at != NodeSlots::kNone; at = slots_[at].node_next)
      visit(slots_[at].event, slots_[at].build_only);
  }
  /// Case 10. No effect if another node has the event.
  void undelivered(std::uint32_t node, std::uint64_t id);

  /// Case 11. No effect if another node has the event, or if the node's assignment has another `build_only`.
  void give_back(std::uint32_t node, std::uint64_t id, bool build_only);

  /// Assigns waiting events while nodes have room: calls assigned(node, const Event&, build_only). Returns their number.
  template <typename Assigned>
  std::uint32_t assign(std::uint64_t now_ns, Assigned&& assigned) {
    std::uint32_t count = 0;
    const std::uint32_t in_a_row = at_once();
    while (waiting() > 0 && assigner_.any_room()) {
      const std::uint32_t node = choose();
      std::uint32_t some = again_.empty() ? in_a_row : 1;
      do {
        const Slot& slot = slots_[give(node, now_ns)];
        assigned(node, slot.event, slot.build_only);
        ++count;
      } while (--some > 0 && waiting() > 0 && nodes_[node].room > 0);
    }
    return count;
  }
  std::uint32_t waiting() const { return ahead_.size() + waiting_.size() + again_.size(); }
  /// Time of the first assignment of an event that a node has or had.
  std::uint64_t first_assigned_ns(std::uint64_t id) const { return slots_[table_.find(id)].first_assigned_ns; }
  /// Calls visit(const Event&, build_only, State) for each waiting event, queue by queue.
  template <typename Visit>
  void for_each_waiting(Visit&& visit) const {
    for (const SlotQueue* queue : {&ahead_, &waiting_, &again_}) {
      for (std::uint32_t at = queue->front(); at != SlotQueue::kNone; at = slots_[at].next)
        visit(slots_[at].event, slots_[at].build_only, slots_[at].state);
    }
  }
  /// Number of waiting events that go before the others, and the id of the first of these.
  std::uint32_t waiting_ahead() const { return ahead_.size(); }
  std::uint64_t oldest_ahead() const { return slots_[ahead_.front()].event.id; }

  // Decisions and ends.

  enum class Said : std::uint8_t { counted, late, repeated, unknown };
  struct Decision {
    std::uint64_t id = 0;
    Verdict verdict = Verdict::accepted;
    bool partial = false;
    bool build_only = false;
  };
  Said decide(std::uint32_t node, const Decision& decision);
  /// decide() for an event that may not be in the books yet: adopt_decision() enters the event. Said::unknown if the books
  /// are full.
  Said adopt_decision(std::uint32_t node, const Decision& decision);
  /// Case 8. Returns the number of events.
  std::uint32_t expire(std::uint64_t now_ns);
  /// The event is decided and cleared everywhere: removes it from the books.
  void cleared(std::uint64_t id);

  std::uint32_t assigned() const { return timed_.size(); }
  std::uint32_t decided() const { return decided_; }
  std::uint64_t counter(DispatchCounter which) const { return counters_.read(which); }
  const base::CounterBlock<DispatchCounter>& counters() const { return counters_; }
  /// offered + adopted = waiting + assigned + accepted + rejected + debug + lost; each event that is not cleared has a slot.
  bool adds_up() const;

 private:
  struct Node {
    NodeSlots slots;
    std::uint32_t room = 0;
  };

  std::uint32_t acquire_slot(const Event& event);
  std::uint32_t at_once() const;
  std::uint32_t choose();
  std::uint32_t give(std::uint32_t node, std::uint64_t now_ns);
  void unassign(std::uint32_t slot);
  void wait_again(std::uint32_t slot, bool build_only);
  void leave_queue(std::uint32_t slot);
  SlotQueue& next_queue();
  Said apply(std::uint32_t slot, std::uint32_t node, const Decision& decision);
  void set(std::uint32_t node);
  std::uint64_t draw(std::uint32_t below);

  const DispatcherSettings settings_;
  Assigner assigner_;
  EventTable table_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;  // A stack: the memory of the slot freed last is in the cache.
  std::vector<Node> nodes_;
  SlotQueue ahead_;
  SlotQueue waiting_;
  SlotQueue again_;
  bool again_was_last_ = false;  // The event assigned last came from again_.
  SlotQueue timed_;              // Assigned events, in the order of their time-outs.
  std::uint32_t decided_ = 0;
  std::uint64_t random_;
  base::CounterBlock<DispatchCounter> counters_;
};

}  // namespace rodeo::dispatch
