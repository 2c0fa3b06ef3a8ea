// Decides which events enter the books: triggers, and untold events, which readouts hold although no trigger announced them.
//
//   a trigger          enters while more slots are free than `kept`
//   an untold event    found ─► settled ─► recorders are asked ─► ready ─► enters while a slot is free, the oldest first
//
// An untold event has settled when enough time has passed for its trigger to arrive. Without a trigger authority it has
// settled when all readouts that may have it hold it, or enough time has passed for them to get it. So an event that some
// readout still lacks takes no slot.
//
// Full readouts bring no newer events before their oldest ones are cleared. Triggers run ahead of the readouts and could
// fill the books with events that no readout can bring. So some slots are kept for untold events, and nodes get these events
// first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "dispatch/common_span.h"
#include "dispatch/dispatcher.h"

namespace rodeo::dispatch {

/// Pure: time is an argument. One thread. Each untold id is in one list; all lists together are bounded.
class Admission {
 public:
  struct Settings {
    std::uint32_t kept = 1;          ///< Slots that no trigger takes.
    std::size_t most_untold = 1024;  ///< Limit of untold ids; the oldest are kept.
    /// The time that a found id waits for its trigger, or for the fragments of other readouts.
    std::uint64_t settle_ns = 0;
    Offer::Turn turn = Offer::Turn::ahead;  ///< Turn of untold events at the nodes.
  };

  explicit Admission(Settings settings) : settings_(settings) {}

  /// Number of triggers that may enter these books now.
  std::uint32_t room_for_triggers(const Dispatcher& books) const {
    const std::uint32_t room = books.room();
    return room > settings_.kept ? room - settings_.kept : 0;
  }

  /// A readout holds this event, and the books do not contain it. Repeated calls change nothing.
  void found(std::uint64_t id, std::uint64_t now_ns);
  /// found() without a trigger authority: the event has settled at once if `all_have(id, holders)`.
  template <typename AllHave>
  void found(std::uint64_t id, std::uint32_t holder, std::uint64_t now_ns, AllHave&& all_have) {
    found(id, now_ns);
    const auto at = settling_.find(id);
    if (at == settling_.end() || at->second.due_ns <= now_ns) return;
    at->second.holders.add(holder);
    if (all_have(id, std::as_const(at->second.holders))) set_due(at, now_ns);
  }

  /// The ids to ask recorders for now, in order; empty: none. `untold(id)`: still announced by no trigger and no node.
  template <typename Untold>
  std::span<const std::uint64_t> ask(std::uint64_t now_ns, Untold&& untold) {
    if (!asked_.empty()) return asked_;
    for (; !due_.empty() && due_.begin()->first <= now_ns; due_.erase(due_.begin())) {
      const std::uint64_t id = due_.begin()->second;
      settling_.erase(id);
      if (untold(id)) asked_.push_back(id);
    }
    std::ranges::sort(asked_);
    return asked_;
  }
  enum class Recorded : std::uint8_t {
    no,       ///< The event is to be processed.
    unknown,  ///< Some recorder did not answer: the event is to be built and recorded only.
    yes,      ///< The event is decided: nothing is left to do.
  };
  /// Takes the recorders' answers for the ids of ask(), in the same order.
  void answer(std::span<const Recorded> recorded);

  /// Moves ready events into `books`, the oldest first, while there is room. `untold`: as for ask(). `event(id)` makes the
  /// event.
  template <typename Untold, typename MakeEvent>
  void admit(Dispatcher& books, Untold&& untold, MakeEvent&& event) {
    while (!ready_.empty() && books.room() > 0) {
      const auto [id, build_only] = *ready_.begin();
      ready_.erase(ready_.begin());
      if (untold(id)) (void)books.offer(event(id), {.build_only = build_only, .turn = settings_.turn});
    }
  }

  /// Drops ids that were announced in the meantime.
  template <typename Untold>
  void forget_announced(Untold&& untold) {
    std::erase_if(due_, [&](const auto& one) { return !untold(one.second) && settling_.erase(one.second) > 0; });
    std::erase_if(ready_, [&](const auto& one) { return !untold(one.first); });
  }

  /// Number of ids that were found and have not entered.
  std::size_t untold() const { return settling_.size() + asked_.size() + ready_.size(); }
  /// True once, when ids were dropped because the lists were full and there is room again: ask readouts for all that they
  /// hold.
  bool take_overflow();

 private:
  struct Settling {
    std::uint64_t due_ns = 0;
    Holders holders = {};
  };
  using SettlingAt = std::map<std::uint64_t, Settling>::iterator;

  bool has(std::uint64_t id) const;
  bool make_place(std::uint64_t id);
  void set_due(SettlingAt at, std::uint64_t due_ns);

  const Settings settings_;
  std::map<std::uint64_t, Settling> settling_;             // By id.
  std::set<std::pair<std::uint64_t, std::uint64_t>> due_;  // The same ids by time: (when it settles, id).
  std::vector<std::uint64_t> asked_;                       // Sorted.
  std::map<std::uint64_t, bool> ready_;                    // Id, and whether to build it only.
  bool overflow_ = false;
};

}  // namespace rodeo::dispatch
