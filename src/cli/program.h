// Other programs that the command runs: where they are, and how they ended.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace rodeo::cli {

/// This binary. Throws SetupError where /proc cannot tell.
std::filesystem::path own_executable();

/// The folder of this binary.
std::filesystem::path command_directory();

/// The first of these that exists; a relative one is looked for beside the command.
std::optional<std::filesystem::path> find_beside(std::initializer_list<const char*> candidates);

/// Runs it to its end, with our stdout and stderr, or without any if `quiet`; SIGTERM is passed on to it. Its exit status;
/// 128 + N if a signal N ended it. Errors: cli.program (it could not be started).
Result<int> run_program(const std::vector<std::string>& arguments, bool quiet = false);

}  // namespace rodeo::cli
