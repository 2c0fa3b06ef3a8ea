#include "readout/input/inputs.h"

#include <memory>

#include "readout/input/generator_input.h"

namespace rodeo::readout {

void register_inputs(Registry& registry) {
  registry.add_input({.name = "generator",
                      .help = "Makes triggers and provable chunks itself, with faults on demand.",
                      .keys = generator_keys()},
                     [](const Parameters& parameters) -> std::unique_ptr<DataInput> {
                       return std::make_unique<InternalDataGenerator>(GeneratorSettings::from(parameters));
                     });
}

}  // namespace rodeo::readout
