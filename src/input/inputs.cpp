#include "input/inputs.h"

#include <memory>

#include "base/registry.h"
#include "input/card_input.h"
#include "input/event_file_input.h"
#include "input/file_input.h"
#include "input/generator_input.h"
#include "input/network_input.h"

namespace rodeo::input {
namespace {

// "provable" is built into the input, which knows links and seed. Any other name is the name of a registered function.
RestampFunction restamp_named(const Registry& registry, const std::string& name) {
  if (name == "provable") return nullptr;
  const auto* components = dynamic_cast<const base::ComponentRegistry*>(&registry);
  if (components == nullptr) throw std::runtime_error("This registry cannot look up the re-stamping function " + name + ".");
  auto function = components->restamp(name);
  if (!function) throw SetupError(std::move(function.error()));
  return *function;
}

}  // namespace

void register_inputs(Registry& registry) {
  registry.add_input({.name = "generator",
                      .help = "Makes triggers and provable chunks itself, with faults on demand.",
                      .keys = generator_keys()},
                     [](const Parameters& parameters) -> std::unique_ptr<DataInput> {
                       return std::make_unique<InternalDataGenerator>(GeneratorSettings::from(parameters));
                     });
  registry.add_input({.name = "file", .help = "Replays a recording of FELIX blocks.", .keys = file_input_keys()},
                     [&registry](const Parameters& parameters) -> std::unique_ptr<DataInput> {
                       FileInputSettings settings = FileInputSettings::from(parameters);
                       if (settings.loop) settings.restamp = restamp_named(registry, parameters.text("restamp"));
                       return std::make_unique<FileInput>(settings);
                     });
  registry.add_input(
      {.name = "event_file", .help = "Plays event files that a readout has written.", .keys = event_file_input_keys()},
      [&registry](const Parameters& parameters) -> std::unique_ptr<DataInput> {
        EventFileInputSettings settings = EventFileInputSettings::from(parameters);
        if (settings.loop) settings.restamp = restamp_named(registry, parameters.text("restamp"));
        return std::make_unique<EventFileInput>(settings);
      });
  registry.add_input(
      {.name = "card", .help = "Reads FELIX or CRU cards in the builder's own threads.", .keys = card_input_keys()},
      [](const Parameters& parameters) -> std::unique_ptr<DataInput> {
        return std::make_unique<CardInput>(CardInputSettings::from(parameters));
      });
  registry.add_input({.name = "network", .help = "Subscribes to links that routers publish.", .keys = network_input_keys()},
                     [](const Parameters& parameters) -> std::unique_ptr<DataInput> {
                       return std::make_unique<NetworkInput>(NetworkInputSettings::from(parameters));
                     });
}

}  // namespace rodeo::input
