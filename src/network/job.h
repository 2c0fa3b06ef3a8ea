// From a configuration to what `rodeo net size` and `rodeo net sweep` work on: settings that make sense, as JSON for Python.
#pragma once

#include <expected>

#include "settings/configuration.h"
#include "settings/json.h"

namespace rodeo::network {

using settings::Configuration;
using settings::ConfigurationErrors;
using settings::Json;

/// {"scenario": {name: text}, "size": {...}, "sweep": {..., "axes": [{"key", "values": [text]}]}, "executor": {...}}. The scenario has what
/// was given; the network that it makes is one that can be built, and so is that of every value of an axis on its own. Null if there is
/// no [network]. All errors at once: config.*, network.*, each with its place.
std::expected<Json, ConfigurationErrors> network_job(const Configuration& configuration);

}  // namespace rodeo::network
