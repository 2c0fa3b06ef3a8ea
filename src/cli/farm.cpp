// `rodeo farm`: whole events, built, filtered, recorded.
#include "cli/farm.h"

#include "cli/verbs.h"

namespace rodeo::cli {

void add_farm(Command& root) {
  Command& farm = root.verb("farm", "Whole events: build, filter and record them");
  add_farm_supervise(farm);
  add_farm_record(farm);
}

}  // namespace rodeo::cli
