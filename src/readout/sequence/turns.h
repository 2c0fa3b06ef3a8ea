// Which link's turn an event is, in a group of FULL-mode links that carry the events of one stream in turn. A chunk of an
// event that is another link's turn strays: its counter may be wrong. It is built only if the other link does not bring the
// event, and flagged unless the events are dealt anew.
#pragma once

#include <cstdint>
#include <vector>

#include "rodeo/ids.h"

namespace rodeo::readout {

/// For one worker thread.
class Turns {
 public:
  explicit Turns(std::size_t links) : links_(links), owners_(links) {}

  /// Notes a chunk of this link for event `number`. True if it is the turn of another link, which has long kept to its turns
  /// and still does.
  bool is_stray(std::size_t link, Sequence number) {
    Owner& owner = owners_[number % owners_.size()];
    Habit& habit = links_[owner.link];
    const bool another = owner.known && owner.link != link && !habit.removed && habit.times >= kHabit &&
                         habit.last % owners_.size() == number % owners_.size() &&
                         number - habit.last <= kHabit * habit.step;
    if (!another) owner = {static_cast<std::uint32_t>(link), true};
    Habit& own = links_[link];
    if (own.times >= kHabit && own.last % owners_.size() != number % owners_.size()) own.strayed = number;
    own.follow(number);
    return another;
  }

  /// True if the link whose turn this was has left its turn, too, close by: the events are dealt anew, as where a recording
  /// starts over.
  bool is_redealt(Sequence number) const {
    const Sequence strayed = links_[owners_[number % owners_.size()].link].strayed;
    return strayed != 0 && strayed <= number + owners_.size() && number <= strayed + kHabit * owners_.size();
  }

  /// The link that should have brought this missing event: the one that brought the last event of this turn, unless it has
  /// another turn by now (numbers of a later segment are dealt anew). Else the one that was silent for longest, if possible
  /// of those whose turn it may be.
  std::uint32_t likely_link(Sequence number) const {
    const Owner& owner = owners_[number % owners_.size()];
    if (owner.known && links_[owner.link].may_have(number)) return owner.link;
    std::uint32_t likely = 0;
    for (std::uint32_t link = 1; link < links_.size(); ++link) {
      const bool may = links_[link].may_have(number);
      const bool another_may = links_[likely].may_have(number);
      if (may == another_may ? links_[link].last < links_[likely].last : may) likely = link;
    }
    return likely;
  }

  void set_removed(std::size_t link, bool removed) { links_[link].removed = removed; }

 private:
  static constexpr std::uint16_t kHabit =
      16;  // equal steps in a row that make a turn a link's own, and turns that the link may miss

  struct Habit {
    Sequence last = 0;
    Sequence strayed = 0;  // the last event with which it left a turn that it had long kept to
    std::uint64_t step = 0;
    std::uint16_t times = 0;
    bool removed = false;

    /// Two equal steps show a habit.
    bool may_have(Sequence number) const {
      return times < 2 || step == 0 || (number > last ? number - last : last - number) % step == 0;
    }
    void follow(Sequence number) {
      const std::uint64_t now = number - last;
      last = number;
      if (now == step) {
        if (times < kHabit) ++times;
      } else if (times < kHabit || now % step != 0 || now > kHabit * step) {  // a habit outlives losses
        step = now;
        times = 0;
      }
    }
  };
  struct Owner {
    std::uint32_t link = 0;
    bool known = false;
  };

  std::vector<Habit> links_;
  std::vector<Owner> owners_;  // of each turn
};

}  // namespace rodeo::readout
