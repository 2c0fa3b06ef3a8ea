// All values of a configuration that are in effect, and a checksum over them.
#pragma once

#include <string>

#include "settings/configuration.h"
#include "settings/json.h"

namespace rodeo::settings {

/// Adds the values of a table and of all tables below it to a flat object, by whole key ("readout.builder.timeout"), as
/// written.
void add_values(const Table& table, Json& values);

/// SHA-256 of all values by whole key, sorted, as one line of JSON: 64 lower-case hex digits. It does not depend on the
/// source or order of the values.
std::string configuration_sha256(const Configuration& configuration);

}  // namespace rodeo::settings
