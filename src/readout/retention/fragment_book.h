// FragmentBook: the fragments of one ROB that are kept until a client clears them, by global id (software ROD paper, section VI.C:
// "HLTRequestHandler"). Pure: no thread, no clock, no network.
//
// Its rules. "The line" is an id that the builder has passed: it was the newest of all when `reorder_fragments` have come behind it, or
// `reorder_ns` have gone by; what is at or behind the line and is not here is not expected any more. While the book is full, or fragments wait outside for
// it to take them, older ones may be among these, or with a builder that is held back: this time does not count.
//
//   a fragment comes         kept already, or let go already   ─► let go, duplicates
//                            cleared before it came            ─► let go, cleared_early
//                            as many as may be are kept        ─► stays with the caller, who waits
//                            behind the line                   ─► kept, late: whoever asked before was told that it is lost
//                            else                              ─► kept
//   an id is asked for       kept                              ─► there
//                            let go, or cleared early          ─► lost
//                            behind the line, or all over      ─► lost
//                            else                              ─► pending
//   an id is cleared         kept                              ─► let go, cleared
//                            let go, or cleared early          ─► nothing, cleared_again
//                            behind the line, or all over      ─► nothing, cleared_again: it was cleared before, or never came
//                            else                              ─► remembered; of too many the oldest is forgotten, early_forgotten
//   time goes by             a fragment came `garbage_ns` before one that has been cleared ─► let go, garbage: no clear names it
//                            a clear was remembered for `garbage_ns`                       ─► forgotten, early_forgotten: it never comes
//
// A readout that joins a run begins its global ids with what its front-ends say, and so may lack rounds of them that the farm has seen. The first id
// that the farm names tells how many (align()): the whole number of `id_step` that brings the two nearest to each other. From then on the book has the
// farm's ids.
//
// What was let go is remembered only until it is behind the line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "readout/retention/global_id_table.h"
#include "rodeo/fragment.h"

namespace rodeo::readout {

/// Takes all its memory at once. One thread at a time.
class FragmentBook {
 public:
  struct Settings {
    std::size_t most_fragments = 1024;
    std::uint32_t reorder_fragments = 256;
    std::uint64_t reorder_ns = 100'000'000;
    std::uint64_t garbage_ns = 60'000'000'000;
    std::size_t most_early_clears = 1024;
    std::uint64_t id_step = std::uint64_t{1}
                            << 32;  ///< what a readout cannot know of its first global id is a multiple of this
  };

  struct Counts {
    std::uint64_t taken = 0;  ///< fragments: = kept now + cleared + cleared_early + duplicates + garbage + left_over
    std::uint64_t cleared = 0;
    std::uint64_t cleared_early = 0;
    std::uint64_t duplicates = 0;
    std::uint64_t garbage = 0;
    std::uint64_t left_over = 0;        ///< let_all_go()
    std::uint64_t late = 0;             ///< of those taken
    std::uint64_t cleared_again = 0;    ///< ids
    std::uint64_t early_forgotten = 0;  ///< ids

    Counts& operator+=(const Counts& other);
    bool operator==(const Counts&) const = default;
  };

  enum class Taken : std::uint8_t { kept, let_go, full };
  enum class Answer : std::uint8_t { there, pending, lost };

  explicit FragmentBook(const Settings& settings);

  /// What a book of these settings takes, without the fragments.
  static double memory_bytes(const Settings& settings);

  /// Empties `fragment`, unless the book is full. Times are of one clock and never fall.
  Taken take(FragmentPtr& fragment, std::uint64_t now_ns);

  struct Found {
    Answer answer = Answer::pending;
    const FragmentPtr* fragment = nullptr;  ///< of `there`: until something else is called
  };
  Found find(std::uint64_t id) const;

  void clear(std::uint64_t id, std::uint64_t now_ns);

  /// The run is at this global id, or nearly. Only the first counts. Moves what is kept, so that it may take time, once.
  void align(std::uint64_t run_at);

  /// Whether fragments of this ROB have come that take() was not given, as its caller knows. At first: no.
  void wait_outside(bool some) { some_outside_ = some; }

  /// What time brings about. Cheap where that is nothing.
  void advance(std::uint64_t now_ns);

  /// All fragments have come: what is not here is lost.
  void end() { ended_ = true; }
  bool ended() const { return ended_; }

  /// Lets go of what is kept.
  void let_all_go();

  std::size_t size() const { return table_.size(); }
  std::size_t most() const { return entries_.size(); }
  /// Bytes of ROD data that are kept.
  std::uint64_t bytes() const { return bytes_; }
  const Counts& counts() const { return counts_; }
  bool has_newest() const { return has_newest_; }
  /// What the farm's global ids have more than those of fragments.
  std::uint64_t offset() const { return offset_; }
  /// Global id of the newest fragment that has come.
  std::uint64_t newest() const { return newest_; }
  /// The lowest id that has come, `reorder_ns` after the first, or at the end: older ones may be on their way before.
  std::optional<std::uint64_t> first() const {
    return has_newest_ && (first_settled_ || ended_) ? std::optional(first_) : std::nullopt;
  }

  /// Calls visit(global id) for what is kept, in the order in which it came.
  template <typename Visit>
  void for_each_id(Visit&& visit) const {
    for (std::uint32_t at = oldest_; at != GlobalIdTable::kNone; at = entries_[at].newer) visit(entries_[at].global_id);
  }

 private:
  struct Entry {
    FragmentPtr fragment;
    std::uint64_t global_id = 0;
    std::uint64_t came_ns = 0;
    std::uint32_t bytes = 0;
    std::uint32_t older = GlobalIdTable::kNone;
    std::uint32_t newer = GlobalIdTable::kNone;  ///< of one that is free: the next that is
  };
  struct Moment {
    std::uint64_t id = 0;
    std::uint64_t at_ns = 0;
  };
  /// The last so many, in the order in which they were added.
  class Moments {
   public:
    explicit Moments(std::size_t most) : moments_(most) {}
    bool empty() const { return count_ == 0; }
    bool full() const { return count_ == moments_.size(); }
    const Moment& front() const { return moments_[first_]; }
    /// Where the next goes: a place of its own until it is popped.
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

  bool passed(std::uint64_t id) const { return ended_ || (has_line_ && id <= line_); }
  void keep(FragmentPtr& fragment, std::uint64_t id, std::uint64_t now_ns);
  void let_go(std::uint32_t place);
  void note_newest(std::uint64_t id, std::uint64_t now_ns);
  std::uint64_t lacking(std::uint64_t id) const;
  void shift(std::uint64_t by);
  void move_line();
  void remember_clear(std::uint64_t id, std::uint64_t now_ns);
  void forget_clear();
  void collect_garbage();
  bool is_gone(std::uint64_t id) const { return gone_table_.size() != 0 && gone_table_.find(id) != GlobalIdTable::kNone; }
  void note_gone(std::uint64_t id, std::uint64_t now_ns);
  void forget_gone();

  const Settings settings_;
  GlobalIdTable table_;
  std::vector<Entry> entries_;
  std::uint32_t free_ = GlobalIdTable::kNone;
  std::uint32_t oldest_ = GlobalIdTable::kNone;
  std::uint32_t newest_entry_ = GlobalIdTable::kNone;
  std::uint64_t bytes_ = 0;
  std::uint64_t cleared_came_ns_ = 0;  // when the newest that has been cleared had come

  Moments recent_;  // the newest id at each of the last fragments
  std::uint64_t newest_ = 0;
  std::uint64_t first_ = 0;     // the lowest that has come
  std::uint64_t first_ns_ = 0;  // when the first came
  bool first_settled_ = false;
  std::uint64_t line_ = 0;
  bool has_newest_ = false;
  bool has_line_ = false;
  bool ended_ = false;
  bool some_outside_ = false;
  std::optional<std::uint64_t> run_at_;  // the first id that the farm named
  std::uint64_t offset_ = 0;             // of the farm's ids to those of fragments
  std::uint64_t held_up_ns_ = 0;         // when it was last full, or some were outside

  GlobalIdTable early_table_;  // places in early_
  Moments early_;              // clears before their fragments; those that were used since are not in the table

  GlobalIdTable gone_table_;
  Moments gone_;  // let go, and not behind the line when that was
  Counts counts_;
};

}  // namespace rodeo::readout
