// Accepted triggers that somebody still wants, and how far each follower has come with them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "trigger/range.h"
#include "trigger/report.h"

namespace rodeo::trigger {

/// Triggers are counted by their index in the ledger, from 0. Not thread-safe: its hub locks.
class TriggerLedger {
 public:
  using Follower = std::size_t;
  static constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

  /// A function of this process has a capacity. One elsewhere (`peer` says where) has none, but a limit. A name that was here before goes on with its
  /// statistics.
  Follower join(std::string name, std::uint64_t capacity, std::string peer = {});
  void leave(Follower follower);
  /// So many functions of the follower are ready (0: it is not). Who was not ready before starts behind the last trigger.
  void set_ready(Follower follower, unsigned functions);
  void set_busy(Follower follower, bool busy) { followers_[follower].busy = busy; }
  /// A follower elsewhere takes no trigger from this index on. Below what it has: what it has.
  void set_limit(Follower follower, std::uint64_t limit);
  void done(Follower follower, std::uint64_t count);

  bool is_ready(Follower follower) const { return followers_[follower].ready > 0; }
  bool is_busy(Follower follower) const { return followers_[follower].busy; }
  bool any_busy() const { return std::ranges::any_of(followers_, &State::busy); }
  /// The next trigger that take() will give it.
  std::uint64_t position(Follower follower) const { return followers_[follower].taken; }
  bool here(const std::string& name) const;
  unsigned ready_functions() const { return ready_; }
  std::uint64_t end() const { return end_; }

  /// The next triggers were accepted.
  void append(const TriggerRange& range);
  std::uint64_t take(Follower follower, std::uint64_t most, std::vector<TriggerRange>& out);

  /// Triggers that every ready follower has room for; 0 if nobody is ready.
  std::uint64_t room() const;
  /// Counts offered triggers, and time, under the name of everybody who has no room.
  void held_up(std::uint64_t triggers, std::uint64_t ns);

  /// Followers that are here, or have been and counted something.
  void report(TriggerReport& report) const;

 private:
  struct State : TriggerFollowerReport {
    std::uint64_t capacity = 0;  // 0: `limit` is what counts
    std::uint64_t taken = 0;     // index of the next one to hand out
    std::uint64_t limit = 0;     // index of the first that there is no room for
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
  std::deque<Entry> entries_;  // from the oldest that somebody still wants
  std::uint64_t end_ = 0;
  unsigned ready_ = 0;
};

}  // namespace rodeo::trigger
