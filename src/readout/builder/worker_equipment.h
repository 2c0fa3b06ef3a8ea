// The streams and plug-ins of a worker, in both builders, and the calls to plug-ins that may throw.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/log.h"
#include "input/chunk_limit.h"
#include "input/joined_stream.h"
#include "readout/builder/worker_counters.h"
#include "rodeo/builder.h"
#include "rodeo/input.h"
#include "rodeo/trigger.h"

namespace rodeo::readout {

struct WorkerEquipment {
  std::unique_ptr<DataStream> stream;         ///< every run has whole chunks
  const input::ChunkLimit* player = nullptr;  ///< stream of the input itself if it plays a file; else null
  input::JoinedStream* joined = nullptr;      ///< `stream` if the input delivers chunks in parts; else null
  std::unique_ptr<TriggerExtractor> extractor;
  std::unique_ptr<IntegrityChecker> checker;  ///< may be null
  std::vector<Fid> links;                     ///< FIDs by LinkIndex
  std::string extractor_name;
  std::string checker_name;
};

/// Opens the streams of a worker's links and makes its plug-ins. Throws SetupError and exceptions of input and plug-ins.
WorkerEquipment equip_worker(const BuilderContext& context, std::span<const BuilderLink> links);

/// The result of a look at the first `asked` of some chunks. The first `read` chunks have trigger information, and the first
/// `good` of these are also intact. If good < read, the chunk after the good ones is corrupt. Otherwise, if read < asked,
/// the chunk after the read ones is lost.
struct ExtractedChunks {
  std::uint32_t asked = 0;
  std::uint32_t read = 0;
  std::uint32_t good = 0;
  LostCounter lost = LostCounter::malformed;
};

/// Logs (once a second) the current exception, with the plug-in that threw it and the link of the chunk.
void plugin_threw(const std::string& plugin, Fid link, base::LogThrottle& throttle);

/// Extracts from `n` chunks of a run, from `first` on, and checks them. If a plug-in throws, the number of chunks is halved
/// to find the faulty chunk, which is then lost (extractor) or corrupt (checker).
inline ExtractedChunks extract_and_check(const WorkerEquipment& equipment, const ChunkRun& run, std::uint32_t first,
                                         std::uint32_t n, std::uint32_t* ids, std::uint16_t* bcids,
                                         base::LogThrottle& throttle) {
  for (;; n = (n + 1) / 2) {
    std::uint32_t read = 0;
    try {
      read = std::min(n, equipment.extractor->extract(run, first, n, ids, bcids));
      if (equipment.checker == nullptr || read == 0) return {n, read, read};
      return {n, read, std::min(read, equipment.checker->check(run, first, read))};
    } catch (...) {
      if (n > 1) continue;
      plugin_threw(read == 0 ? equipment.extractor_name : equipment.checker_name, equipment.links[run.link], throttle);
      return {1, read, 0, LostCounter::plugin_threw};
    }
  }
}

}  // namespace rodeo::readout
