// Accepted triggers that some follower still needs, and the progress of each follower.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "trigger/range.h"
#include "trigger/report.h"

namespace rodeo::trigger {

/// Counts triggers by their index in the ledger; the first index is 0. Not thread-safe: its hub locks.
class TriggerLedger {
 public:
  using Follower = std::size_t;
  static constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

  /// Adds a follower. A function of this process has a capacity. A follower in another process (at `peer`) has a limit
  /// instead. A follower whose name was here before keeps its statistics.
  Follower join(std::string name, std::uint64_t capacity, std::string peer = {});
  void leave(Follower follower);
  /// Sets the number of ready functions of the follower (0: not ready). A follower that becomes ready starts behind the last
  /// trigger.
  void set_ready(Follower follower, unsigned functions);
  void set_busy(Follower follower, bool busy) { followers_[follower].busy = busy; }
  /// Sets the first trigger that a follower in another process may not take. A limit below its position counts as its
  /// position.
  void set_limit(Follower follower, std::uint64_t limit);
  void done(Follower follower, std::uint64_t count);

  bool is_ready(Follower follower) const { return followers_[follower].ready > 0; }
  bool is_busy(Follower follower) const { return followers_[follower].busy; }
  bool any_busy() const { return std::ranges::any_of(followers_, &State::busy); }
  /// Returns the index of the trigger that take() returns next.
  std::uint64_t position(Follower follower) const { return followers_[follower].taken; }
  bool here(const std::string& name) const;
  unsigned ready_functions() const { return ready_; }
  std::uint64_t end() const { return end_; }

  /// Adds the next accepted triggers.
  void append(const TriggerRange& range);
  std::uint64_t take(Follower follower, std::uint64_t most, std::vector<TriggerRange>& out);

  /// Returns the number of triggers for which every ready follower has room, or 0 if none is ready.
  std::uint64_t room() const;
  /// Counts offered triggers, and time, for each follower without room.
  void held_up(std::uint64_t triggers, std::uint64_t ns);

  /// Adds the followers that are present, and those that have left with counts.
  void report(TriggerReport& report) const;

 private:
  struct State : TriggerFollowerReport {
    std::uint64_t capacity = 0;  // 0: `limit` applies
    std::uint64_t taken = 0;     // index of the next trigger to return
    std::uint64_t limit = 0;     // index of the first trigger without room
    std::uint64_t busy_ns = 0;
    bool busy = false;
  };
  struct Entry {
    std::uint64_t index;
    TriggerRange range;
  };
  static constexpr std::size_t kMostNames = 4096;

  void forget();

  std::vector<State> followers_;
  std::deque<Entry> entries_;  // begins with the oldest trigger that a follower still needs
  std::uint64_t end_ = 0;
  unsigned ready_ = 0;
};

}  // namespace rodeo::trigger
