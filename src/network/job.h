// Turns a configuration into the input of `rodeo net size` and `rodeo net sweep`: checked settings, as JSON for Python.
#pragma once

#include <expected>

#include "settings/configuration.h"
#include "settings/json.h"

namespace rodeo::network {

using settings::Configuration;
using settings::ConfigurationErrors;
using settings::Json;

/// {"scenario": {name: text}, "size": {...}, "sweep": {..., "axes": [{"key", "values": [text]}]}, "executor": {...}}. The
/// scenario has the given settings only. Its network can be built, and so can the network with any single value of an axis.
/// Null if there is no [network]. Returns all errors at once: config.*, network.*, each with its place.
std::expected<Json, ConfigurationErrors> network_job(const Configuration& configuration);

}  // namespace rodeo::network
