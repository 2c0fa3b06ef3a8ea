// FragmentBook keeps the fragments of one ROB until a client clears them. The key is the global id (software ROD paper,
// section VI.C: "HLTRequestHandler"). Pure: no thread, no clock, no network.
//
// Rules. "The line" is an id that the builder has passed: the id that was the newest one `reorder_fragments` fragments ago,
// or `reorder_ns` ago. A fragment at or behind the line that is not here is no longer expected. Time does not count while
// the book is full, or while fragments wait outside for room: fragments that wait outside, or in a builder that is held
// back, may be older.
//
//   a fragment arrives       kept already, or released already ─► released, duplicates
//                            cleared before it arrived         ─► released, cleared_early
//                            the book is full                  ─► stays with the caller, which waits
//                            behind the line                   ─► kept, late: earlier answers said that it is lost
//                            else                              ─► kept
//   a client asks for an id  kept                              ─► there
//                            released, or cleared early        ─► lost
//                            behind the line, or after end()   ─► lost
//                            else                              ─► pending
//   a client clears an id    kept                              ─► released, cleared
//                            released, or cleared early        ─► nothing, cleared_again
//                            behind the line, or after end()   ─► nothing, cleared_again: cleared before, or never arrived
//                            else                              ─► remembered; above the limit, the oldest is forgotten:
//                                                                 early_forgotten
//   time passes              a fragment arrived `garbage_ns`
//                            before one that was cleared       ─► released, garbage: no clear names it
//                            a clear was remembered for
//                            `garbage_ns`                      ─► forgotten, early_forgotten: its fragment never arrives
//
// A readout that joins a run begins its global ids with the ids of its front ends, so its ids may lack rounds that the farm
// has seen. The first id that the farm names shows their number (align()): the book adds the multiple of `id_step` that
// brings its own id nearest to the farm's. From then on the book uses the farm's ids. A book that begins with the id 0 began
// with the run, and adds nothing, unless the farm is ahead by more than a book holds.
//
// Short ids (`id_step` not above four times `reorder_fragments`) do not show how many rounds they lack. A book with short
// ids has no place, and reports no ids, until one of these holds, `reorder_ns` after its first fragment or later:
//
//   it begins with the id 0 (see above)        ─► its own ids are right
//   the farm's position is below `id_step`     ─► its own ids are right
//   the farm knows no other position (set_alone()) ─► its own ids are right, until the farm knows one
//   the farm's position is `id_step` or above  ─► unplaced(): the run must stop
//
// The ids of released fragments are remembered only until they are behind the line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "readout/retention/global_id_table.h"
#include "rodeo/fragment.h"

namespace rodeo::readout {

/// Takes all its memory at construction. One thread at a time.
class FragmentBook {
 public:
  struct Settings {
    std::size_t most_fragments = 1024;
    std::uint32_t reorder_fragments = 256;
    std::uint64_t reorder_ns = 100'000'000;
    std::uint64_t garbage_ns = 60'000'000'000;
    std::size_t most_early_clears = 1024;
    std::uint64_t id_step = std::uint64_t{1}
                            << 32;  ///< the unknown part of a readout's first global id is a multiple of this

    bool short_ids() const { return id_step <= 4 * std::uint64_t{reorder_fragments}; }
  };

  struct Counts {
    std::uint64_t arrived =
        0;  ///< number of fragments: kept now + cleared + cleared_early + duplicates + garbage + left_over
    std::uint64_t cleared = 0;
    std::uint64_t cleared_early = 0;
    std::uint64_t duplicates = 0;
    std::uint64_t garbage = 0;
    std::uint64_t left_over = 0;        ///< fragments released by release_all()
    std::uint64_t late = 0;             ///< late fragments, which are also in `arrived`
    std::uint64_t cleared_again = 0;    ///< number of ids
    std::uint64_t early_forgotten = 0;  ///< number of ids

    Counts& operator+=(const Counts& other);
    bool operator==(const Counts&) const = default;
  };

  enum class Outcome : std::uint8_t { kept, released, full };
  enum class Answer : std::uint8_t { kept, pending, lost };

  explicit FragmentBook(const Settings& settings);

  /// Memory of a book with these settings, without the fragments.
  static double memory_bytes(const Settings& settings);

  /// Takes the fragment, which is then empty, unless the book is full. All times are of one clock and never decrease.
  Outcome keep(FragmentPtr& fragment, std::uint64_t now_ns);

  struct Found {
    Answer answer = Answer::pending;
    const FragmentPtr* fragment = nullptr;  ///< set if `there`; valid until the next call
  };
  Found find(std::uint64_t id) const;

  void clear(std::uint64_t id, std::uint64_t now_ns);

  /// Says that the farm has this global id. The first call after the first fragment counts, or the last call before it. It
  /// moves all kept ids, so it may take some time once. `newest`: the run has reached this id; else the id may be older.
  /// Short ids use the highest position of the run that was named.
  void align(std::uint64_t run_at, bool newest = false);
  /// Says that the farm knows no position but this book's.
  void set_alone();
  /// True if the book cannot tell which events its short ids name.
  bool unplaced() const { return unplaced_; }

  /// Says whether fragments of this ROB wait outside, before keep(). At first there are none.
  void set_waiting_outside(bool some) { waiting_outside_ = some; }

  /// Applies the passing of time. Cheap if nothing has changed.
  void advance(std::uint64_t now_ns);

  /// Says that all fragments have arrived: an id that is not here is lost.
  void end();
  bool ended() const { return ended_; }

  /// Releases all kept fragments.
  void release_all();

  std::size_t size() const { return table_.size(); }
  std::size_t most() const { return entries_.size(); }
  /// Bytes of ROD data in kept fragments.
  std::uint64_t bytes() const { return bytes_; }
  const Counts& counts() const { return counts_; }
  bool has_newest() const { return has_newest_ && placed_; }
  /// The number added to a fragment's global id to get the farm's id.
  std::uint64_t offset() const { return offset_; }
  /// Global id of the newest fragment.
  std::uint64_t newest() const { return newest_; }
  /// The lowest id up to now. It is known `reorder_ns` after the first fragment or at the end, because older ids may arrive
  /// before.
  std::optional<std::uint64_t> first() const {
    return has_newest() && (first_known_ || ended_) ? std::optional(first_) : std::nullopt;
  }

  /// Calls visit(global id) for each kept fragment, in the order of arrival.
  template <typename Visit>
  void for_each_id(Visit&& visit) const {
    if (!placed_) return;
    for (std::uint32_t at = oldest_; at != GlobalIdTable::kNone; at = entries_[at].newer) visit(entries_[at].global_id);
  }

 private:
  struct Entry {
    FragmentPtr fragment;
    std::uint64_t global_id = 0;
    std::uint64_t arrival_ns = 0;
    std::uint32_t bytes = 0;
    std::uint32_t older = GlobalIdTable::kNone;
    std::uint32_t newer = GlobalIdTable::kNone;  ///< link of a free entry to the next free one
  };
  struct Moment {
    std::uint64_t id = 0;
    std::uint64_t at_ns = 0;
  };
  /// The last moments, in the order in which they were added.
  class Moments {
   public:
    explicit Moments(std::size_t most) : moments_(most) {}
    bool empty() const { return count_ == 0; }
    bool full() const { return count_ == moments_.size(); }
    const Moment& front() const { return moments_[first_]; }
    /// The place of the next moment. The place is not used again before the moment is popped.
    std::uint32_t next_place() const { return static_cast<std::uint32_t>((first_ + count_) % moments_.size()); }
    std::uint32_t front_place() const { return static_cast<std::uint32_t>(first_); }
    void shift(std::uint64_t by) {
      for (std::size_t i = 0; i < count_; ++i) moments_[(first_ + i) % moments_.size()].id += by;
    }
    template <typename Visit>
    void for_each(Visit&& visit) const {
      for (std::size_t i = 0; i < count_; ++i) {
        const std::size_t place = (first_ + i) % moments_.size();
        visit(moments_[place].id, static_cast<std::uint32_t>(place));
      }
    }
    void push(Moment moment) {
      moments_[next_place()] = moment;
      ++count_;
    }
    void pop() {
      first_ = first_ + 1 == moments_.size() ? 0 : first_ + 1;
      --count_;
    }

   private:
    std::vector<Moment> moments_;
    std::size_t first_ = 0;
    std::size_t count_ = 0;
  };

  bool is_behind_line(std::uint64_t id) const { return ended_ || (has_line_ && id <= line_); }
  void store(FragmentPtr& fragment, std::uint64_t id, std::uint64_t now_ns);
  void release(std::uint32_t place);
  void on_arrival(std::uint64_t id, std::uint64_t now_ns);
  std::uint64_t missing_rounds(std::uint64_t id) const;
  bool may_begin_the_run() const;
  void decide_placement(bool newest);
  void shift(std::uint64_t by);
  void move_line();
  void remember_clear(std::uint64_t id, std::uint64_t now_ns);
  void forget_clear();
  void collect_garbage();
  bool was_released(std::uint64_t id) const {
    return released_table_.size() != 0 && released_table_.find(id) != GlobalIdTable::kNone;
  }
  void remember_released(std::uint64_t id, std::uint64_t now_ns);
  void forget_released();

  const Settings settings_;
  GlobalIdTable table_;
  std::vector<Entry> entries_;
  std::uint32_t free_ = GlobalIdTable::kNone;
  std::uint32_t oldest_ = GlobalIdTable::kNone;
  std::uint32_t newest_entry_ = GlobalIdTable::kNone;
  std::uint64_t bytes_ = 0;
  std::uint64_t newest_cleared_ns_ = 0;  // arrival time of the newest cleared fragment

  Moments recent_;  // the newest id at the arrival of each recent fragment
  std::uint64_t newest_ = 0;
  std::uint64_t first_ = 0;     // the lowest id up to now
  std::uint64_t first_ns_ = 0;  // arrival time of the first fragment
  bool first_known_ = false;
  std::uint64_t line_ = 0;
  bool has_newest_ = false;
  bool has_line_ = false;
  bool ended_ = false;
  bool waiting_outside_ = false;
  std::optional<std::uint64_t>
      run_at_;            // the last id that the farm named before the first fragment, or the first id after it
  bool aligned_ = false;  // run_at_ is final
  bool placed_ = true;    // the ids are the farm's, as far as is known
  bool unplaced_ = false;
  std::uint64_t offset_ = 0;      // added to the ids of fragments to get the farm's ids
  std::uint64_t held_up_ns_ = 0;  // time at which the book was last full, or fragments last waited outside

  GlobalIdTable early_table_;  // places in early_
  Moments early_;              // clears before their fragments; used clears are no longer in the table

  GlobalIdTable released_table_;
  Moments released_;  // ids of fragments that were released before they were behind the line
  Counts counts_;
};

}  // namespace rodeo::readout
