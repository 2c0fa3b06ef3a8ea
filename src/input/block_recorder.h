// Writes the data of an input as a recording of FELIX blocks, as a card would have sent them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "base/error.h"
#include "formats/block.h"
#include "rodeo/input.h"

namespace rodeo::input {

struct RecordingSettings {
  formats::BlockFormat format;
  std::optional<std::uint16_t> trigger_elink;  ///< the E-link for the trigger's own list; empty: no list
  std::uint64_t chunks = 0;                    ///< stop the input after this number; 0: at its own end
  bool ends = false;  ///< the input ends by itself; if the recording is stopped earlier, it is incomplete
};

struct RecordingSummary {
  std::uint64_t links = 0;
  bool part = false;         ///< the recording was stopped before the input's own end
  std::uint64_t chunks = 0;  ///< chunks of data, without the trigger list
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;  ///< size of the file
  std::filesystem::path file = {};
};

/// Opens all links of `input`, starts it and writes until it ends, `stop` returns true (called between pages), or the number
/// of chunks is reached. Then the file gets its name. If the input would have ended by itself (`ends`) but was stopped, the
/// file is valid and stays FILE.part. Errors: readout.recording_links (links of several cards, or of no card),
/// readout.no_chunks (no chunk came; no file is left), file.exists, file.open, file.write, and errors of the input.
Result<RecordingSummary> record_blocks(DataInput& input, const std::filesystem::path& file,
                                       const RecordingSettings& settings, const std::function<bool()>& stop = {});

}  // namespace rodeo::input
