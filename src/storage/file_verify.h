// Is a data file what was written? Structure, totals, checksums, CRC over the whole file, and every byte of provable payload.
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

/// Whether and how the file as a whole is protected.
enum class FileCrc : std::uint8_t {
  holds,
  wrong,
  open,     ///< digits still zero: never closed
  missing,  ///< one of our files, but its CRC string is gone or unreadable
  foreign,  ///< not one of our files
};

struct EventFileReport {
  std::uint64_t bytes = 0;
  std::uint32_t adler32 = 1;  ///< of the whole file: the catalogue's value
  std::optional<formats::DecodedFileHeader> header;
  std::optional<formats::FileEnd> end;  ///< none: the file was not closed, or was cut, or see `unread`
  std::optional<formats::Finding>
      unread;  ///< where and why nothing could be read on: what follows, the end record too, is not known
  FileCrc crc = FileCrc::foreign;
  std::uint64_t blocks = 0;
  std::uint64_t block_bytes = 0;
  std::uint64_t proven_headers = 0;  ///< of events: their checks in the records of the file hold
  std::optional<formats::ProvableMark> provable;
  formats::EventTotals totals;
  formats::Findings findings;

  bool ours() const { return crc != FileCrc::foreign; }
  bool sound() const { return findings.total() == 0; }

  /// Not sound, but what was written: the CRC-32 over the whole file holds, and all that was found are chunks which were wrong before
  /// they were written. There is nothing that a recovery could mend.
  bool wrong_as_written() const { return !sound() && crc == FileCrc::holds && findings.total() == totals.wrong_chunks; }

  /// What no check here would have noticed, one sentence each; only foreign files have such gaps.
  std::vector<std::string> unprotected() const;
};

/// Offset of the CRC digits in a file that has them (kCrcKey is a free string of `header`); `file` are at least its records.
std::size_t crc_digits_offset(std::span<const std::byte> file, const formats::DecodedFileHeader& header);

/// A word of a file, and what it may have been.
struct Replacement {
  std::uint64_t offset = 0;
  std::uint32_t word = 0;
};

/// The CRC-32 over the whole file, and whether it would hold if some words were others. `replacements` are sorted by their offsets, which
/// lie behind the header.
FileCrc check_file_crc(std::span<const std::byte> file, const formats::DecodedFileHeader& header,
                       std::span<const Replacement> replacements = {});

/// What every event of a file with this header must be, but that its payload is proven; `crc` is what check_file_crc() said.
formats::EventExpectations expectations_of(const formats::DecodedFileHeader& header, FileCrc crc);

struct VerifyOptions {
  bool prove = true;       ///< that provable chunks are what was sent
  unsigned threads = 1;    ///< that check events at once
  Progress progress = {};  ///< told of every byte of the file twice: of the sums over it, and of its events
};

/// The report is the same whatever the number of threads.
EventFileReport verify_event_file(std::span<const std::byte> file, const VerifyOptions& options = {});

}  // namespace rodeo::storage
