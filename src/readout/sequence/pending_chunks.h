// The chunks of one link that wait for a decision, and the decisions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "readout/sequence/segments.h"

namespace rodeo::readout {

enum class Verdict : std::uint8_t { accept, late, duplicate, out_of_sequence, not_listed };

struct Decision {
  Verdict verdict = Verdict::out_of_sequence;
  bool doubtful = false;     ///< take: flag the event
  bool unproven = false;     ///< take: flag the event, since the link was silent for long and its place is not proven so far
  Sequence sequence = 0;     ///< take: number of the event
  Sequence from = 0;         ///< take: the link has skipped the events from here to `sequence`
  std::uint32_t resets = 0;  ///< this and the next two: of the event's segment, to name the event
  std::uint32_t rounds = 0;
  Sequence base = 0;
};

struct PendingChunk {
  enum class Fate : std::uint8_t { undecided, aside, decided };

  Place place;          ///< of a chunk aside
  std::uint64_t since;  ///< event clock
  Sequence listed;      ///< end of the list when the chunk came
  Decision decision;    ///< decided
  std::uint32_t id;
  std::uint16_t bcid;
  Fate fate;

  bool is_aside() const { return fate == Fate::aside; }
  void decide(const Decision& of) {
    fate = Fate::decided;
    decision = of;
  }
};

/// Oldest first: chunks aside or decided, then up to two undecided ones.
class PendingChunks {
 public:
  explicit PendingChunks(std::size_t most) : most_(most), ring_(std::make_unique_for_overwrite<PendingChunk[]>(most)) {}

  std::size_t count() const { return count_; }
  std::size_t placed() const { return placed_; }  ///< those aside or decided
  bool empty() const { return count_ == 0; }
  bool full() const { return count_ == most_; }
  bool all_placed() const { return placed_ == count_; }

  PendingChunk& operator[](std::size_t i) { return ring_[(first_ + i) % most_]; }
  const PendingChunk& operator[](std::size_t i) const { return ring_[(first_ + i) % most_]; }

  /// Adds a chunk, which is undecided. Not if they are full.
  PendingChunk& add() {
    PendingChunk& chunk = (*this)[count_++];
    chunk.fate = PendingChunk::Fate::undecided;
    return chunk;
  }
  /// Ends the search for the place of the first undecided chunk: the caller puts it aside or decides it.
  PendingChunk& place_next() { return (*this)[placed_++]; }
  /// Removes the oldest chunk, which is aside or decided.
  void remove_oldest() {
    first_ = (first_ + 1) % most_;
    --count_;
    --placed_;
  }
  /// Decides all chunks aside as out of sequence.
  void drop_aside() {
    for (std::size_t i = 0; i < placed_; ++i) {
      if ((*this)[i].is_aside()) (*this)[i].decide({});
    }
  }

 private:
  std::size_t most_;
  std::unique_ptr<PendingChunk[]> ring_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  std::size_t placed_ = 0;
};

}  // namespace rodeo::readout
