// The events of a recording of FELIX blocks, or of a dump of RDH pages: found by reading it through once, and kept in an index beside it for the next time.
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

/// Chunks of a recording of FELIX blocks with one L1 id are an event; ids that wrap go on. `between` is called now and then, and may end the work by
/// throwing. Damage is said in the table; errors are those of detect_block_format(). Survives any bytes.
Result<formats::RecordingTable> read_block_recording(std::span<const std::byte> file, const formats::L1IdField& field,
                                                     const std::function<void()>& between);

/// Heartbeat frames of one orbit in a dump of RDH pages. Error "data.no_page": there is none.
Result<formats::RecordingTable> read_page_dump(std::span<const std::byte> file, const std::function<void()>& between);

/// The table in the index of `path`, if that is there, whole, and of this very file, read with this field.
std::optional<formats::RecordingTable> load_recording_index(const std::string& path, std::span<const std::byte> file,
                                                            const formats::L1IdField& field);

/// Keeps it for load_recording_index(). `before`: what the file was before it was read; if it is another now, or the directory takes no file, there is
/// none, and nothing is lost but time.
bool keep_recording_index(const std::string& path, std::span<const std::byte> file, const formats::L1IdField& field,
                          const FileState& before, const formats::RecordingTable& table);

}  // namespace rodeo::storage
