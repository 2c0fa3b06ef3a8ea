#include "cli/emulator_process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>

#include "cli/emulator_control.h"

namespace rodeo::cli {
namespace {

using namespace std::chrono_literals;
constexpr auto kStartPatience = 20s;
constexpr auto kStopPatience = 5s;
constexpr auto kStep = 5ms;

std::string text_of_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

EmulatorProcess::EmulatorProcess(Settings settings) : settings_(std::move(settings)) {
  std::vector<std::string> command{std::filesystem::read_symlink("/proc/self/exe"), "emulate", settings_.configuration};
  for (const std::string& one : settings_.overrides) command.insert(command.end(), {"--set", one});
  const base::UniqueFd log(::open(settings_.log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  const base::UniqueFd none(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!log || !none) fail(fmt::format("it could not be started: {}", std::strerror(errno)));
  // Ctrl-C is for the readout, which ends the run in order and the emulator last.
  auto child = base::ChildProcess::start({.command = std::move(command),
                                          .in = none.get(),
                                          .out = log.get(),
                                          .err = log.get(),
                                          .when_we_end = SIGTERM,
                                          .first = [] { return ::setpgid(0, 0) == 0; }});
  if (!child) fail(child.error().what);
  process_ = std::move(*child);
  const auto deadline = std::chrono::steady_clock::now() + kStartPatience;
  while (!report()) {
    if (process_.wait(0ms)) fail("it ended at once");
    if (std::chrono::steady_clock::now() > deadline) {
      stop();
      fail("it did not answer");
    }
    std::this_thread::sleep_for(kStep);
  }
}

EmulatorProcess::~EmulatorProcess() { stop(); }

Result<Json> EmulatorProcess::report() const { return ask_emulator(settings_.name, Json::object({{"command", "status"}})); }

void EmulatorProcess::stop() {
  process_.signal(SIGTERM);
  if (!process_.wait(kStopPatience)) process_ = {};
}

void EmulatorProcess::fail(const std::string& what) {
  std::string said = text_of_file(settings_.log);
  while (!said.empty() && said.back() == '\n') said.pop_back();
  throw SetupError(Error{"cli.emulator",
                         fmt::format("no emulated card: {}{}{}", what, said.empty() ? "" : "; it said:\n", said),
                         settings_.configuration.string(), "rodeo emulate CONFIG shows the same"});
}

}  // namespace rodeo::cli
