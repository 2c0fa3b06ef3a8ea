// Every value of a configuration that is in effect, and one name for all of them together.
#pragma once

#include <string>

#include "settings/configuration.h"
#include "settings/json.h"

namespace rodeo::settings {

/// Adds the values of a table and of all below it to an object, by whole key ("readout.builder.timeout"), as they are written. Flat.
void add_values(const Table& table, Json& values);

/// SHA-256 of all values by whole key, sorted, in a line of JSON: 64 lower-case hex digits. The same for files that say the same, wherever a value
/// comes from and in whatever order.
std::string configuration_sha256(const Configuration& configuration);

}  // namespace rodeo::settings
