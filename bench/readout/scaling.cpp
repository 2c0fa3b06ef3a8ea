#include "bench/readout/scaling.h"

#include <algorithm>

namespace rodeo::bench {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::vector<ScalingRow> measure_scaling(BuildBenchSettings settings, std::span<const std::uint32_t> workers,
                                        std::uint32_t repeats, const base::ComponentRegistry& registry) {
  struct Samples {
    std::vector<double> chunks, chunks_per_core, fragments, share, speedup;
  };
  std::vector<Samples> samples(workers.size());
  for (std::uint32_t repeat = 0; repeat < repeats; ++repeat) {
    double one = 0;
    for (std::size_t i = 0; i < workers.size(); ++i) {
      settings.workers = workers[i];
      const BuildBenchResult result = run_proven_build_bench(settings, registry);
      const double rate = static_cast<double>(result.chunks) / result.seconds;
      if (i == 0) one = rate;
      samples[i].chunks.push_back(rate);
      samples[i].chunks_per_core.push_back(static_cast<double>(result.chunks) / result.cpu_seconds);
      samples[i].fragments.push_back(static_cast<double>(result.fragments) / result.seconds);
      samples[i].share.push_back(result.cpu_seconds / (result.seconds * workers[i]));
      samples[i].speedup.push_back(rate / one);
    }
  }
  std::vector<ScalingRow> rows;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    rows.push_back({.workers = workers[i],
                    .chunks_per_second = median(samples[i].chunks),
                    .chunks_per_core_second = median(samples[i].chunks_per_core),
                    .fragments_per_second = median(samples[i].fragments),
                    .cpu_share = median(samples[i].share),
                    .speedup = median(samples[i].speedup)});
  }
  return rows;
}

double assembly_cost(std::uint32_t workers, double speedup) { return (workers / speedup - 1) / (0.01 * (workers - 1)); }

double parallel_fraction(double assembly_cost) { return 1 - 0.01 * assembly_cost; }

}  // namespace rodeo::bench
