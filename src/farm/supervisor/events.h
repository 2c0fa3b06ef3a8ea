// The events of a supervisor: those under way, decisions that are not cleared, and ids that are over.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/counters.h"
#include "base/named_counters.h"
#include "dispatch/admission.h"
#include "dispatch/clear_book.h"
#include "dispatch/common_span.h"
#include "dispatch/dispatcher.h"
#include "farm/supervisor/decision_file.h"
#include "farm/supervisor/recent_ids.h"
#include "farm/supervisor/settings.h"
#include "formats/assignment.h"

namespace rodeo::farm {

inline constexpr std::uint64_t kAnnounceNs = 500'000'000;  ///< Limit of the time from trigger to announcement.

enum class EventsCounter : std::uint8_t { before_common_start, after_common_end, count };
inline constexpr std::array<base::CounterInfo, 2> kEventsCounters{{
    {"before_common_start", "events",
     "Without a trigger: events below the first number that all readouts can have. They are cleared, not assigned."},
    {"after_common_end", "events",
     "Without a trigger: events behind the last number that all readouts have at the end of the run. They are cleared, not "
     "assigned."},
}};

/// One thread. Each report of a node, a readout or the trigger about an event has its function here.
class Events {
 public:
  static constexpr std::uint32_t kNoNode = UINT32_MAX;

  explicit Events(const SupervisorSettings& settings);

  // Functions of the trigger.

  /// From this id on, triggers come without a gap.
  void begin_announced_range(std::uint64_t id) { announced_.emplace_back(id, id); }
  /// The trigger announced this event. The admission must have room. False: a readout named the event first, and the event
  /// is already over.
  bool announce(const dispatch::Event& event);

  // Functions of readouts.

  enum class State : std::uint8_t {
    known,   ///< The event is under way.
    over,    ///< The event is decided, and cleared in all other readouts.
    orphan,  ///< No trigger has announced the event so far.
  };
  State state_of(std::uint64_t id) const {
    return dispatcher.knows(id) ? State::known : is_over(id) ? State::over : State::orphan;
  }
  /// The event is over, but a readout still has it.
  void clear_again(std::uint64_t id, std::uint64_t now_ns) { clears.add({.id = id, .node = kNoNode}, now_ns); }

  // Functions of nodes. Each decision becomes safe in its turn, whether it counts or not.

  void on_decision(std::uint32_t node, std::uint32_t session, const formats::EventDecision& decision, std::uint64_t now_ns);
  /// A decision in a HELLO, which may be older than this supervisor.
  void on_earlier_decision(std::uint32_t node, std::uint32_t session, const formats::EventDecision& decision,
                           std::uint64_t now_ns);
  /// The node made room for an older event. `in_work`: the node said so in WORK. In HELLO this means only that the node
  /// lacks the event.
  void on_given_back(std::uint32_t node, std::uint32_t session, const formats::EventDecision& decision, bool in_work,
                     std::uint64_t now_ns);
  /// A node reports that it has an event. False: the event does not belong to the node any more.
  bool adopt(std::uint32_t node, const formats::AssignedEvent& event, std::uint64_t now_ns);

  // A recorder has an event that no node has decided. `debug`: the event is in a debug stream.
  void on_recorded(std::uint64_t id, bool debug, std::uint64_t now_ns);

  /// The readout holds the event, which is an orphan.
  void add_orphan(std::uint32_t readout, std::uint64_t id, std::uint64_t now_ns);
  /// Number of triggers that may enter.
  std::uint32_t room() const { return admission.room_for_triggers(dispatcher); }
  /// Returns the number of undecided events. Each counts once.
  std::uint64_t count_undecided();

  /// True if the event was under way and has left.
  bool is_over(std::uint64_t id) const;
  /// True if all events that entered are decided and cleared.
  bool empty() const {
    return dispatcher.waiting() + dispatcher.assigned() + dispatcher.decided() == 0 && clears.entries() == 0 &&
           admission.untold() == 0;
  }

  /// Removes the events that all readouts have cleared. Calls safe(node, session) for each decision, in order.
  template <typename Safe>
  void remove_cleared(Safe&& safe) {
    if (!decisions.written()) return;
    clears.take_over(
        [&](const dispatch::ClearBook::Entry& entry) {
          if (entry.id != dispatch::ClearBook::kNoId) remove(entry.id);
          if (entry.node != kNoNode) safe(entry.node, entry.session);
        },
        [](std::uint64_t) {});
  }

  /// True if readouts hold events, and it is not known yet which of these belong to the run.
  bool has_unplaced() const { return unplaced_ && !span.begin_known(); }
  std::vector<NamedCounter> counters() const;

  dispatch::Dispatcher dispatcher;
  dispatch::Admission admission;
  dispatch::CommonSpan span;  ///< Used without a trigger authority.
  dispatch::ClearBook clears;
  DecisionFile decisions;  ///< open() before the first flush().

 private:
  void clear_outside_span(EventsCounter why, std::uint64_t id, std::uint64_t now_ns);
  bool was_announced(std::uint64_t id) const;
  void remove(std::uint64_t id);
  void finish_decision(dispatch::Dispatcher::Said outcome, std::uint32_t node, std::uint32_t session,
                       const formats::EventDecision& decision, std::uint64_t now_ns);

  const bool has_trigger_;
  bool unplaced_ = false;
  base::CounterBlock<EventsCounter> counters_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> announced_;  // Announced ids: first and last of ranges without a gap.
  RecentIds recent_ids_;                                            // Other ids that are over.
};

/// Returns how many of the events that a supervisor has room for are not for triggers.
std::uint32_t kept_for_untold(std::uint32_t events_in_flight);

dispatch::Event event_of(const formats::AssignedEvent& event);
formats::AssignedEvent assigned_event(const dispatch::Event& event, bool build_only);

}  // namespace rodeo::farm
