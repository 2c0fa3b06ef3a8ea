#include "cli/python.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/log.h"
#include "cli/docs.h"
#include "cli/program.h"
#include "cli/revision.h"
#include "process/stop_signals.h"

namespace rodeo::cli {

namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// What makes the Python that Rodeo needs: this differs between a clone and an installation, as in python/rodeo/missing.py.
std::string remedy() {
  const std::string named = "name an interpreter: RODEO_PYTHON=/path/to/python3";
  const auto installer = find_beside({"../sbin/rodeo-python-packages"});
  if (!installer) return find_beside({"../tools/setup"}) ? "run tools/setup and build the clone, or " + named : named;
  const std::filesystem::path directory = installer->parent_path();
  const bool known = directory == "/sbin" || directory == "/usr/sbin" || directory == "/usr/local/sbin";
  const std::string command = known ? installer->filename().string() : installer->string();
  return fmt::format("run {}{}, or {}", ::access(directory.c_str(), W_OK) == 0 ? "" : "sudo ", command, named);
}

std::optional<std::filesystem::path> package_init() {
  // First the build folder and the installed package, which have the extension modules. The sources alone report what is
  // missing.
  return find_beside(
      {"python/rodeo/__init__.py", RODEO_PYTHON_FROM_COMMAND "/rodeo/__init__.py", "../python/rodeo/__init__.py"});
}

/// The words of the command line. Sets the environment variables that Python needs to find the package.
Result<std::vector<std::string>> python_command(const std::string& module, const std::vector<std::string>& arguments) {
  const auto package = package_init();
  if (!package) {
    return std::unexpected(
        Error{"cli.python", "Rodeo's Python package is not beside the command", command_directory().string(), remedy()});
  }
  std::string path = package->parent_path().parent_path().string();
  if (const std::string before = environment("PYTHONPATH"); !before.empty()) path += ":" + before;
  setenv("PYTHONPATH", path.c_str(), 1);
  setenv("RODEO", rodeo_command().c_str(), 1);
  setenv("RODEO_SITE", documentation_site().c_str(), 1);
  setenv("RODEO_REVISION", RODEO_REVISION, 1);
  if (base::log_level() == base::LogLevel::debug) setenv("RODEO_LOG", "debug", 1);
  std::vector<std::string> command{python_interpreter(), "-B", "-m"};
  if (!module.empty()) command.insert(command.end(), {"rodeo.program", module});
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

Result<ExitCode> status_of(int ended, const std::string& module) {
  if (ended >= 0 && ended <= 7) return static_cast<ExitCode>(ended);
  if (ended == 130) return ExitCode::failed;  // Python has reported it
  return std::unexpected(
      Error{"cli.python", fmt::format("{} ended with {}", python_interpreter(), ended), module, remedy()});
}

}  // namespace

std::optional<std::filesystem::path> python_package() {
  const auto init = package_init();
  return init ? std::optional(init->parent_path()) : std::nullopt;
}

std::string python_interpreter() {
  if (const std::string named = environment("RODEO_PYTHON"); !named.empty()) return named;
  if (const auto found = find_beside({"../.venv/bin/python3", "../lib/rodeo/venv/bin/python3", RODEO_VENV "/bin/python3"}))
    return found->string();
  return RODEO_PYTHON3;
}

Result<std::vector<std::string>> python_words() { return python_command("", {}); }

Result<ExitCode> run_python(const std::string& module, const std::vector<std::string>& arguments) {
  const auto command = RODEO_TRY(python_command(module, arguments));
  const auto ended = run_program(command);
  if (!ended) return std::unexpected(Error{"cli.python", ended.error().what, "", remedy()});
  return status_of(*ended, module);
}

Result<base::UniqueFd> text_in_memory(std::string_view text) {
  base::UniqueFd memory(::memfd_create("text", MFD_CLOEXEC));
  for (std::size_t at = 0; memory && at < text.size();) {
    const ssize_t n = ::write(memory.get(), text.data() + at, text.size() - at);
    if (n <= 0) memory = base::UniqueFd();
    at += static_cast<std::size_t>(std::max<ssize_t>(n, 0));
  }
  if (memory && ::lseek(memory.get(), 0, SEEK_SET) == 0) return memory;
  return std::unexpected(Error{"cli.python", fmt::format("cannot keep Python's input in memory: {}", std::strerror(errno))});
}

Result<base::UniqueFd> names_in_memory(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : std::string(1, '\0')) + name;
  return text_in_memory(text);
}

Result<ExitCode> run_python_on(const std::vector<std::string>& names, const std::string& module,
                               const std::vector<std::string>& arguments) {
  const base::UniqueFd memory = RODEO_TRY(names_in_memory(names));
  // On a terminal, Ctrl-C reaches the child, too: it cleans up, and this process ends with it.
  const process::StopSignals signals;
  auto child = RODEO_TRY(start_python(module, arguments, memory.get(), -1));
  bool told = false;
  while (true) {
    if (const auto ended = child.wait(std::chrono::milliseconds(100))) return status_of(*ended, module);
    if (signals.stop_requested() && !std::exchange(told, true)) child.signal(SIGTERM);
  }
}

Result<base::ChildProcess> start_python(const std::string& module, const std::vector<std::string>& arguments, int in,
                                        int out) {
  const auto command = RODEO_TRY(python_command(module, arguments));
  auto started = base::ChildProcess::start({.command = command, .in = in, .out = out});
  if (!started) return std::unexpected(Error{"cli.python", started.error().what, "", remedy()});
  return started;
}

Error become_python(const std::string& module, const std::vector<std::string>& arguments) {
  auto command = python_command(module, arguments);
  if (!command) return command.error();
  std::vector<char*> words;
  for (std::string& word : *command) words.push_back(word.data());
  words.push_back(nullptr);
  std::fflush(nullptr);
  ::execvp(words[0], words.data());
  return {"cli.python", fmt::format("cannot run {}: {}", words[0], std::strerror(errno)), "", remedy()};
}

}  // namespace rodeo::cli
