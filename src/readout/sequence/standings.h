// Where the readers of one process are in the run, so that a link that is alone in its group is not followed where all others say something else.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "base/spsc_ring.h"
#include "readout/sequence/segments.h"

namespace rodeo::readout {

/// Of one reader. Told by its thread, a few times a page; asked by all.
class alignas(base::kCacheLine) Standing {
 public:
  struct Now {
    Place place;
    bool leaves = false;  ///< its links have gone away to there, and are not followed so far
  };

  /// All that was sent up to `clock`, the input's, is read, and its links have come to `place`.
  void tell(std::uint64_t clock, const Place& place) {
    const std::lock_guard lock(mutex_);
    clock_ = clock;
    place_ = place;
  }
  void leave(const Place& to) {
    const std::lock_guard lock(mutex_);
    left_to_ = to;
  }
  void stay() {
    const std::lock_guard lock(mutex_);
    left_to_.reset();
  }

  /// Where it is, if it has read what was sent up to this clock.
  std::optional<Now> after(std::uint64_t clock) const {
    const std::lock_guard lock(mutex_);
    if (left_to_) return Now{*left_to_, true};
    return place_ && clock_ >= clock ? std::optional(Now{*place_, false}) : std::nullopt;
  }

 private:
  mutable std::mutex mutex_;
  std::uint64_t clock_ = 0;
  std::optional<Place> place_;
  std::optional<Place> left_to_;
};

/// Of one process. Readers are added before the first of them begins.
class Standings {
 public:
  Standing& add() { return readers_.emplace_back(); }
  bool has_others() const { return readers_.size() > 1; }

  /// Where the others are that have read what was sent up to this clock.
  void after(const Standing& of, std::uint64_t clock, std::vector<Standing::Now>& places) const {
    places.clear();
    for (const Standing& other : readers_) {
      const auto place = &other == &of ? std::nullopt : other.after(clock);
      if (place) places.push_back(*place);
    }
  }

 private:
  std::deque<Standing> readers_;
};

/// A second base of our builders: what its workers know of other builders' readers. Before start().
class SharesStandings {
 public:
  virtual void share(Standings& standings) = 0;

 protected:
  ~SharesStandings() = default;
};

}  // namespace rodeo::readout
