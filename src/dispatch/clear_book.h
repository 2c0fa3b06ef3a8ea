// Decided events on their way out: told to readouts in batches, and over when each readout that lives has cleared them.
//
// What may become of a readout, and then of the batches that it has not cleared:
//
//   1  it answers            the batch lacks one readout less; batches are over in their order
//   2  it is away            they wait for it
//   3  it comes back         it is told them again, all
//   4  it has died           nobody waits for it any more
//   5  it lives again        it is told those that are still here; what was over meanwhile it has to be asked for
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "dispatch/id_set.h"

namespace rodeo::dispatch {

/// Pure: time is an argument. One thread. Memory: what was decided and is not over.
class ClearBook {
 public:
  struct Settings {
    std::uint32_t count = 10'000;         ///< a batch is closed when it has so many
    std::uint64_t after_ns = 10'000'000;  ///< or so long after its first
  };
  static constexpr std::uint64_t kNoId = UINT64_MAX;

  /// What was said to be decided, by whom: `who` and `session` are the caller's.
  struct Entry {
    std::uint64_t id = kNoId;  ///< kNoId: there is nothing to clear, but it is over in its turn
    std::uint32_t who = 0;
    std::uint32_t session = 0;
  };

  explicit ClearBook(Settings settings) : settings_(settings) {}

  // Batches.

  void add(const Entry& entry, std::uint64_t now_ns);
  /// Closes the open batch if it is time to, or `at_once`.
  void flush(std::uint64_t now_ns, bool at_once = false);
  /// Entries of batches that are not over.
  std::uint64_t entries() const { return entries_; }
  std::uint64_t batches_closed() const { return end_; }
  /// When flush() is to be called at the latest; UINT64_MAX: nothing is open.
  std::uint64_t due_ns() const { return open_.empty() ? UINT64_MAX : opened_ns_ + settings_.after_ns; }

  // Readouts, by number from 0.

  /// One that is to be told; it is away.
  std::uint32_t add_readout();
  /// Cases 3 and 5.
  void here(std::uint32_t readout);
  /// Case 2.
  void away(std::uint32_t readout);
  /// Case 4.
  void died(std::uint32_t readout);
  bool lives(std::uint32_t readout) const { return readouts_[readout].lives; }
  std::uint32_t living() const;
  /// Batches that it has not cleared.
  std::uint64_t behind(std::uint32_t readout) const;

  struct Batch {
    std::uint64_t sequence = 0;  ///< from 0
    const IdSet* ids = nullptr;  ///< until it is over
  };
  /// The next batch that the readout, which is here, is to be told; nothing: it has been told all. sent() says that it was told it.
  std::optional<Batch> next(std::uint32_t readout) const;
  void sent(std::uint32_t readout, std::uint64_t sequence) { readouts_[readout].told = sequence + 1; }
  /// Case 1. An answer that nobody waits for changes nothing.
  void answered(std::uint32_t readout, std::uint64_t sequence);

  /// Takes the batches that are over, in their order: calls over(const Entry&) for each entry, then done(sequence).
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
    std::uint32_t missing = 0;        // readouts that live and have not cleared it
    std::vector<std::uint64_t> done;  // bit of each readout
  };
  struct Readout {
    bool lives = true;
    bool here = false;
    std::uint64_t told = 0;  // batches below were told it on this connection
  };

  void recycle(Closed&& batch);
  bool has_cleared(const Closed& batch, std::uint32_t readout) const;

  const Settings settings_;
  std::vector<Entry> open_;
  std::uint64_t opened_ns_ = 0;
  std::deque<Closed> closed_;  // sequence numbers begin_, begin_ + 1, ...
  std::vector<Closed> spare_;
  std::vector<std::uint64_t> scratch_;
  std::vector<Readout> readouts_;
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t entries_ = 0;
};

}  // namespace rodeo::dispatch
