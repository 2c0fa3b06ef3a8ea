#include "readout/defaults.h"

#include "input/inputs.h"
#include "readout/builder/full_builder.h"
#include "readout/builder/gbt_builder.h"
#include "readout/consumer/register.h"
#include "readout/extractor/field_extractor.h"
#include "readout/extractor/rdh_extractor.h"

namespace rodeo::readout {

void register_defaults(Registry& registry) {
  input::register_inputs(registry);
  register_consumers(registry);
  register_works(registry);
  register_extractors(registry);
  register_rdh_extractor(registry);
  register_gbt_builder(registry);
  register_full_builder(registry);
}

}  // namespace rodeo::readout
