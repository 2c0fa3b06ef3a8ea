// The verbs of `rodeo bench`, one file each.
#pragma once

#include "cli/command.h"

namespace rodeo::cli {

void add_bench_latency(Command& bench);

}  // namespace rodeo::cli
