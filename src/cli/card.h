// The verbs of `rodeo card`, one file a group, and what they share.
#pragma once

#include "cli/command.h"

namespace rodeo::cli {

void add_card_keep(Command& card);

}  // namespace rodeo::cli
