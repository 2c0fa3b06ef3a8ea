// The verbs of `rodeo bench`, one file each, and what they share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/command.h"
#include "control/json.h"
#include "readout/bench/scaling.h"

namespace rodeo::cli {

void add_bench_latency(Command& bench);
void add_bench_scaling(Command& bench);
void add_bench_figures(Command& bench);

/// With S(n), C_FA and P.
control::Json json_of(const readout::ScalingRow& row);

/// 1, 2, ... as far as this machine has cores.
std::vector<std::uint32_t> workers_up_to(std::uint32_t most);

/// "S(3) needs three cores ..." where it has not; else empty.
std::string too_few_cores(std::uint32_t most);

}  // namespace rodeo::cli
