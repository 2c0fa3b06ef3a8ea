// Event files as bytes: the records around events, block numbers, totals, names and rollover of a sequence of files.
// Specified in docs/reference/formats/eventstorage-file.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/event_file_records.h"
#include "formats/file_marks.h"

namespace rodeo::storage {

/// The settings common to all files of a sequence.
struct EventFileSettings {
  std::string project = "data";
  std::string stream_type = "physics";
  std::string stream_name = "Main";
  std::string application = "Rodeo";
  std::uint32_t lumi_block = 0;
  std::string simple_name = {};  ///< if set, files are called <simple_name>._0001.data
  formats::RunParameters run = {};
  std::uint32_t max_blocks = 0;  ///< limit for each file; 0: no limit
  /// Size of a whole file, records included; 0: no limit. The file's header contains it in MiB, rounded up.
  std::uint64_t max_bytes = 0;
  std::vector<std::string> free_strings = {};
  std::optional<formats::ProvableMark> provable = {};  ///< the payload proves itself
  bool foreign_events = false;                         ///< events that Rodeo did not make: their ROD data may have any form
};

/// <project>.<run>.<type>_<stream>.daq.RAW._lb<lumi block>._<application>, or the simple name.
std::string core_file_name(const EventFileSettings& settings);

/// The run number in the name of an event file of a project; nothing for other names.
std::optional<std::uint32_t> run_number_in(std::string_view file_name, std::string_view project);

/// Counts and records of one sequence of files, one file after the other. One thread at a time; neither blocks nor reads
/// clocks.
///
///   begin_file() -> bytes | separator() -> bytes, then the block itself | ... | end_file() -> bytes
///
/// Every byte of the file, in order, must also go into a FileDigest; when the file is closed, its CRC digits replace those
/// at crc_offset().
class EventFileEncoder {
 public:
  explicit EventFileEncoder(EventFileSettings settings, std::uint32_t first_file_number = 1);

  /// Opens the next file of the sequence: all records before the first event. Valid until the next call. `guid` from
  /// make_guid().
  std::span<const std::byte> begin_file(std::time_t now, const std::string& guid);

  /// True if a block of this size belongs into the next file: end this file first. Never true for an empty file.
  bool must_roll_over(std::size_t block_bytes) const;

  /// Returns the record in front of a block, and counts the block. Blocks are smaller than 4 GiB.
  std::array<std::byte, formats::kSeparatorBytes> separator(std::uint32_t block_bytes);

  /// Says that the last block grew by `bytes`: adds them to its size.
  void extend_block(std::size_t bytes);

  /// The record after the last block.
  std::array<std::byte, formats::kFileEndBytes> end_file(std::time_t now, bool last_of_sequence);

  // The following describe the current file or, after end_file(), the closed one:
  std::uint32_t file_number() const { return file_number_; }
  std::string file_name() const { return base_name() + ".data"; }        ///< name of the closed file
  std::string writing_name() const { return base_name() + ".writing"; }  ///< name while the file is written
  std::size_t crc_offset() const { return crc_offset_; }
  std::uint64_t file_bytes() const { return file_bytes_; }  ///< size up to now, all records included
  std::uint32_t blocks_in_file() const { return blocks_in_file_; }
  std::uint32_t blocks_in_sequence() const { return blocks_in_sequence_; }

 private:
  std::string base_name() const;

  EventFileSettings settings_;
  std::string core_name_;
  std::uint32_t file_number_;  // number of the current file; before the first file, its number minus 1
  std::vector<std::byte> header_;
  std::size_t crc_offset_ = 0;
  std::uint64_t file_bytes_ = 0;
  std::uint64_t block_bytes_in_file_ = 0;
  std::uint64_t block_bytes_in_sequence_ = 0;
  std::uint32_t blocks_in_file_ = 0;
  std::uint32_t blocks_in_sequence_ = 0;
};

/// A random GUID, 8-4-4-4-12 upper-case hex digits.
std::string make_guid();

}  // namespace rodeo::storage
