// Saves the whole events of a damaged event file: cut at any place, never closed, or damaged in the middle.
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

/// A whole event in place.
struct FoundEvent {
  std::uint64_t offset = 0;           ///< place of the event in the file
  std::span<const std::byte> stored;  ///< the stored bytes; compressed if the file compresses whole blocks
  std::uint32_t run_number = 0;       ///< run number in the event itself
  formats::HeaderProof header = formats::HeaderProof::none;  ///< the result of the header check in the file's records
  std::uint64_t part = 0;  ///< number of end records before it: in joined files, the index of the part
};

struct ScanTotals {
  std::optional<formats::DecodedFileHeader> header;  ///< the first records; nothing if they were unreadable
  bool closed = false;                               ///< the end record was found at its place
  std::uint64_t events = 0;
  std::uint64_t missing_events = 0;  ///< computed from the numbers of the present events and the end record
  std::uint64_t damaged_places = 0;  ///< how many times the scan searched for the next whole event
  std::uint64_t skipped_bytes = 0;   ///< bytes in these places
  formats::Findings findings;        ///< the damage and its places
};

/// Calls found() for every whole event of the file, in order, until it fails. A whole event decodes, fills its data block,
/// and its checksums are right. After damage, and after an end record inside the file, the scan continues at the next whole
/// separator or event. Accepts any bytes. `stop` is called at every step; if it returns true, the error is data.interrupted.
Result<ScanTotals> scan_events(std::span<const std::byte> file, const std::function<Result<void>(const FoundEvent&)>& found,
                               const Progress& progress = {}, const std::function<bool()>& stop = {});

/// Offset of the first event, or record in front of an event, by its marker; nothing: there is nothing to recover.
std::optional<std::uint64_t> find_event_marker(std::span<const std::byte> file);

struct RecoverResult {
  ScanTotals scan;
  std::uint64_t repeated = 0;  ///< events that equal an earlier one byte for byte, because joined files had common events
  std::uint64_t marked = 0;    ///< events that were marked (kHeaderNotProven)
  /// The CRC-32 over the whole file, or the check of each header, proves the headers of all other events.
  bool headers_proven = false;
  std::optional<FragmentConsumer::File> written;  ///< nothing if there was no whole event
};

/// Writes the whole events of a file to a new closed file `<directory>/<name>.recovered._0001.data`. Records and free
/// strings are those of the damaged file, if readable. An event that fails its header check is marked. Files of older
/// versions have no checks; only the CRC-32 over the whole file protects such headers. If such a header contradicts its ROD
/// or the events around it, the event is marked. If the CRC shows damage that no omitted bytes and no other finding explain,
/// all events without a check are marked. `name`: the name of the damaged file, without its ending. A file that cannot be
/// completed (a full disk) is removed again: the damaged file still has the events. The same happens if `stop`, which is
/// called now and then, returns true (error data.interrupted). `progress` gets every byte of the file twice.
Result<RecoverResult> recover_events(std::span<const std::byte> file, const std::string& directory, const std::string& name,
                                     const Progress& progress = {}, const std::function<bool()>& stop = {});

}  // namespace rodeo::storage
