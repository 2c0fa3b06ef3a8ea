// Deadlines of many connections, which are often moved and seldom reached: a wheel of coarse slots, each checked once a
// turn.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "network/simulator/time.h"

namespace rodeo::network {

/// Keeps one visit for each owner, never later than its deadline. When the visit is due, the wheel reads the deadline again,
/// so moving a deadline to a later time costs nothing.
class TimerWheel {
 public:
  explicit TimerWheel(std::size_t owners) : visit_(owners, kNever), slots_(kSlots) {}

  /// Sets the owner's deadline.
  void arm(std::uint32_t owner, Picoseconds deadline) {
    if (deadline >= visit_[owner]) return;
    add(owner, deadline);
  }

  /// A lower bound: nothing is due before it.
  Picoseconds next() const {
    return std::min(soon_.empty() ? kNever : soon_.front().time, in_slots_ == 0 ? kNever : slot_start_);
  }

  /// Calls due(owner, deadline) for every owner with a deadline before `end`, by deadline, then owner. deadline_of(owner)
  /// gives the deadline.
  template <typename DeadlineOf, typename Due>
  void advance(Picoseconds end, DeadlineOf&& deadline_of, Due&& due) {
    while (slot_start_ < end) {
      auto& slot = slots_[(slot_start_ >> kSlotShift) % kSlots];
      slot_start_ += kSlotWidth;
      if (slot.empty()) continue;
      scratch_.swap(slot);
      in_slots_ -= scratch_.size();
      for (const Entry& entry : scratch_) {
        if (visit_[entry.owner] != entry.time) continue;  // an earlier visit has replaced it
        visit_[entry.owner] = kNever;
        const Picoseconds deadline = deadline_of(entry.owner);
        if (deadline != kNever) add(entry.owner, deadline);
      }
      scratch_.clear();
    }
    while (!soon_.empty() && soon_.front().time < end) {
      std::pop_heap(soon_.begin(), soon_.end(), std::greater<>());
      const Entry entry = soon_.back();
      soon_.pop_back();
      if (visit_[entry.owner] != entry.time) continue;
      visit_[entry.owner] = kNever;
      const Picoseconds deadline = deadline_of(entry.owner);
      if (deadline == kNever) continue;
      if (deadline < end) {
        due(entry.owner, deadline);
      } else {
        add(entry.owner, deadline);
      }
    }
  }

 private:
  static constexpr unsigned kSlotShift = 26;  // 67 us
  static constexpr Picoseconds kSlotWidth = Picoseconds{1} << kSlotShift;
  // The wheel covers 275 ms; later deadlines are visited earlier than they are due.
  static constexpr std::size_t kSlots = 4096;

  struct Entry {
    Picoseconds time;
    std::uint32_t owner;
    auto operator<=>(const Entry&) const = default;
  };

  void add(std::uint32_t owner, Picoseconds deadline) {
    const Picoseconds visit = std::min(deadline, slot_start_ + kSlotWidth * (kSlots - 1));
    visit_[owner] = visit;
    if (visit < slot_start_) {
      soon_.push_back({visit, owner});
      std::push_heap(soon_.begin(), soon_.end(), std::greater<>());
    } else {
      slots_[(visit >> kSlotShift) % kSlots].push_back({visit, owner});
      ++in_slots_;
    }
  }

  std::vector<Picoseconds> visit_;
  std::vector<std::vector<Entry>> slots_;
  std::vector<Entry> soon_;  // heap of visits before slot_start_
  std::vector<Entry> scratch_;
  Picoseconds slot_start_ = 0;
  std::size_t in_slots_ = 0;
};

}  // namespace rodeo::network
