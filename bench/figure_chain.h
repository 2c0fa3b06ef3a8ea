// The paper's Figures 4 and 5 over the network: generator -> router -> network -> builder; router and readout are two
// processes.
#pragma once

#include <filesystem>

#include "bench/figure_points.h"

namespace rodeo::bench {

// The JSON is that of figure_points.h: {"title", "setup", "points": [...]}, with "network": the capacity of the transport
// alone, from which the line of the paper's eq. (5) is drawn. The processes leave their files in `directory`.

/// GBT rate against FELIX cards, 192 links of 40 B each, every card with a builder of its own.
settings::Json measure_chain4(const FigureSettings& settings, const std::filesystem::path& directory);

/// FULL-mode rate of each stream against their number; 24 links, 5 kB.
settings::Json measure_chain5(const FigureSettings& settings, const std::filesystem::path& directory);

}  // namespace rodeo::bench
