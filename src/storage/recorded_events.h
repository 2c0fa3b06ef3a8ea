// The events of a recording of FELIX blocks, or of a dump of RDH pages: found by reading the file once, and stored in an
// index beside it.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/error.h"
#include "formats/l1id_field.h"
#include "formats/recording_index.h"
#include "storage/index_file.h"

namespace rodeo::storage {

/// In a recording of FELIX blocks, chunks with one L1 id form an event; ids continue when they wrap. `between` is called now
/// and then, and may throw to end the work. The table contains the damage; errors are those of detect_block_format().
/// Accepts any bytes.
Result<formats::RecordingTable> read_block_recording(std::span<const std::byte> file, const formats::L1IdField& field,
                                                     const std::function<void()>& between);

/// In a dump of RDH pages, heartbeat frames of one orbit form an event. Error "data.no_page": the dump has no page.
Result<formats::RecordingTable> read_page_dump(std::span<const std::byte> file, const std::function<void()>& between);

/// The table in the index of `path`, if the index exists, is whole, belongs to this file, and was made with this field.
std::optional<formats::RecordingTable> load_recording_index(const std::string& path, std::span<const std::byte> file,
                                                            const formats::L1IdField& field);

/// Stores the table for load_recording_index(). `before`: the state of the file before it was read; if the file has changed,
/// or the index cannot be written, no index is stored, and the file is read again next time.
bool keep_recording_index(const std::string& path, std::span<const std::byte> file, const formats::L1IdField& field,
                          const FileState& before, const formats::RecordingTable& table);

}  // namespace rodeo::storage
