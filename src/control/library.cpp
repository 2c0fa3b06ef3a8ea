#include "control/library.h"

#include "readout/defaults.h"

namespace rodeo::control {

Library::Library() {
  if (const auto added = registry_.add_library("built in", readout::register_defaults); !added)
    throw SetupError(added.error());
}

}  // namespace rodeo::control
