// `rodeo card bench`, a verb of the command.
#pragma once

#include "cli/command.h"

namespace rodeo::bench {

void add_card_bench(cli::Command& card);

}  // namespace rodeo::bench
