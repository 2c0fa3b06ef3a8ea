#include "readout/defaults.h"

#include "readout/consumer/register.h"

namespace rodeo::readout {

void register_defaults(Registry& registry) {
  register_consumers(registry);
  register_works(registry);
}

}  // namespace rodeo::readout
