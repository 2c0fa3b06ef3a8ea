// `rodeo farm`: builds, filters and records whole events.
#include "cli/farm.h"

#include "cli/verbs.h"
#include "farm/selection/register.h"
#include "readout/library.h"

namespace rodeo::cli {

void add_farm(Command& root) {
  readout::add_default_library(farm::register_selections);
  Command& farm = root.verb("farm", "Builds, filters and records whole events");
  add_farm_supervise(farm);
  add_farm_filter(farm);
  add_farm_record(farm);
}

}  // namespace rodeo::cli
