// Records of EventStorage data files: writes v6; reads v6, v5 and v2 (docs/reference/formats/eventstorage-file.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/decode_error.h"

namespace rodeo::formats {

inline constexpr std::uint32_t kFileStartMarker = 0x1234aaaa;
inline constexpr std::uint32_t kFileNamesMarker = 0x1234aabb;
inline constexpr std::uint32_t kFreeStringsMarker = 0x1234aabc;
inline constexpr std::uint32_t kRunParametersMarker = 0x1234bbbb;
inline constexpr std::uint32_t kSeparatorMarker = 0x1234cccc;
inline constexpr std::uint32_t kFileEndMarker = 0x1234dddd;
inline constexpr std::uint32_t kFileEndLastWord = 0x1234eeee;

inline constexpr std::uint32_t kFileVersion = 6;  ///< the version that Rodeo writes

inline constexpr std::size_t kSeparatorBytes = 16;
inline constexpr std::size_t kFileEndBytes = 40;

/// Local date and time in the form of the records.
struct FileTime {
  std::uint32_t date = 0;  ///< DDMMYYYY
  std::uint32_t time = 0;  ///< HHMMSS

  static FileTime of(std::time_t now);
  std::string text() const;  ///< "2026-11-21 03:04:05"
  bool operator==(const FileTime&) const = default;
};

struct RunParameters {
  std::uint32_t run_number = 0;
  std::uint32_t max_events = 0;
  std::uint32_t recording_enabled = 1;
  std::uint32_t trigger_type = 0;
  std::array<std::uint32_t, 4> detector_mask = {};  ///< least significant word first
  std::uint32_t beam_type = 0;
  std::uint32_t beam_energy = 0;

  bool operator==(const RunParameters&) const = default;
};

/// All records before the first event.
struct EventFileHeader {
  std::uint32_t version = kFileVersion;
  std::uint32_t file_number = 1;
  FileTime opened = {};
  std::uint32_t max_blocks = 0;  ///< 0: no limit
  std::uint32_t max_mib = 0;     ///< 0: no limit
  std::string application;
  std::string core_name;  ///< file name without the number and the ending
  std::vector<std::string> free_strings;
  RunParameters run;

  /// The text after "key=" in the first free string that begins so; empty if there is none.
  std::string_view free_string(std::string_view key) const;

  /// Each event is compressed as a whole ("Compression=zlib").
  bool compressed_blocks() const { return free_string("Compression") == "zlib"; }

  bool operator==(const EventFileHeader&) const = default;
};

struct DecodedFileHeader : EventFileHeader {
  std::size_t size_bytes = 0;
  std::size_t free_strings_offset = 0;  ///< place of the record; 0 if there is none
};

/// Decodes the records at the start of a file.
Decoded<DecodedFileHeader> decode_file_header(std::span<const std::byte> file);

/// Always writes version 6.
std::vector<std::byte> encode_file_header(const EventFileHeader& header);

struct Separator {
  std::uint32_t block_number = 0;  ///< counted from 1, over all files of a sequence
  std::uint32_t block_bytes = 0;   ///< size of the block behind the separator
};

Decoded<Separator> decode_separator(std::span<const std::byte> bytes);
std::array<std::byte, kSeparatorBytes> encode_separator(const Separator& separator);

struct FileEnd {
  FileTime closed = {};
  std::uint32_t blocks_in_file = 0;
  std::uint32_t mib_in_file = 0;  ///< size of all blocks, without records, rounded to the nearest
  std::uint32_t blocks_in_sequence = 0;
  std::uint32_t mib_in_sequence = 0;
  std::uint32_t last_file = 0;  ///< 1: this file is the last of its sequence

  bool operator==(const FileEnd&) const = default;
};

Decoded<FileEnd> decode_file_end(std::span<const std::byte> bytes);
std::array<std::byte, kFileEndBytes> encode_file_end(const FileEnd& end);

constexpr std::uint32_t rounded_mib(std::uint64_t bytes) {
  return static_cast<std::uint32_t>((bytes + (std::uint64_t{1} << 19)) >> 20);
}

}  // namespace rodeo::formats
