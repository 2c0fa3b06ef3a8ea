// The names of links: [[link]] with `fid` and `name`, for every process that has links.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <string>

#include "settings/configuration.h"
#include "settings/declarations.h"

namespace rodeo::settings {

TableDeclaration link_table();

/// Names by FID. Errors config.bad_value: no FID, no name, or one of them twice.
std::expected<std::map<std::uint64_t, std::string>, ConfigurationErrors> link_names(const Configuration& configuration);

}  // namespace rodeo::settings
