// Decided events that readouts still have to clear. Readouts get them in batches; a batch is over when each living readout
// has cleared it.
//
// What may happen to a readout, and the effect on the batches that it has not cleared:
//
//   1  it answers            the batch waits for one readout fewer; batches end in order
//   2  it is away            the batches wait for it
//   3  it comes back         it gets all of these batches again
//   4  it has died           the batches no longer wait for it
//   5  it lives again        it gets the batches that are not over; the caller asks what it holds of the other batches
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "dispatch/id_set.h"

namespace rodeo::dispatch {

/// Pure: time is an argument. One thread. Memory: the decided events that are not over.
class ClearBook {
 public:
  struct Settings {
    std::uint32_t count = 10'000;         ///< A batch with this many entries is closed.
    std::uint64_t after_ns = 10'000'000;  ///< A batch of this age is closed, too.
  };
  static constexpr std::uint64_t kNoId = UINT64_MAX;

  /// One reported decision. The caller chooses `node` and `session`.
  struct Entry {
    std::uint64_t id = kNoId;  ///< kNoId: nothing is to be cleared; the entry is over in its turn.
    std::uint32_t node = 0;
    std::uint32_t session = 0;
  };

  explicit ClearBook(Settings settings) : settings_(settings) {}

  // Batches.

  void add(const Entry& entry, std::uint64_t now_ns);
  /// Closes the open batch if it is due, or `at_once`.
  void flush(std::uint64_t now_ns, bool at_once = false);
  /// Number of entries that are not over.
  std::uint64_t entries() const { return entries_; }
  std::uint64_t batches_closed() const { return end_; }
  /// Latest time of the next flush(); UINT64_MAX: no batch is open.
  std::uint64_t due_ns() const { return open_.empty() ? UINT64_MAX : opened_ns_ + settings_.after_ns; }

  // Readouts, by number from 0.

  /// Adds a readout that must get the batches; it is away at first.
  std::uint32_t add_readout();
  /// Cases 3 and 5.
  void connected(std::uint32_t readout);
  /// Case 2.
  void disconnected(std::uint32_t readout);
  /// Case 4.
  void died(std::uint32_t readout);
  bool lives(std::uint32_t readout) const { return readouts_[readout].lives; }
  std::uint32_t living() const;
  /// Number of batches that the readout has not cleared.
  std::uint64_t behind(std::uint32_t readout) const;

  struct Batch {
    std::uint64_t sequence = 0;  ///< Counted from 0.
    const IdSet* ids = nullptr;  ///< Valid until the batch is over.
  };
  /// The next batch for the readout; nothing: it is away, or has got all. The caller reports sent() afterwards.
  std::optional<Batch> next(std::uint32_t readout) const;
  void sent(std::uint32_t readout, std::uint64_t sequence) { readouts_[readout].told = sequence + 1; }
  /// Case 1. An answer for which no batch waits changes nothing.
  void answered(std::uint32_t readout, std::uint64_t sequence);

  /// Removes the batches that are over, in order: calls over(const Entry&) for each entry, then done(sequence).
  template <typename Over, typename Done>
  void take_over(Over&& over, Done&& done) {
    while (!closed_.empty() && closed_.front().missing == 0) {
      Closed& batch = closed_.front();
      for (const Entry& entry : batch.entries) over(entry);
      done(begin_);
      entries_ -= batch.entries.size();
      recycle(std::move(batch));
      closed_.pop_front();
      ++begin_;
    }
  }

 private:
  struct Closed {
    std::vector<Entry> entries;
    IdSet ids;
    std::uint32_t missing = 0;        // Living readouts that have not cleared the batch.
    std::vector<std::uint64_t> done;  // One bit for each readout.
  };
  struct Readout {
    bool lives = true;
    bool here = false;
    std::uint64_t told = 0;  // The readout got the batches below this number on this connection.
  };

  void recycle(Closed&& batch);
  bool has_cleared(const Closed& batch, std::uint32_t readout) const;

  const Settings settings_;
  std::vector<Entry> open_;
  std::uint64_t opened_ns_ = 0;
  std::deque<Closed> closed_;  // Sequence numbers begin_, begin_ + 1, ...
  std::vector<Closed> spare_;
  std::vector<std::uint64_t> scratch_;
  std::vector<Readout> readouts_;
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t entries_ = 0;
};

}  // namespace rodeo::dispatch
