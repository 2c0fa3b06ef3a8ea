// From a configuration to what `rodeo net size` and `rodeo net sweep` work on: settings that make sense, as JSON for Python.
#pragma once

#include <expected>

#include "settings/configuration.h"
#include "settings/json.h"

namespace rodeo::control {

using settings::Configuration;
using settings::ConfigurationErrors;
using settings::ConfigurationSource;
using settings::Json;

/// {"scenario": {name: text}, "size": {...}, "sweep": {..., "axes": [{"key", "values": [text]}]}, "executor": {...}}. The scenario has what
/// was given; the network that it makes is one that can be built, and so is that of every value of an axis on its own.
/// All errors at once: config.*, network.*, each with its place.
std::expected<Json, ConfigurationErrors> load_network(const ConfigurationSource& source);

/// The same of a configuration that is loaded; for `rodeo check`. Nothing to say if it has no [network].
std::expected<Json, ConfigurationErrors> network_job(const Configuration& configuration);

}  // namespace rodeo::control
