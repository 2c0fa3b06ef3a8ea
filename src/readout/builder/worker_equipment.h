// What a worker of either builder reads its links with, and how it looks at chunks through plug-ins that may throw.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>

#include "base/log.h"
#include "readout/builder/worker_counters.h"
#include "rodeo/builder.h"
#include "rodeo/input.h"
#include "rodeo/trigger.h"

namespace rodeo::readout {

struct WorkerEquipment {
  std::unique_ptr<DataStream> stream;
  std::unique_ptr<DataStream> trigger_list;  ///< may be null
  std::unique_ptr<TriggerExtractor> extractor;
  std::unique_ptr<TriggerExtractor> trigger_extractor;  ///< with trigger_list
  std::unique_ptr<IntegrityChecker> checker;            ///< may be null
};

/// Opens the streams of one worker's links and makes its plug-ins. Throws SetupError, and what input and plug-ins throw.
WorkerEquipment equip_worker(const BuilderContext& context, std::span<const BuilderLink> links, bool trigger_list);

/// What a look at some chunks found: `read` have trigger information, of these the first `good` are intact as well; where good < read,
/// the next one is corrupt.
struct Looked {
  std::uint32_t read = 0;
  std::uint32_t good = 0;
};

/// Counts and logs (once a second) what a plug-in threw.
void plugin_threw(const char* what, WorkerCounters& counters, base::LogThrottle& throttle);

/// Extracts from `n` chunks of a run, from `first` on, and checks them. What a plug-in throws makes the first chunk unreadable.
inline Looked look_at(const WorkerEquipment& equipment, const ChunkRun& run, std::uint32_t first, std::uint32_t n,
                      std::uint32_t* ids, std::uint16_t* bcids, WorkerCounters& counters, base::LogThrottle& throttle) {
  try {
    const std::uint32_t read = std::min(n, equipment.extractor->extract(run, first, n, ids, bcids));
    if (equipment.checker == nullptr) return {read, read};
    return {read, std::min(read, equipment.checker->check(run, first, read))};
  } catch (const std::exception& error) {
    plugin_threw(error.what(), counters, throttle);
  } catch (...) {
    plugin_threw("no std::exception", counters, throttle);
  }
  return {};
}

}  // namespace rodeo::readout
