// The builder's benchmark: pages made beforehand, the product's own builder, extractor and consumer, the CPU time of the whole process.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "base/registry.h"
#include "bench/readout/prepared_input.h"

namespace rodeo::bench {

struct BuildBenchSettings {
  std::string mode = "gbt";     ///< gbt | full
  std::string source = "runs";  ///< runs | blocks
  std::uint32_t run_length = 24;
  std::uint32_t links = 192;
  std::uint32_t groups = 0;  ///< FULL mode: independent streams; 0: one per link
  std::uint32_t chunk_bytes = 40;
  std::uint32_t robs = 1;     ///< ROBs of `links` links each, every one with an input, a builder and workers of its own
  std::uint32_t workers = 1;  ///< of each ROB
  double seconds = 3;
  std::string checker = {};  ///< "crc32", or empty
  std::string extractor = "rodeo";
  std::uint64_t window = 16384;
  bool pinned = true;  ///< worker i on CPU i
  std::uint64_t retained =
      0;  ///< fragments of a ROB that are kept before they go on: the oldest goes when one comes; gbt only
};

struct BuildBenchResult {
  double seconds = 0;
  double cpu_seconds = 0;
  std::uint64_t chunks = 0;
  std::uint64_t fragments = 0;
  std::uint64_t payload_bytes = 0;  ///< of chunks, without headers
  std::uint64_t input_bytes = 0;    ///< prepared and cycled through
  double copy_ceiling_bytes_per_second = 0;
  double read_ceiling_bytes_per_second = 0;
  std::uint64_t window_events = 0;

  // The proof, of the whole run: no speed without it.
  std::uint64_t incomplete = 0;   ///< fragments
  std::uint64_t lost = 0;         ///< chunks, for a reason
  std::uint64_t unaccounted = 0;  ///< chunks that were received and are in no fragment and no counter
  std::uint64_t verified_fragments = 0;
  std::uint64_t mismatches = 0;  ///< in these
  bool proven() const { return incomplete + lost + unaccounted + mismatches == 0 && verified_fragments > 0; }
};

/// What a benchmark that cannot prove its data ends with (readout.bench_mismatch).
Error not_proven(std::uint64_t mismatches, std::uint64_t incomplete, std::uint64_t lost);

/// Runs it; throws SetupError for settings that cannot be. What it measured counts only if it is proven.
BuildBenchResult run_build_bench(const BuildBenchSettings& settings, const base::ComponentRegistry& registry);

/// The same, for callers that want numbers only: throws SetupError (readout.bench_mismatch) where they are not proven.
BuildBenchResult run_proven_build_bench(const BuildBenchSettings& settings, const base::ComponentRegistry& registry);

/// Plain copying of the prepared memory into a buffer that stays in cache, by one thread [bytes per second of its CPU].
double copy_ceiling(const PreparedInput& input);

/// The defaults of a component's keys, with some set otherwise.
Parameters parameters_of(const ComponentInfo& info);

}  // namespace rodeo::bench
