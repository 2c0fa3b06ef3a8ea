// A recording of FELIX blocks in a file: mapped read-only, and read once to learn its contents.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "base/mapped_file.h"
#include "formats/block.h"
#include "input/recorded_ids.h"
#include "rodeo/input.h"

namespace rodeo::input {

/// Immutable after construction; any thread reads.
class Recording {
 public:
  struct Options {
    std::uint32_t max_chunk_bytes = 64 * 1024;
    L1IdField l1id;
    std::optional<std::uint16_t> trigger_elink;  ///< E-link that carries TTC packets, not chunks of data
  };

  /// Throws SetupError (file.*, formats.*_recording, readout.no_chunks) if the file does not exist, holds no blocks (for
  /// example, zeros) or no chunks. A last block that is cut off is left out, with a warning.
  Recording(const std::filesystem::path& file, const Options& options);

  /// The whole blocks.
  std::span<const std::byte> blocks() const { return blocks_; }
  const formats::BlockFormat& format() const { return format_; }
  std::uint32_t max_chunk_bytes() const { return options_.max_chunk_bytes; }

  /// The number of chunks of the E-link with the most chunks, the trigger's included, with any ids. Rates refer to these
  /// events.
  std::uint64_t events() const { return events_; }

  /// E-links with data that have at least one block, ascending; without the trigger's.
  std::span<const std::uint16_t> elinks() const { return elinks_; }
  std::uint64_t chunks() const { return chunks_; }
  std::optional<std::uint16_t> trigger_elink() const { return options_.trigger_elink; }

  /// Error "file.shrunk" once a part of the file could not be read: blocks() has zeros there.
  Result<void> check() const { return file_.check(); }

  /// The faults of the recording itself, by name, without zeros: blocks that are missing or invalid, an end in the middle of
  /// a chunk or a block.
  const std::vector<NamedCounter>& damage() const { return damage_; }

  /// The L1 ids of the recording; loops and stops need them.
  const RecordedIds& ids() const { return ids_; }

 private:
  void read_through();

  Options options_;
  base::MappedFile file_;
  std::span<const std::byte> blocks_;
  formats::BlockFormat format_;
  std::vector<std::uint16_t> elinks_;
  std::uint64_t chunks_ = 0;
  std::uint64_t events_ = 0;
  std::vector<NamedCounter> damage_;
  RecordedIds ids_;
};

}  // namespace rodeo::input
