// Full event around one fragment without copying its data: the bytes before and after the fragment's parts, and the checksums.
// This is the file writer's hot path; layouts in docs/formats/event.md.
//
//   head: event header | ROB header | ROD header (| ROD status)     parts of the fragment     tail: (ROD status |) ROD trailer
//                                                                                             (| ROB checksum) (| event checksum)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/event_format.h"
#include "formats/zlib_stream.h"
#include "rodeo/fragment.h"

namespace rodeo::formats {

/// What is the same for all events of a run.
struct EventFrameSettings {
  SourceId source_id = {};  ///< of the full event
  std::uint32_t run_number = 0;
  std::uint32_t run_type = run_type::kPhysics;
  std::uint32_t lumi_block = 0;
  std::vector<std::uint32_t> stream_tags = {};  ///< from encode_stream_tags()
  ChecksumType event_checksum = ChecksumType::adler32;
  ChecksumType rob_checksum = ChecksumType::none;
  StatusPosition status_position = StatusPosition::before_data;
  std::uint16_t rod_minor_version = 0;
  std::uint32_t detector_event_type = 0;
};

/// What a fragment does not know of its event.
struct EventStamp {
  std::uint64_t global_id = 0;
  std::uint32_t bc_time_s = 0;  ///< UTC seconds since 1970
  std::uint32_t bc_time_ns = 0;
};

/// Constant after construction; any number of threads may use one object.
class EventFrame {
 public:
  /// status, number of missing links, ids of the first of them
  static constexpr std::size_t kMaxRodStatusWords = 2 + Fragment::kMissingListed;
  static constexpr std::size_t kMaxTailBytes = (kMaxRodStatusWords + kRodTrailerWords + 2) * sizeof(std::uint32_t);

  explicit EventFrame(EventFrameSettings settings);

  std::size_t max_head_bytes() const { return max_head_bytes_; }

  struct Sizes {
    std::size_t head_bytes = 0;
    std::size_t tail_bytes = 0;
    std::size_t event_bytes = 0;  ///< head, the fragment's parts, tail
  };

  /// Fills head (at least max_head_bytes()) and tail (at least kMaxTailBytes). The parts together are whole words. Does not
  /// block or allocate.
  Sizes store(const Fragment& fragment, const EventStamp& stamp, std::byte* head, std::byte* tail) const;

  /// The most bytes of a compressed event with so many bytes of ROD data.
  std::size_t max_compressed_bytes(std::size_t rod_data_bytes, const ZlibCompressor& compressor) const;

  /// Writes the whole event with a compressed payload to `out` (at least max_compressed_bytes()); returns its size in bytes.
  std::size_t store_compressed(const Fragment& fragment, const EventStamp& stamp, ZlibCompressor& compressor,
                               std::span<std::byte> out) const;

 private:
  struct Robs;  // ROB and ROD header and trailer words of one fragment
  Robs make_robs(const Fragment& fragment, std::size_t data_bytes) const;
  void store_event_header(const Fragment& fragment, const EventStamp& stamp, std::size_t stored_words,
                          std::size_t uncompressed_words, Compression compression, std::byte* at) const;

  EventFrameSettings settings_;
  std::vector<std::uint32_t> header_;  // event header with the values that change left zero
  std::size_t max_head_bytes_ = 0;
};

}  // namespace rodeo::formats
