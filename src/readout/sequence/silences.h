// Readers whose links were all silent, or begin late. The readers of other groups, ROBs and cards show where they are. If
// there are none, the input's clock shows how many events may have been missed.
#pragma once

#include <cstdint>
#include <optional>

#include "readout/sequence/links.h"
#include "readout/sequence/numbers.h"

namespace rodeo::readout {

/// Where live peers of a link are, and whether they prove its place.
struct PeerPlace {
  enum class Read : std::uint8_t {
    together,  ///< links of the same reader
    apart,     ///< links of other readers
    elsewhere  ///< links of other groups, ROBs and cards
  };
  Read read = Read::together;
  bool proves = false;
  Sequence number = 0;  ///< 0: in a segment that is not known here
  Place place{};
  ReaderTrack::Range range{};  ///< elsewhere
};

/// For the readers of one ROB or group.
class Silences {
 public:
  Silences(const SequencerSettings& settings, Links& links, const Numbers& numbers)
      : settings_(settings), links_(links), numbers_(numbers) {}

  /// Call it before a page is looked at, which was read at this clock of the input. `quiet_until`: of a file that had
  /// nothing for the reader up to there. True if the reader's links were silent, and other readers can show their place once
  /// they have read up to this clock.
  bool begin_page(std::size_t reader, std::uint64_t clock, std::optional<std::uint64_t> quiet_until);
  /// Call it after each page of a reader, and while it has nothing to read (`drained`): it has read all that was sent up to
  /// this clock of the input.
  void end_page(std::size_t reader, std::uint64_t clock, bool drained);

  /// Where the others may have been between two looks of this reader: the last one that found nothing, and the one that
  /// found the chunk.
  std::optional<PeerPlace> find_other_readers(const Reader& reader) const;
  /// The place with this id that is nearest to the others.
  Place place_beside(const PeerPlace& others, std::uint32_t id) const;
  /// The others began ten time-outs before the reader, or more.
  bool began_late(const Reader& reader) const;
  /// Events by which the others were beyond the reader at this clock. Nothing if they had not read so far.
  std::optional<std::uint64_t> passed_by_others(const Reader& reader, std::uint64_t clock) const;
  /// A quarter of the period of the reader's ids.
  std::uint64_t quarter(const Reader& reader) const { return numbers_.unambiguous_period(reader.head) / 4; }

 private:
  Place place_of(const Reader& reader) const { return numbers_.segments().segment_of(reader.head - 1).place(reader.head); }
  void report_place(Reader& reader, std::uint64_t clock) const;
  void measure_distance(Reader& reader, std::uint64_t clock) const;
  void check_silence(std::size_t reader, std::uint64_t clock, bool exact);
  bool is_silent(const Reader& reader, std::uint64_t clock, bool exact) const;

  const SequencerSettings& settings_;
  Links& links_;
  const Numbers& numbers_;
};

}  // namespace rodeo::readout
