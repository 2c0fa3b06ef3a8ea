// Recognizes a data file by its bytes: an event file, a recording, a dump, or a file of other origin or version. For such a
// file it names a program that reads it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"

namespace rodeo::storage {

enum class FileKind : std::uint8_t {
  event_file,       ///< starts with a start record, or contains whole events after a damaged start
  block_recording,  ///< starts like a FELIX block
  superpage_dump,   ///< starts like superpages of a CRU or C-RORC, or contains pages after a damaged start
  empty,
  zeros,          ///< only zeros at the start
  other_version,  ///< a known format in a version that Rodeo does not read
  foreign,        ///< an unknown format
};

/// `file` may be any bytes. A file with an unknown start is searched for whole events and pages.
FileKind file_kind(std::span<const std::byte> file);

/// True for the three kinds that Rodeo reads.
constexpr bool is_ours(FileKind kind) { return kind <= FileKind::superpage_dump; }

/// Describes a file of other origin or version: "gzip data", and how to read it: "gunzip, then try again".
struct OtherFile {
  std::string what;
  std::string reader;
};
OtherFile describe_other(std::span<const std::byte> file);

/// The reason why Rodeo cannot read a file: data.empty, data.zeros, data.other_version, data.unknown_kind. Only for kinds
/// that Rodeo does not read.
Error no_data_error(FileKind kind, std::span<const std::byte> file, const std::string& path);

/// no_data_error() for a file that must be an event file; for recordings and dumps, data.recording.
Error no_event_file(FileKind kind, std::span<const std::byte> file, const std::string& path);

}  // namespace rodeo::storage
