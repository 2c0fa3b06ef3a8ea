#include "readout/library.h"

#include "readout/defaults.h"

namespace rodeo::readout {

Library::Library() {
  if (const auto added = registry_.add_library("built in", register_defaults); !added) throw SetupError(added.error());
}

}  // namespace rodeo::readout
