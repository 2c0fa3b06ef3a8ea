// What a data file is, by its bytes: an event file, a recording, a dump, or something that is not ours or of another version, and what reads that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"

namespace rodeo::storage {

enum class FileKind : std::uint8_t {
  event_file,       ///< starts with a start record, or holds whole events behind a start that is damaged
  block_recording,  ///< starts like a FELIX block
  superpage_dump,   ///< starts like superpages of a CRU or C-RORC, or holds pages behind a start that is damaged
  empty,
  zeros,          ///< nothing but zeros at the start
  other_version,  ///< a format that we read, of a version that we do not
  foreign,        ///< nothing that we know
};

/// Of any bytes. One that starts like nothing we know is searched for whole events and pages.
FileKind file_kind(std::span<const std::byte> file);

/// Whether it is one of the three that Rodeo reads.
constexpr bool is_ours(FileKind kind) { return kind <= FileKind::superpage_dump; }

/// What a foreign file, or one of another version, is: "gzip data"; and what reads it: "gunzip, then try again".
struct OtherFile {
  std::string what;
  std::string reader;
};
OtherFile describe_other(std::span<const std::byte> file);

/// Why a file holds no data that Rodeo reads: data.empty, data.zeros, data.other_version, data.unknown_kind. For a kind that is not ours.
Error no_data_error(FileKind kind, std::span<const std::byte> file, const std::string& path);

/// The same of what is no event file; recordings and dumps are none: data.recording.
Error no_event_file(FileKind kind, std::span<const std::byte> file, const std::string& path);

}  // namespace rodeo::storage
