// Runs the Python side of Rodeo: finds the interpreter and Rodeo's package.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/child_process.h"
#include "base/fd_socket.h"
#include "cli/command.h"

namespace rodeo::cli {

/// The folder of Rodeo's Python package, beside the command: in a build folder, or installed. nullopt if there is none.
std::optional<std::filesystem::path> python_package();

/// RODEO_PYTHON, else the interpreter of .venv beside the build folder, else the one that `rodeo-python-packages` made for
/// an installed package, else the distribution's Python 3.11 (python3; on EL9 python3.11).
std::string python_interpreter();

/// Runs `python -B -m MODULE ARGUMENTS...` to its end, with this process's stdout and stderr. Returns its exit status
/// (`failed` after Ctrl-C). Errors: cli.python (no interpreter, no package).
Result<ExitCode> run_python(const std::string& module, const std::vector<std::string>& arguments);

/// The words before the name of a module in such a command. Sets the environment variables that Python needs to find the
/// package. Error cli.python.
Result<std::vector<std::string>> python_words();

/// Starts `python -B -m MODULE ARGUMENTS...` in parallel, with these descriptors as its stdin and stdout (-1: this
/// process's). It ends with this process at the latest. Errors: cli.python.
Result<base::ChildProcess> start_python(const std::string& module, const std::vector<std::string>& arguments, int in,
                                        int out);

/// A file in memory with this text, as stdin of a Python process; an empty one can take its stdout. Error cli.python.
Result<base::UniqueFd> text_in_memory(std::string_view text);

/// Names as stdin of a Python process, separated by NUL: they may be too many for a command line. Error cli.python.
Result<base::UniqueFd> names_in_memory(const std::vector<std::string>& names);

/// run_python() with such a stdin.
Result<ExitCode> run_python_on(const std::vector<std::string>& names, const std::string& module,
                               const std::vector<std::string>& arguments);

/// Replaces this process by `python -B -m MODULE ARGUMENTS...`, so signals and exit status are Python's. Returns only on an
/// error: cli.python.
Error become_python(const std::string& module, const std::vector<std::string>& arguments);

}  // namespace rodeo::cli
