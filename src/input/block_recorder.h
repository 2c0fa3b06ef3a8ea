// Writes what an input delivers as a recording of FELIX blocks, as a card would have sent it.
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
  std::optional<std::uint16_t> trigger_elink;  ///< record the trigger's own list on this E-link
  std::uint64_t chunks = 0;                    ///< stop the input after so many; 0: when it ends by itself
  bool ends = false;  ///< the input ends by itself: what is stopped before is a part of the recording
};

struct RecordingSummary {
  std::uint64_t links = 0;
  bool part = false;         ///< stopped before the input's own end
  std::uint64_t chunks = 0;  ///< those of the trigger list not counted
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;  ///< of the file
  std::filesystem::path file = {};
};

/// Opens all links of `input`, starts it and writes until it ends, `stop` says so (asked between pages), or the number of chunks is reached. The file appears
/// under its name when it is whole. A part of a recording that ends (`ends`) is a sound file too, and stays FILE.part. Errors: readout.recording_links (links
/// of several cards, or that no card has), readout.no_chunks (none came: no file is left), file.exists, file.open, file.write, and what the input throws.
Result<RecordingSummary> record_blocks(DataInput& input, const std::filesystem::path& file,
                                       const RecordingSettings& settings, const std::function<bool()>& stop = {});

}  // namespace rodeo::input
