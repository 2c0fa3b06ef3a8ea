#include "readout/defaults.h"

namespace rodeo::readout {

void register_defaults(Registry& registry) { (void)registry; }

}  // namespace rodeo::readout
