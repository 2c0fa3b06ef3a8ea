// Which events a group of FULL-mode links has brought: its links carry the events of one stream in turn, so a gap shows only when
// every link has gone past it (architecture, "Builder": FULL-mode groups are checked as a group, not per link).
#pragma once

#include <cstdint>
#include <vector>

#include "readout/builder/epoch_map.h"
#include "readout/builder/link_tracker.h"

namespace rodeo::readout {

/// Told of each event that no link will bring any more; strictly ascending.
class MissingEvents {
 public:
  virtual void missing(Sequence sequence) = 0;

 protected:
  ~MissingEvents() = default;
};

/// One worker thread.
class GroupTracker {
 public:
  struct Settings {
    std::uint32_t links = 1;
    std::uint64_t window =
        1024;  ///< events between the oldest that has not come and the newest; a power of two, at least 64
    std::uint32_t step_limit = 64;  ///< events that the stream may skip and be believed at once
    bool trigger_list = false;      ///< announce() will be called
  };

  GroupTracker(const Settings& settings, const IdFormat& format, MissingEvents& host);

  /// The event of a chunk that came on the group's link `link`; with `take` it counts as there. hold: its id is far from anything
  /// (sequence 0); ask again, confirmed, when the group's next chunk agrees. Or (sequence not 0) the link, which has brought every nth
  /// event so far, brings another: ask again, confirmed, with the link's next chunk, unless that one contradicts(). A full window gives
  /// up its oldest gap. out_of_sequence: it is the turn of another link that still brings its own, and most links keep to theirs.
  Decision decide(std::uint32_t link, std::uint32_t id, bool confirmed) {
    if (begun_ && id == expected_ && !confirmed && !surprising(link, head_ + 1)) {
      const Decision next{Verdict::take, head_ + 1, epoch_};
      accept(link, next.sequence);
      return next;
    }
    return decide_slowly(link, id, confirmed);
  }

  /// True if `id` lies near `held_id`, as the next chunk of a stream that has really jumped does.
  bool agrees(std::uint32_t held_id, std::uint32_t id) const;

  /// True if the link's next chunk, with this id, shows that the one before it, of another event than expected, had a wrong id: the link
  /// goes on as if that had been the event expected, which nobody has brought.
  bool contradicts(std::uint32_t link, std::uint32_t id) const;

  /// The trigger's own list names an event: it exists, whether a chunk comes or not, and has this BCID.
  void announce(std::uint32_t id, std::uint16_t bcid);
  /// Events that may be announced now: the list does not fill more than half of the window ahead of the data.
  std::uint64_t room_to_announce() const {
    const std::uint64_t lead = listed_ + 1 > oldest_ ? listed_ + 1 - oldest_ : 0;
    return lead < settings_.window / 2 ? settings_.window / 2 - lead : 0;
  }

  /// The BCID that the trigger's own list gives the event, or `otherwise`.
  std::uint16_t listed_bcid(Sequence sequence, std::uint16_t otherwise) const {
    const std::uint32_t listed = listed_bcids_.empty() ? kNotListed : listed_bcids_[sequence & mask_];
    return listed == kNotListed ? otherwise : static_cast<std::uint16_t>(listed);
  }

  /// Gives up the gaps that every link has passed.
  void give_up_passed();
  /// Gives up the gaps up to here, whatever the links have done.
  void give_up(Sequence bound);

  /// True while an event below the newest has not come.
  bool begun() const { return begun_; }
  bool has_gap() const { return begun_ && oldest_ <= head_; }
  Sequence oldest() const { return oldest_; }
  Sequence head() const { return head_; }

  L1Id l1id(Sequence sequence) const { return (sequence >= epoch_.base ? epoch_ : previous_).l1id(sequence); }

  /// The link whose turn this event was, as far as the group's habit tells.
  std::uint32_t likely_link(Sequence sequence) const { return turn_[sequence % turn_.size()]; }

  /// A removed link is not waited for.
  void set_removed(std::uint32_t link, bool removed) { habits_[link].removed = removed; }

 private:
  static constexpr std::uint32_t kNotListed = ~std::uint32_t{0};
  static constexpr std::uint16_t kHabit = 16;  // times that a link must have brought every nth event to be held to it

  /// The events that one link brings, as far as they come at equal steps. Half a cache line: it is touched with every chunk.
  struct alignas(32) Habit {
    Sequence newest = 0;
    Sequence last = 0;
    std::uint64_t step = 0;
    std::uint16_t times = 0;  // in a row, up to kHabit
    bool removed = false;
    bool strays = false;  // brings events whose turn is another's

    Sequence next() const { return last + step; }
    void follow(Sequence sequence) {
      const std::uint64_t now = sequence - last;
      last = sequence;
      if (now == step) {
        if (times < kHabit) ++times;
      } else if (times < kHabit || now > step * kHabit || now % step != 0) {  // a habit outlives what was lost
        step = now;
        times = 0;
      }
    }
  };

  // A link that has long brought every nth event brings another, of the same epoch.
  bool surprising(std::uint32_t link, Sequence sequence) const {
    const Habit& habit = habits_[link];
    return habit.times >= kHabit && sequence != habit.next() && sequence >= epoch_.base && habit.last >= epoch_.base;
  }
  bool turn_of_another(std::uint32_t link, Sequence sequence) const;
  bool most_stray() const;
  Decision decide_slowly(std::uint32_t link, std::uint32_t id, bool confirmed);
  Decision place(std::uint32_t id, bool confirmed);
  void begin(std::uint32_t ecr, std::uint32_t l1);
  void cross(std::uint64_t resets);
  void raise_head(Sequence to, bool is_void);
  void pass_oldest();

  void accept(std::uint32_t link, Sequence sequence) {
    if (sequence > head_) raise_head(sequence, false);
    came_[(sequence & mask_) >> 6] |= std::uint64_t{1} << (sequence & 63);
    habits_[link].newest = std::max(habits_[link].newest, sequence);
    habits_[link].follow(sequence);
    habits_[link].strays = false;
    turn_[sequence % turn_.size()] = link;
    while (oldest_ <= head_ && bit(came_, oldest_)) ++oldest_;
  }
  bool bit(const std::vector<std::uint64_t>& bits, Sequence sequence) const {
    return (bits[(sequence & mask_) >> 6] >> (sequence & 63) & 1U) != 0;
  }

  const Settings settings_;
  const IdFormat format_;
  const std::uint64_t mask_;
  const std::uint64_t gap_;  // numbers left free before the first event and between epochs
  MissingEvents& host_;
  Epoch epoch_{};                            // of the newest event
  Epoch previous_{};                         // the one before, whose events may still come
  std::vector<std::uint64_t> came_;          // one bit per event of the window
  std::vector<std::uint64_t> void_;          // numbers that need not be events
  std::vector<Habit> habits_;                // of each link
  std::vector<std::uint32_t> listed_bcids_;  // of the events of the window, if there is a trigger list
  std::vector<std::uint32_t> turn_;          // which link brought the last event of each remainder
  Sequence oldest_ = 0;                      // lowest that has neither come nor been given up
  Sequence head_ = 0;
  Sequence listed_ = 0;         // newest that the trigger's own list has named
  std::uint32_t expected_ = 0;  // id of head_ + 1
  bool begun_ = false;
};

}  // namespace rodeo::readout
