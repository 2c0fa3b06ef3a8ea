// A full event around one fragment, without copying its data: the bytes before and after the fragment's parts, and the
// checksums. This is the file writer's hot path; layouts in docs/reference/formats/event.md.
//
//   head: event header | ROB header | ROD header (| ROD status)     parts of the fragment
//   tail: (ROD status |) ROD trailer (| ROB checksum) (| event checksum)
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/event_format.h"
#include "formats/zlib_stream.h"
#include "rodeo/fragment.h"

namespace rodeo::formats {

/// The settings common to all events of a run.
struct EventFrameSettings {
  SourceId source_id = {};  ///< source id of the full event
  std::uint32_t run_number = 0;
  std::uint32_t run_type = run_type::kPhysics;
  std::uint32_t lumi_block = 0;
  std::vector<std::uint32_t> stream_tags = {};  ///< result of encode_stream_tags()
  ChecksumType event_checksum = ChecksumType::adler32;
  ChecksumType rob_checksum = ChecksumType::none;
  StatusPosition status_position = StatusPosition::before_data;
  std::uint16_t rod_minor_version = 0;
  std::uint32_t detector_event_type = 0;
};

/// The time of the event, which fragments do not contain.
struct EventStamp {
  std::uint32_t bc_time_s = 0;  ///< UTC seconds since 1970
  std::uint32_t bc_time_ns = 0;
};

/// The bytes around the data of a fragment. Reuse it from event to event: its memory grows as needed.
struct EventEnds {
  std::vector<std::byte> head;
  std::vector<std::byte> tail;
};

/// Constant after construction; any number of threads may use one object.
class EventFrame {
 public:
  explicit EventFrame(EventFrameSettings settings);

  /// Size of both ends of this fragment's event in bytes.
  std::size_t bytes_around(const Fragment& fragment) const;

  /// Makes both ends of an event. The fragment's parts belong between them and must be whole words in all. Does not block.
  void store(const Fragment& fragment, const EventStamp& stamp, EventEnds& ends) const;

  /// Writes the whole event with a compressed payload to the front of `out`, which grows if necessary; returns its size in
  /// bytes.
  std::size_t store_compressed(const Fragment& fragment, const EventStamp& stamp, ZlibCompressor& compressor,
                               EventEnds& ends, std::vector<std::byte>& out) const;

 private:
  std::uint32_t make_ends(const Fragment& fragment, std::size_t data_bytes, EventEnds& ends) const;
  void store_event_header(const Fragment& fragment, const EventStamp& stamp, std::size_t stored_words,
                          std::size_t uncompressed_words, Compression compression, std::byte* at) const;

  EventFrameSettings settings_;
  std::vector<std::uint32_t> header_;  // event header, with zeros for the values that change
};

}  // namespace rodeo::formats
