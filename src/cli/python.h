// The Python side of Rodeo, as the command runs it: which interpreter, where our package is.
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

/// The folder of our Python package, beside the command: in a build folder, or where it is installed. Nothing if there is none.
std::optional<std::filesystem::path> python_package();

/// RODEO_PYTHON, else the interpreter of .venv beside the build folder, else that which `rodeo-python-packages` made for an installed
/// package, else the distribution's Python 3.11 (python3; of EL9 python3.11).
std::string python_interpreter();

/// Runs `python -B -m MODULE ARGUMENTS...` to its end, with our package found, our stdout and stderr; its exit status is ours (130 after
/// Ctrl-C). Errors: cli.python (no interpreter, no package).
Result<ExitCode> run_python(const std::string& module, const std::vector<std::string>& arguments);

/// The words before the name of a module in such a command; what Python needs to find our package is in our environment from then on. Error cli.python.
Result<std::vector<std::string>> python_words();

/// Starts `python -B -m MODULE ARGUMENTS...` beside us, with these descriptors as its stdin and stdout (-1: ours). It ends with us at the latest. Errors:
/// cli.python.
Result<base::ChildProcess> start_python(const std::string& module, const std::vector<std::string>& arguments, int in,
                                        int out);

/// A text as the stdin of a Python process; of an empty one, a file that takes what it says. Error cli.python.
Result<base::UniqueFd> text_in_memory(std::string_view text);

/// Names as the stdin of a Python process, each behind a NUL but the first: there may be more of them than a command line takes. Error cli.python.
Result<base::UniqueFd> names_in_memory(const std::vector<std::string>& names);

/// run_python() with such a stdin.
Result<ExitCode> run_python_on(const std::vector<std::string>& names, const std::string& module,
                               const std::vector<std::string>& arguments);

/// Becomes `python -B -m MODULE ARGUMENTS...`: the same process, so that signals and exit status are Python's. Comes back only with an error: cli.python.
Error become_python(const std::string& module, const std::vector<std::string>& arguments);

}  // namespace rodeo::cli
