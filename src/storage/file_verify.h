// Checks that a data file is unchanged since it was written: structure, totals, checksums, CRC over the whole file, and
// every byte of provable payload.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/event_check.h"
#include "formats/event_file_records.h"
#include "formats/findings.h"
#include "storage/file_kind.h"
#include "storage/progress.h"

namespace rodeo::storage {

/// The protection of the file as a whole, and the result of its check.
enum class FileCrc : std::uint8_t {
  holds,
  wrong,
  open,     ///< the digits are still zero: never closed
  missing,  ///< a file of Rodeo, but its CRC string is missing or unreadable
  foreign,  ///< a file of another writer
};

struct EventFileReport {
  std::uint64_t bytes = 0;
  std::uint32_t adler32 = 1;  ///< checksum of the whole file: the value for a catalogue
  std::optional<formats::DecodedFileHeader> header;
  /// The end record; nothing: the file was not closed, or was cut, or reading stopped (`unread`).
  std::optional<formats::FileEnd> end;
  std::optional<formats::Finding>
      unread;  ///< place and reason, if reading stopped: the rest, with the end record, is unknown
  FileCrc crc = FileCrc::foreign;
  std::uint64_t blocks = 0;
  std::uint64_t block_bytes = 0;
  std::uint64_t proven_headers = 0;  ///< events whose header check in the file's records is right
  std::optional<formats::ProvableMark> provable;
  formats::EventTotals totals;
  formats::Findings findings;

  bool ours() const { return crc != FileCrc::foreign; }
  bool sound() const { return findings.total() == 0; }

  /// True if the file is not sound, but unchanged since it was written: the CRC-32 over the whole file is right, and all
  /// findings are chunks that were wrong before they were written. A recovery would change nothing.
  bool wrong_as_written() const { return !sound() && crc == FileCrc::holds && findings.total() == totals.wrong_chunks; }

  /// Kinds of damage that no check here can detect, one sentence each; only foreign files have such gaps.
  std::vector<std::string> unprotected() const;
};

/// Offset of the CRC digits in a file that has them (kCrcKey is a free string of `header`); `file` contains at least the
/// records.
std::size_t crc_digits_offset(std::span<const std::byte> file, const formats::DecodedFileHeader& header);

/// A word of a file with a possible original value.
struct Replacement {
  std::uint64_t offset = 0;
  std::uint32_t word = 0;
};

/// Checks the CRC-32 over the whole file with some words replaced. `replacements` are sorted by offset and
/// lie behind the header.
FileCrc check_file_crc(std::span<const std::byte> file, const formats::DecodedFileHeader& header,
                       std::span<const Replacement> replacements = {});

/// The expectations for every event of a file with this header, except for its payload; `crc`: the result of
/// check_file_crc().
formats::EventExpectations expectations_of(const formats::DecodedFileHeader& header, FileCrc crc);

struct VerifyOptions {
  bool prove = true;       ///< check provable chunks against the data sent
  unsigned threads = 1;    ///< threads that check events
  Progress progress = {};  ///< gets every byte of the file twice: for the checksums, and for the events
};

/// The report does not depend on the number of threads.
EventFileReport verify_event_file(std::span<const std::byte> file, const VerifyOptions& options = {});

}  // namespace rodeo::storage
