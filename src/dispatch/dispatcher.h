// Which node has which event, and what has become of it: assignment, time-outs, reassignment, decisions, and the books that prove
// that each event ended once.
//
// What a node says of an event, by whom has it:
//
//   1  it has it, as it was assigned             counted
//   2  it had it last; it waits for another      counted, and waits no more
//   3  another has it, to build it only, or had
//      it since, and is gone                     late: the other records it, or a rejection may come behind its record
//   4  another has it, to process it             a rejection is late; that it was recorded is a fact, and counted
//   5  it has it anew, to build it only, and
//      speaks of the first time                  late
//   6  the event is decided                      repeated
//   7  nobody knows the event                    unknown
//
// What happens to an event that was assigned:
//
//   8  its time is out                           again: to be built only, to another node if there is one
//   9  its node is gone                          the same
//  10  its node never got it                     again, to be processed as at first
//  11  its node gives it back for an older one   it waits as before, before what was offered after it
//
// Which of those that wait is next:
//
//      again, and                                in turns: neither holds up the other
//      ahead, then all others                    each in their order
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
  std::uint32_t capacity = 1024;  ///< events from offer() to cleared()
  std::uint32_t reserve =
      0;  ///< room besides, for what is adopted: those that say hello are not to be told that there is none
  std::uint64_t timeout_ns = 0;    ///< 0: none
  std::uint32_t most_at_once = 1;  ///< events in a row to one node, while many wait: fewer messages
  std::uint64_t seed = 1;          ///< of the random policy
};

/// How an event comes in.
struct Offer {
  enum class Turn : std::uint8_t { in_order, ahead };
  bool build_only = false;  ///< it may have been recorded before
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

/// In the order of the enum.
inline constexpr std::array<base::CounterInfo, 17> kDispatchCounters{{
    {"offered", "events", "Events that came in from the trigger, or that readouts held."},
    {"repeated_offers", "events", "Events that came in while they were in the books: not taken again."},
    {"adopted", "events", "Events that came in because a node had them, or had decided them, when it said hello."},
    {"accepted", "events", "Events that were decided: recorded, for their selection accepted them."},
    {"rejected", "events", "Events that were decided: rejected by their selection."},
    {"debug", "events", "Events that were decided: recorded to the debug stream, undecided."},
    {"readout_died", "events", "Events that were decided: no readout has anything of them any more."},
    {"partial", "events", "Of the events that were recorded, those that lack fragments."},
    {"assignments", "events", "Assignments of events to nodes, those that were assigned again included."},
    {"timed_out", "events", "Assignments that ended because the node did not decide in time."},
    {"node_gone", "events", "Assignments that ended because the node has gone."},
    {"undelivered", "events", "Assignments that ended because they never came to the node."},
    {"given_back", "events",
     "Assignments that ended because the node gave the event back to make room for an older one, before any selection saw "
     "it."},
    {"late_decisions", "decisions", "Decisions of events that another node has by now: not counted."},
    {"repeated_decisions", "decisions", "Decisions of events that are decided: not counted."},
    {"unknown_decisions", "decisions", "Decisions of events that are not in the books, or never were: not counted."},
    {"cleared", "events", "Decided events that left the books, for the readouts have cleared them."},
}};

/// Pure: time is an argument, nothing blocks, nothing is allocated after the constructor but by add_node(). O(log nodes) a call. One thread; counters() may
/// be read by any. Nodes are numbers from 0.
class Dispatcher {
 public:
  static constexpr std::uint32_t kNoNode = UINT32_MAX;

  explicit Dispatcher(DispatcherSettings settings);
  /// A copy has the counts of this moment: tests go on from one state in several ways.
  Dispatcher(const Dispatcher& other);

  // Events.

  enum class Offered : std::uint8_t { taken, full, repeated };
  Offered offer(const Event& event, Offer how = {});
  /// A node has the event, as it says; nobody else has decided it. False: it is not the node's (another has it or had it since, it is decided, there is no
  /// room).
  bool adopt(const Event& event, std::uint32_t node, bool build_only, std::uint64_t now_ns);
  bool knows(std::uint64_t id) const { return table_.find(id) != EventTable::kNone; }
  /// Events that can still come in.
  std::uint32_t room() const {
    const auto free = static_cast<std::uint32_t>(free_.size());
    return free - std::min(free, settings_.reserve);
  }

  // Nodes.

  std::uint32_t add_node();
  /// Events that it takes now, besides those that it has.
  void set_room(std::uint32_t node, std::uint32_t events);
  std::uint32_t room_of(std::uint32_t node) const { return nodes_[node].room; }
  std::uint32_t events_of(std::uint32_t node) const { return nodes_[node].slots.size(); }
  /// Case 9, all of its events.
  void node_gone(std::uint32_t node);
  /// Calls visit(const Event&, build_only) for each event of the node.
  template <typename Visit>
  void for_each_event_of(std::uint32_t node, Visit&& visit) const {
    for (std::uint32_t at = nodes_[node].slots.front(); at != NodeSlots::kNone; at = slots_[at].node_next)
      visit(slots_[at].event, slots_[at].build_only);
  }
  /// Case 10. Not if another has it.
  void undelivered(std::uint32_t node, std::uint64_t id);

  /// Case 11. Not if another has it, or the node has it in another way.
  void give_back(std::uint32_t node, std::uint64_t id, bool build_only);

  /// Assigns what waits, as far as nodes have room: calls assigned(node, const Event&, build_only). Returns how many.
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
  /// Of an event that a node has, or had: when it was assigned for the first time.
  std::uint64_t first_assigned_ns(std::uint64_t id) const { return slots_[table_.find(id)].first_assigned_ns; }
  /// Calls visit(const Event&, build_only, State) for each of them, queue by queue.
  template <typename Visit>
  void for_each_waiting(Visit&& visit) const {
    for (const SlotQueue* queue : {&ahead_, &waiting_, &again_}) {
      for (std::uint32_t at = queue->front(); at != SlotQueue::kNone; at = slots_[at].next)
        visit(slots_[at].event, slots_[at].build_only, slots_[at].state);
    }
  }
  /// Of these, those that go before others. `oldest`: the first of them.
  std::uint32_t waiting_ahead() const { return ahead_.size(); }
  std::uint64_t oldest_ahead() const { return slots_[ahead_.front()].event.id; }

  // What becomes of them.

  enum class Said : std::uint8_t { counted, late, repeated, unknown };
  struct Decision {
    std::uint64_t id = 0;
    Verdict verdict = Verdict::accepted;
    bool partial = false;
    bool build_only = false;
  };
  Said decide(std::uint32_t node, const Decision& decision);
  /// The same of an event that may not be in the books yet: it is taken into them. `full` is unknown.
  Said adopt_decision(std::uint32_t node, const Decision& decision);
  /// Case 8; returns how many.
  std::uint32_t expire(std::uint64_t now_ns);
  /// Decided, and cleared everywhere: it leaves the books.
  void cleared(std::uint64_t id);

  std::uint32_t assigned() const { return timed_.size(); }
  std::uint32_t decided() const { return decided_; }
  std::uint64_t counter(DispatchCounter which) const { return counters_.read(which); }
  const base::CounterBlock<DispatchCounter>& counters() const { return counters_; }
  /// offered + adopted = waiting + assigned + accepted + rejected + debug + lost, and what is decided and not cleared is in memory.
  bool adds_up() const;

 private:
  struct Node {
    NodeSlots slots;
    std::uint32_t room = 0;
  };

  std::uint32_t take_slot(const Event& event);
  std::uint32_t at_once() const;
  std::uint32_t choose();
  std::uint32_t give(std::uint32_t node, std::uint64_t now_ns);
  void take_from_node(std::uint32_t slot);
  void wait_again(std::uint32_t slot, bool build_only);
  void leave_queue(std::uint32_t slot);
  SlotQueue& next_queue();
  Said settle(std::uint32_t slot, std::uint32_t node, const Decision& decision);
  void set(std::uint32_t node);
  std::uint64_t draw(std::uint32_t below);

  const DispatcherSettings settings_;
  Assigner assigner_;
  EventTable table_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;  // last freed, first used: their memory is in the cache
  std::vector<Node> nodes_;
  SlotQueue ahead_;
  SlotQueue waiting_;
  SlotQueue again_;
  bool again_was_last_ = false;  // the event that was assigned last was one of these
  SlotQueue timed_;              // assigned, in the order of their time-outs
  std::uint32_t decided_ = 0;
  std::uint64_t random_;
  base::CounterBlock<DispatchCounter> counters_;
};

}  // namespace rodeo::dispatch
