// A switch driver in a program of the user, in any language: it reads one JSON object a line on stdin and answers each with
// an object on stdout (docs/explanation/network-laboratory.md).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "network/laboratory/switch_driver.h"

namespace rodeo::network::laboratory {

/// Starts `program` (a path, or found in PATH) with the options, each KEY=VALUE, as its arguments. Call it on the main
/// thread. Errors: network.driver.
Result<std::unique_ptr<SwitchDriver>> switch_program(const std::string& program, const std::vector<std::string>& options);

}  // namespace rodeo::network::laboratory
