// The books of a supervisor: events under way, what is decided and not cleared, and which ids are over.
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
#include "farm/supervisor/lately.h"
#include "farm/supervisor/settings.h"
#include "formats/assignment.h"

namespace rodeo::farm {

inline constexpr std::uint64_t kSettleNs = 500'000'000;  ///< a trigger that was accepted is told of within that

enum class BooksCounter : std::uint8_t { before_common_start, after_common_end, count };
inline constexpr std::array<base::CounterInfo, 2> kBooksCounters{{
    {"before_common_start", "events",
     "Without a trigger: events below the first number that all readouts can have. They are cleared, not assigned."},
    {"after_common_end", "events",
     "Without a trigger: events behind the last number that all readouts have at the end of the run. They are cleared, not "
     "assigned."},
}};

/// One thread. What is said of events by nodes, readouts and the trigger goes through here; each function is one of those sayings.
class Books {
 public:
  static constexpr std::uint32_t kNobody = UINT32_MAX;

  explicit Books(const SupervisorSettings& settings);

  // The trigger.

  /// Triggers come without a gap from this id on.
  void trigger_begins(std::uint64_t id) { told_.emplace_back(id, id); }
  /// It has told us of this event. The admission must have room for a trigger. False: a readout had told of it first, and it has left the books by now.
  bool trigger(const dispatch::Event& event);

  // Readouts.

  enum class Held : std::uint8_t {
    known,   ///< in the books
    over,    ///< decided and cleared everywhere else
    orphan,  ///< untold, so far
  };
  Held held(std::uint64_t id) const { return dispatcher.knows(id) ? Held::known : is_over(id) ? Held::over : Held::orphan; }
  /// It is over, and a readout has it nevertheless.
  void clear_again(std::uint64_t id, std::uint64_t now_ns) { clears.add({.id = id, .who = kNobody}, now_ns); }

  // Nodes. Each decision becomes safe in its turn, whatever it is worth.

  void decision(std::uint32_t node, std::uint32_t session, const formats::EventDecision& decision, std::uint64_t now_ns);
  /// The same in a HELLO, where it may be of before this supervisor began.
  void decision_of_before(std::uint32_t node, std::uint32_t session, const formats::EventDecision& decision,
                          std::uint64_t now_ns);
  /// It makes room for an older event. `heard`: in this session; in a HELLO it says only that the node does not have the event.
  void given_back(std::uint32_t node, std::uint32_t session, const formats::EventDecision& decision, bool heard,
                  std::uint64_t now_ns);
  /// An event that a node says it has; false: not any more.
  bool has(std::uint32_t node, const formats::AssignedEvent& event, std::uint64_t now_ns);

  // A recorder: it has an event that nobody has decided; `debug`: in a stream for debugging.
  void recorded_before(std::uint64_t id, bool debug, std::uint64_t now_ns);

  /// The readout holds it, and it is an orphan.
  void found(std::uint32_t readout, std::uint64_t id, std::uint64_t now_ns);
  /// Triggers that may come in.
  std::uint32_t room() const { return admission.room_for_triggers(dispatcher); }
  /// Events that are not decided: each counts once.
  std::uint64_t undecided();

  /// Whether an id that is not in the books was.
  bool is_over(std::uint64_t id) const;
  /// All that came in has been decided and cleared.
  bool empty() const {
    return dispatcher.waiting() + dispatcher.assigned() + dispatcher.decided() == 0 && clears.entries() == 0 &&
           admission.untold() == 0;
  }

  /// What is cleared everywhere leaves the books: calls safe(node, session) for each decision, in order.
  template <typename Safe>
  void take_over(Safe&& safe) {
    if (!decisions.written()) return;
    clears.take_over(
        [&](const dispatch::ClearBook::Entry& entry) {
          if (entry.id != dispatch::ClearBook::kNoId) leave(entry.id);
          if (entry.who != kNobody) safe(entry.who, entry.session);
        },
        [](std::uint64_t) {});
  }

  /// Readouts hold events, and it is not known yet which of them are of the run.
  bool has_unplaced() const { return unplaced_ && !span.begin_known(); }
  std::vector<NamedCounter> counters() const;

  dispatch::Dispatcher dispatcher;
  dispatch::Admission admission;
  dispatch::CommonSpan span;  ///< used where there is no trigger
  dispatch::ClearBook clears;
  DecisionFile decisions;

 private:
  void outside(BooksCounter why, std::uint64_t id, std::uint64_t now_ns);
  bool told(std::uint64_t id) const;
  void leave(std::uint64_t id);
  void settle(dispatch::Dispatcher::Said said, std::uint32_t node, std::uint32_t session,
              const formats::EventDecision& decision, std::uint64_t now_ns);

  const bool has_trigger_;
  bool unplaced_ = false;
  base::CounterBlock<BooksCounter> counters_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> told_;  // ids that the trigger told of, first and last without a gap
  Lately lately_;                                              // others
};

/// Of the events that a supervisor has room for, those that no trigger takes.
std::uint32_t kept_for_untold(std::uint32_t events_in_flight);

dispatch::Event event_of(const formats::AssignedEvent& event);
formats::AssignedEvent assigned_event(const dispatch::Event& event, bool build_only);

}  // namespace rodeo::farm
