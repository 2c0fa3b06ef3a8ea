#include "cli/emulator_process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>

#include "control/emulator_settings.h"

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
  std::vector<std::string> arguments{"rodeo", "emulate", settings_.configuration.string()};
  for (const std::string& one : settings_.overrides) arguments.insert(arguments.end(), {"--set", one});
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) fail(fmt::format("it could not be started: {}", std::strerror(errno)));
  if (pid_ == 0) {
    // Only calls that are safe between fork and exec.
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(127);
    ::setpgid(0, 0);  // Ctrl-C is for the readout, which ends the run in order and the emulator last
    const int log = ::open(settings_.log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const int none = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (log < 0 || none < 0) ::_exit(127);
    ::dup2(none, STDIN_FILENO);
    ::dup2(log, STDOUT_FILENO);
    ::dup2(log, STDERR_FILENO);
    ::execv("/proc/self/exe", argv.data());
    ::_exit(127);
  }
  const auto deadline = std::chrono::steady_clock::now() + kStartPatience;
  while (!report()) {
    if (ended()) fail("it ended at once");
    if (std::chrono::steady_clock::now() > deadline) {
      stop();
      fail("it did not answer");
    }
    std::this_thread::sleep_for(kStep);
  }
}

EmulatorProcess::~EmulatorProcess() { stop(); }

Result<Json> EmulatorProcess::report() const {
  return control::ask_emulator(settings_.name, Json::object({{"command", "status"}}));
}

bool EmulatorProcess::ended() {
  if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = -1;
  return pid_ < 0;
}

void EmulatorProcess::stop() {
  if (ended()) return;
  ::kill(pid_, SIGTERM);
  const auto deadline = std::chrono::steady_clock::now() + kStopPatience;
  while (!ended()) {
    if (std::chrono::steady_clock::now() > deadline) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
      pid_ = -1;
      return;
    }
    std::this_thread::sleep_for(kStep);
  }
}

void EmulatorProcess::fail(const std::string& what) {
  std::string said = text_of_file(settings_.log);
  while (!said.empty() && said.back() == '\n') said.pop_back();
  throw SetupError(Error{"control.emulator",
                         fmt::format("no emulated card: {}{}{}", what, said.empty() ? "" : "; it said:\n", said),
                         settings_.configuration.string(), "rodeo emulate CONFIG shows the same"});
}

}  // namespace rodeo::cli
