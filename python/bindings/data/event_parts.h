// A decoded event, for the Python objects Event and Fragment. Bytes are not copied: they are in the mapped file, or in
// separate memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/event_walk.h"

namespace rodeo::python::data {

/// A chunk and its place in the bytes of its fragment.
struct ChunkRow {
  std::int64_t offset = 0;
  std::uint32_t size = 0;
  std::uint32_t link = 0;
  std::uint16_t status = 0;  ///< low byte: FELIX status; high byte: Rodeo status
};

inline std::uint16_t status_of(const ChunkHeader& header) {
  return static_cast<std::uint16_t>(header.felix_status | header.rodeo_status << 8);
}

struct FragmentParts {
  std::uint32_t source_id = 0;
  std::uint32_t run_number = 0;
  std::uint32_t l1id = 0;
  std::uint32_t bcid = 0;
  std::uint32_t trigger_type = 0;
  std::uint32_t detector_event_type = 0;
  std::vector<std::uint32_t> status = {};  ///< status words of the ROD
  std::uint32_t rob_status = 0;            ///< first status word of the ROB
  std::uint32_t missing = 0;
  std::uint32_t removed = 0;
  std::vector<std::uint32_t> missing_ids = {};  ///< the first ids of missing links
  std::span<const std::byte> payload = {};      ///< ROD data; in recordings, the bytes that have the chunks
  std::size_t first_row = 0;
  std::size_t rows = 0;
  bool has_rod = true;
};

struct EventParts {
  formats::EventFields fields;
  std::vector<std::uint32_t> status;
  std::string stream_tags;
  std::vector<FragmentParts> fragments;
  std::vector<ChunkRow> rows;      ///< rows of all fragments, concatenated
  bool chunk_records = true;       ///< the rows of chunks are known
  bool scattered = false;          ///< in a recording, chunks of other events lie between the chunks
  std::span<const std::byte> raw;  ///< empty if scattered

  std::uint64_t index = 0;  ///< index of the event in the file
  std::uint64_t offset = 0;
  std::string path;
  std::shared_ptr<const void> memory;  ///< owner of the bytes, if neither `block` nor `plain` has them
  std::vector<std::byte> block;        ///< a decompressed data block, or a sampled event
  std::vector<std::byte> plain;        ///< a decompressed payload

  /// Decodes the event in `raw`, which does not change; the previous content is lost.
  formats::Decoded<void> take_apart(const formats::EventChecks& checks);
};

}  // namespace rodeo::python::data
