// The measurements behind the paper's performance figures (software ROD paper, section IX), as JSON for the script that
// draws them.
#pragma once

#include "base/registry.h"
#include "settings/json.h"

namespace rodeo::bench {

struct FigureSettings {
  double seconds = 1;         ///< measuring time of each point
  std::uint32_t repeats = 5;  ///< repeats of Table II
  bool sparse = false;        ///< measure only the ends of each sweep
};

// Each function returns {"title", "setup", "points": [...]} and throws SetupError if a point cannot be measured or does not
// verify. Rates are wall clock; "cpu_share" is the share of CPU that the workers got of the time of this machine's cores.

/// GBT rate against FELIX cards, 192 links of 40 B each, every card with its own builder of one or two workers.
settings::Json measure_figure4(const FigureSettings& settings, const base::ComponentRegistry& registry);

/// FULL-mode rate of each stream against their number; 24 links, 5 kB.
settings::Json measure_figure5(const FigureSettings& settings, const base::ComponentRegistry& registry);

/// GBT rate against chunk size with 48 links (a), and against the number of links (b).
settings::Json measure_figure6a(const FigureSettings& settings, const base::ComponentRegistry& registry);
settings::Json measure_figure6b(const FigureSettings& settings, const base::ComponentRegistry& registry);

/// The rate with each design of the statistics, relative to none, against the number of data threads, counted chunk by chunk
/// and run by run (felixcore-statistics-slides).
settings::Json measure_statistics(const FigureSettings& settings);

/// Speed-up, cost of assembly, parallel fraction.
settings::Json measure_table2(const FigureSettings& settings, const base::ComponentRegistry& registry);

}  // namespace rodeo::bench
