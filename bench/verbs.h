// The measuring verbs, `rodeo bench` and `rodeo card bench`. The program adds them to its verbs.
#pragma once

#include "cli/command.h"

namespace rodeo::bench {

void add_bench(cli::Command& root);
void add_card_bench(cli::Command& card);

}  // namespace rodeo::bench
