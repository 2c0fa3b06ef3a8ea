// The builder's benchmark: prepared pages, the product's own builder, extractor and consumer, and the CPU time of the whole
// process.
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
  std::uint32_t robs = 1;     ///< ROBs of `links` links each; each ROB has its own input, builder and workers
  std::uint32_t workers = 1;  ///< workers of each ROB
  double seconds = 3;
  std::string checker = {};  ///< "crc32", or empty
  std::string extractor = "rodeo";
  std::uint64_t window = 16384;
  bool pinned = true;          ///< worker i on CPU i
  std::uint64_t retained = 0;  ///< fragments of a ROB that are kept: a new one releases the oldest; gbt only
};

struct BuildBenchResult {
  double seconds = 0;
  double cpu_seconds = 0;
  std::uint64_t chunks = 0;
  std::uint64_t fragments = 0;
  std::uint64_t payload_bytes = 0;  ///< payload of the chunks, without headers
  std::uint64_t input_bytes = 0;    ///< prepared bytes of the cycle
  double copy_ceiling_bytes_per_second = 0;
  double read_ceiling_bytes_per_second = 0;
  std::uint64_t window_events = 0;

  // The proof of the whole run: a speed is valid only with it.
  std::uint64_t incomplete = 0;   ///< incomplete fragments
  std::uint64_t lost = 0;         ///< chunks lost for a counted reason
  std::uint64_t unaccounted = 0;  ///< chunks that were received and are in no fragment and no counter
  std::uint64_t verified_fragments = 0;
  std::uint64_t mismatches = 0;  ///< mismatches in the verified fragments
  bool proven() const { return incomplete + lost + unaccounted + mismatches == 0 && verified_fragments > 0; }
};

/// The error of a benchmark that cannot prove its data (readout.bench_mismatch).
Error not_proven(std::uint64_t mismatches, std::uint64_t incomplete, std::uint64_t lost);

/// Runs the benchmark; throws SetupError for impossible settings. The result is valid only if it is proven.
BuildBenchResult run_build_bench(const BuildBenchSettings& settings, const base::ComponentRegistry& registry);

/// Runs the benchmark, and throws SetupError (readout.bench_mismatch) if the result is not proven.
BuildBenchResult run_proven_build_bench(const BuildBenchSettings& settings, const base::ComponentRegistry& registry);

/// Plain copying of the prepared memory into a buffer that stays in cache, by one thread [bytes per second of its CPU].
double copy_ceiling(const PreparedInput& input);

/// The defaults of a component's keys, with some set otherwise.
Parameters parameters_of(const ComponentInfo& info);

}  // namespace rodeo::bench
