// `rodeo farm`: whole events, built, filtered, recorded.
#include "cli/farm.h"

#include "cli/verbs.h"
#include "farm/selection/register.h"
#include "readout/library.h"

namespace rodeo::cli {

void add_farm(Command& root) {
  readout::add_default_library(farm::register_selections);
  Command& farm = root.verb("farm", "Whole events: build, filter and record them");
  add_farm_supervise(farm);
  add_farm_filter(farm);
  add_farm_record(farm);
}

}  // namespace rodeo::cli
