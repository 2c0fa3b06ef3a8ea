// Which events come into the books: those that the trigger tells of, and those that readouts hold and no trigger told of.
//
//   a trigger          comes in while more slots are free than are kept
//   an untold event    found ─► settled ─► recorders are asked ─► ready ─► comes in while a slot is free, the oldest first
//
// An event has settled when its trigger had time to come; where there is no trigger, when all readouts that may have it do, or had time to get it. So a slot
// is not held by an event that some readout does not have yet.
//
// Readouts that are full bring nothing newer before their oldest events are cleared. Triggers run ahead of them and could fill the books with events that no
// readout can bring. So some slots are kept for untold events, and these go to nodes before the others.
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

/// Pure: time is an argument. One thread. Each untold id is in one list, and all lists together have a bound.
class Admission {
 public:
  struct Settings {
    std::uint32_t kept = 1;          ///< slots that no trigger takes
    std::size_t most_untold = 1024;  ///< ids; of more, the oldest are kept
    std::uint64_t settle_ns =
        0;  ///< so long a found id waits: its trigger, or other readouts' fragments, may be on their way
    Offer::Turn turn = Offer::Turn::ahead;  ///< of untold events at the nodes
  };

  explicit Admission(Settings settings) : settings_(settings) {}

  /// Triggers that may come into these books now.
  std::uint32_t room_for_triggers(const Dispatcher& books) const {
    const std::uint32_t room = books.room();
    return room > settings_.kept ? room - settings_.kept : 0;
  }

  /// A readout holds this event, and it is in no book. Repeated findings change nothing.
  void found(std::uint64_t id, std::uint64_t now_ns);
  /// The same where there is no trigger: it has settled at once when `all_have(id, holders)`.
  template <typename AllHave>
  void found(std::uint64_t id, std::uint32_t holder, std::uint64_t now_ns, AllHave&& all_have) {
    found(id, now_ns);
    const auto at = settling_.find(id);
    if (at == settling_.end() || at->second.due_ns <= now_ns) return;
    at->second.holders.add(holder);
    if (all_have(id, std::as_const(at->second.holders))) set_due(at, now_ns);
  }

  /// The ids that recorders are asked for now, in order; empty: none. `untold(id)`: no trigger and no node has told of it since.
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
    no,       ///< it is to be processed
    unknown,  ///< some recorder did not say: it is to be built and recorded only
    yes,      ///< it is decided: nothing is to be done
  };
  /// What recorders said of each id of ask(), in its order.
  void answer(std::span<const Recorded> recorded);

  /// Events that are ready come into these books, the oldest first, while there is room. `untold`: as for ask(). `event(id)`: the event of an id.
  template <typename Untold, typename MakeEvent>
  void admit(Dispatcher& books, Untold&& untold, MakeEvent&& event) {
    while (!ready_.empty() && books.room() > 0) {
      const auto [id, build_only] = *ready_.begin();
      ready_.erase(ready_.begin());
      if (untold(id)) (void)books.offer(event(id), {.build_only = build_only, .turn = settings_.turn});
    }
  }

  /// Drops ids that are told by now.
  template <typename Untold>
  void forget_told(Untold&& untold) {
    std::erase_if(due_, [&](const auto& one) { return !untold(one.second) && settling_.erase(one.second) > 0; });
    std::erase_if(ready_, [&](const auto& one) { return !untold(one.first); });
  }

  /// Ids that were found and have not come in.
  std::size_t untold() const { return settling_.size() + asked_.size() + ready_.size(); }
  /// Ids were found for which there was no place, and there is place again: readouts are to be asked for all that they hold. True once.
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
  std::map<std::uint64_t, Settling> settling_;             // by id
  std::set<std::pair<std::uint64_t, std::uint64_t>> due_;  // of each of these: when it has settled, id
  std::vector<std::uint64_t> asked_;                       // in order
  std::map<std::uint64_t, bool> ready_;                    // id, build only
  bool overflow_ = false;
};

}  // namespace rodeo::dispatch
