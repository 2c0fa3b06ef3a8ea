// Saving what is whole in a damaged event file: cut anywhere, never closed, or broken in the middle.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/error.h"
#include "formats/event_file_records.h"
#include "formats/findings.h"
#include "formats/header_checks.h"
#include "rodeo/consumer.h"
#include "storage/progress.h"

namespace rodeo::storage {

/// A whole event as it was found.
struct FoundEvent {
  std::uint64_t offset = 0;           ///< of the event in the file
  std::span<const std::byte> stored;  ///< as it lies in the file; compressed if the file compresses whole blocks
  std::uint32_t run_number = 0;       ///< from the event itself
  formats::HeaderProof header = formats::HeaderProof::none;  ///< what the records of the file say of its header
  std::uint64_t part = 0;  ///< end records that lie before it: where files were put one behind the other, each is a part
};

struct ScanTotals {
  std::optional<formats::DecodedFileHeader> header;  ///< none: the first records could not be read
  bool closed = false;                               ///< an end record was found where it should be
  std::uint64_t events = 0;
  std::uint64_t missing_events = 0;  ///< by the numbers of those that are there, and the end record
  std::uint64_t damaged_places = 0;  ///< how often the scan had to search for the next whole event
  std::uint64_t skipped_bytes = 0;   ///< in these places
  formats::Findings findings;        ///< what was damaged, where
};

/// Calls found() for every whole event of the file, in order, until it fails. A whole event decodes, fills its data block, and its
/// checksums hold. After damage, and after an end record that does not end the file, the scan goes on at the next separator or event that is whole.
/// Survives any bytes.
/// `stop` is asked at every step; where it says so the error is data.interrupted.
Result<ScanTotals> scan_events(std::span<const std::byte> file, const std::function<Result<void>(const FoundEvent&)>& found,
                               const Progress& progress = {}, const std::function<bool()>& stop = {});

/// Where the first thing begins that looks like an event or the record in front of one; nothing: there is nothing to recover.
std::optional<std::uint64_t> find_event_marker(std::span<const std::byte> file);

struct RecoverResult {
  ScanTotals scan;
  std::uint64_t repeated = 0;  ///< events that are there before, byte for byte: files were joined that have some in common
  std::uint64_t marked = 0;    ///< events that were marked (kHeaderNotProven)
  /// The CRC-32 over the whole file, or the check of each, says that the headers of all others are as they were written.
  bool headers_proven = false;
  std::optional<FragmentConsumer::File> written;  ///< none if there was no whole event
};

/// Writes the whole events of a file to a new closed file `<directory>/<name>.recovered._0001.data`. Records and free strings are
/// those of the damaged file as far as they could be read. An event whose header is not what its check says is marked. Files of older versions have no checks:
/// of an event without one, only the CRC-32 over the whole file protects the header. So where such a header contradicts its ROD or the events around it, that
/// event is marked; and where the CRC says that there is damage, but nothing was left out and nothing else explains it, all of these are. `name` is the damaged file's, without directory and ending.
/// A file that cannot be written to its end (a full disk) is removed again, and so it is if `stop`, which is asked now and then, says so (error
/// data.interrupted): its events are still in the damaged one. `progress` is told of every byte of the file twice.
Result<RecoverResult> recover_events(std::span<const std::byte> file, const std::string& directory, const std::string& name,
                                     const Progress& progress = {}, const std::function<bool()>& stop = {});

}  // namespace rodeo::storage
