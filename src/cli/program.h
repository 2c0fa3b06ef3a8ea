// Other programs that the command runs: their paths and their exit statuses.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace rodeo::cli {

/// The path of this binary. Throws SetupError without /proc.
std::filesystem::path own_executable();

/// The folder of this binary.
std::filesystem::path command_directory();

/// The `rodeo` command: this binary, or the one beside it.
std::filesystem::path rodeo_command();

/// The first existing candidate; relative paths start beside the command.
std::optional<std::filesystem::path> find_beside(std::initializer_list<const char*> candidates);

/// Runs a program to its end, with this process's stdout and stderr (`quiet`: without). Passes SIGTERM on. Returns its exit
/// status; 128 + N if a signal N ended it. Errors: cli.program (it could not be started).
Result<int> run_program(const std::vector<std::string>& arguments, bool quiet = false);

}  // namespace rodeo::cli
