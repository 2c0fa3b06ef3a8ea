// Which events come into the books: those that the trigger tells of, and those that readouts hold and no trigger told of.
//
//   a trigger          comes in while more slots are free than are kept
//   an untold event    found ─► settled ─► recorders are asked ─► ready ─► comes in while a slot is free, the oldest first
//
// Readouts that are full bring nothing newer before their oldest events are cleared. Triggers run ahead of them and could fill the books with events that no
// readout can bring. So some slots are kept for untold events, and these go to nodes before the others.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "dispatch/dispatcher.h"

namespace rodeo::dispatch {

/// Pure: time is an argument. One thread. Each untold id is in one list, and all lists together have a bound.
class Admission {
 public:
  struct Settings {
    std::uint32_t kept = 1;                 ///< slots that no trigger takes
    std::size_t most_untold = 1024;         ///< ids; of more, the oldest are kept
    std::uint64_t settle_ns = 0;            ///< so long a found id waits: its trigger may be on its way
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

  /// The ids that recorders are asked for now, in order; empty: none. `untold(id)`: no trigger and no node has told of it since.
  template <typename Untold>
  std::span<const std::uint64_t> ask(std::uint64_t now_ns, Untold&& untold) {
    if (asked_.empty() && !settling_.empty() && now_ns >= settled_ns_) {
      settled_ns_ = UINT64_MAX;
      for (auto at = settling_.begin(); at != settling_.end();) {
        const std::uint64_t settled_ns = at->second + settings_.settle_ns;
        if (now_ns >= settled_ns) {
          if (untold(at->first)) asked_.push_back(at->first);
          at = settling_.erase(at);
        } else {
          settled_ns_ = std::min(settled_ns_, settled_ns);
          ++at;
        }
      }
    }
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
    std::erase_if(settling_, [&](const auto& one) { return !untold(one.first); });
    std::erase_if(ready_, [&](const auto& one) { return !untold(one.first); });
  }

  /// Ids that were found and have not come in.
  std::size_t untold() const { return settling_.size() + asked_.size() + ready_.size(); }
  /// Ids were found for which there was no place, and there is place again: readouts are to be asked for all that they hold. True once.
  bool take_overflow();

 private:
  bool has(std::uint64_t id) const;
  bool make_place(std::uint64_t id);

  const Settings settings_;
  std::map<std::uint64_t, std::uint64_t> settling_;  // id, when it was found
  std::uint64_t settled_ns_ = UINT64_MAX;            // the first of these has settled
  std::vector<std::uint64_t> asked_;                 // in order
  std::map<std::uint64_t, bool> ready_;              // id, build only
  bool overflow_ = false;
};

}  // namespace rodeo::dispatch
