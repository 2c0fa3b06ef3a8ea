// Tries the extractors and checkers of a plug-in on a recording of FELIX blocks: what they read and refuse, and their CPU
// time.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "formats/recording_info.h"
#include "readout/library.h"
#include "rodeo/trigger.h"

namespace rodeo::cli {

struct TrialSettings {
  std::string plugin;  ///< a library by name or path, or the name of a built-in extractor or checker
  std::filesystem::path recording;
  std::vector<std::string> set;                                  ///< "key=value" for each component that declares the key
  std::chrono::nanoseconds cost_time = std::chrono::seconds{1};  ///< least CPU time of each component; zero: one pass
};

/// The result of one extractor or checker. All numbers except the cost are for one pass over the recording.
struct ComponentTrial {
  base::ComponentKind kind = base::ComponentKind::extractor;
  std::string name;
  std::uint64_t accepted = 0;
  std::uint64_t refused = 0;  ///< malformed for an extractor, corrupt for a checker
  std::uint64_t thrown = 0;   ///< refused chunks at which the component threw an exception; it must never throw
  std::string first_thrown;
  double ns_per_chunk = 0;  ///< CPU time

  // Extractors. Ids of the accepted chunks, as the component gave them.
  TriggerFields fields;
  std::uint32_t smallest_l1id = 0;
  std::uint32_t largest_l1id = 0;
  std::uint64_t gaps = 0;      ///< chunks whose L1 id does not follow the previous one on its link
  std::uint64_t repeated = 0;  ///< gaps with the same L1 id again
  std::uint16_t smallest_bcid = 0;
  std::uint16_t largest_bcid = 0;
};

/// One of the first chunks, with the results of the first extractor and checker.
struct ChunkSample {
  std::uint16_t elink = 0;
  std::uint32_t bytes = 0;
  bool has_trigger = false;
  TriggerInfo trigger;
  bool checked = false;
  bool good = false;
};

struct Trial {
  formats::RecordingInfo recording;
  std::vector<ComponentTrial> components;
  std::vector<ChunkSample> samples;

  bool all_accepted() const;
};

/// Runs the trial in the calling thread. Errors: those of PluginHost::load, of MappedFile and detect_block_format, of the
/// components' keys (config.*), base.component_failed, and cli.nothing_to_try.
Result<Trial> try_plugin(readout::Library& library, const TrialSettings& settings);

}  // namespace rodeo::cli
