#include "cli/part_process.h"

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

#include "base/fd_socket.h"
#include "cli/program.h"

namespace rodeo::cli {
namespace {

using namespace std::chrono_literals;
constexpr auto kStartPatience = 20s;
constexpr auto kStopPatience = 5s;
constexpr auto kStep = 5ms;

}  // namespace

PartProcess::PartProcess(Settings settings) : settings_(std::move(settings)) {
  std::vector<std::string> command{rodeo_command()};
  command.insert(command.end(), settings_.command.begin(), settings_.command.end());
  for (const std::string& one : settings_.overrides) command.insert(command.end(), {"--set", one});
  const base::UniqueFd log(::open(settings_.log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  const base::UniqueFd none(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!log || !none) fail(fmt::format("it could not be started: {}", std::strerror(errno)));
  // Keep Ctrl-C from this process: the command that started it ends the run in order.
  auto child = base::ChildProcess::start({.command = std::move(command),
                                          .in = none.get(),
                                          .out = log.get(),
                                          .err = log.get(),
                                          .when_we_end = SIGTERM,
                                          .first = [] { return ::setpgid(0, 0) == 0; }});
  if (!child) fail(child.error().what);
  process_ = std::move(*child);
  const auto deadline = std::chrono::steady_clock::now() + kStartPatience;
  while (!settings_.there()) {
    if (ended()) fail("it ended at once");
    if (std::chrono::steady_clock::now() > deadline) {
      stop();
      fail("it did not answer");
    }
    std::this_thread::sleep_for(kStep);
  }
}

PartProcess::~PartProcess() { stop(); }

void PartProcess::stop() {
  process_.signal(SIGTERM);
  if (!ended(kStopPatience)) process_ = {};
}

std::string PartProcess::said() const {
  std::ifstream file(settings_.log);
  std::string said{std::istreambuf_iterator<char>(file), {}};
  while (!said.empty() && said.back() == '\n') said.pop_back();
  return said;
}

void PartProcess::fail(const std::string& what) {
  const std::string said = this->said();
  throw SetupError(
      Error{"cli.part", fmt::format("{}: {}{}{}", settings_.lack, what, said.empty() ? "" : "; it said:\n", said),
            settings_.command.back(), fmt::format("rodeo {} CONFIG shows the same", settings_.command.front())});
}

}  // namespace rodeo::cli
