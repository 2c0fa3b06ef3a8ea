#include "network/laboratory/line_process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "network/laboratory/leftovers.h"

namespace rodeo::network::laboratory {

namespace {

constexpr std::size_t kLongestLine = 64 * 1024;
constexpr int kStopIntervalMs = 100;
constexpr auto kGrace = std::chrono::milliseconds(300);

/// What runs between fork and exec: system calls only.
[[noreturn]] void become(char* const* arguments, char* const* environment, int in, int out, pid_t parent,
                         int network_namespace) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  signal(SIGINT, SIG_IGN);  // Ctrl-C is for the laboratory, which ends its agents in order
  if (network_namespace >= 0 && setns(network_namespace, CLONE_NEWNET) != 0) _exit(126);
  dup2(in, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  execvpe(arguments[0], arguments, environment);
  _exit(127);
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> list;
  for (const std::string& word : words) list.push_back(const_cast<char*>(word.c_str()));
  list.push_back(nullptr);
  return list;
}

}  // namespace

Result<LineProcess> LineProcess::start(std::string name, std::string code, const std::vector<std::string>& command,
                                       int network_namespace) {
  std::array<int, 2> to{-1, -1};
  std::array<int, 2> from{-1, -1};
  // A socket, because writing to one that nobody reads is an error and not a signal.
  const bool piped =
      socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, to.data()) == 0 && pipe2(from.data(), O_CLOEXEC) == 0;
  FileDescriptor their_stdin(to[0]);
  FileDescriptor our_end(to[1]);
  FileDescriptor our_other_end(from[0]);
  FileDescriptor their_stdout(from[1]);
  std::vector<std::string> environment{std::string(kRunVariable) + "=" + run_mark()};
  for (char** variable = environ; *variable != nullptr; ++variable) environment.emplace_back(*variable);
  const std::vector<char*> arguments = pointers(command);
  const std::vector<char*> variables = pointers(environment);
  const pid_t us = getpid();
  const pid_t child = piped ? fork() : -1;
  if (child < 0)
    return std::unexpected(
        Error{std::move(code), fmt::format("cannot start {}: {}", command[0], std::strerror(errno)), std::move(name)});
  if (child == 0) become(arguments.data(), variables.data(), their_stdin.get(), their_stdout.get(), us, network_namespace);
  return LineProcess(std::move(name), std::move(code), child, std::move(our_end), std::move(our_other_end));
}

LineProcess::~LineProcess() {
  if (pid_.value < 0) return;
  to_.reset();
  for (auto left = kGrace; left.count() > 0; left -= std::chrono::milliseconds(10)) {
    if (waitpid(pid_.value, nullptr, WNOHANG) != 0) return;
    poll(nullptr, 0, 10);
  }
  kill(pid_.value, SIGKILL);
  while (waitpid(pid_.value, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Result<void> LineProcess::send(const std::string& line) {
  const std::string text = line + "\n";
  if (::send(to_.get(), text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size())) return {};
  return std::unexpected(
      Error{code_, "it could not be started, or has ended", name_, "start its command by hand; its own words are above"});
}

Result<std::string> LineProcess::receive(std::chrono::milliseconds patience, const Stop& stop) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    if (const std::size_t end = text_.find('\n'); end != std::string::npos) {
      std::string line = text_.substr(0, end);
      text_.erase(0, end + 1);
      return line;
    }
    if (stop && stop()) return std::unexpected(Error{"network.interrupted", "the run was interrupted"});
    if (std::chrono::steady_clock::now() >= deadline)
      return std::unexpected(Error{"network.agent_silent", fmt::format("no answer for {} s", patience.count() / 1000), name_,
                                   "is the host reachable, and does its command start by hand?"});
    pollfd waiting{from_.get(), POLLIN, 0};
    if (poll(&waiting, 1, kStopIntervalMs) <= 0) continue;
    std::array<char, 16384> some{};
    const ssize_t n = read(from_.get(), some.data(), some.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      return std::unexpected(Error{code_, "it could not be started, or has ended", name_,
                                   "start its command by hand; its own words are above"});
    if (text_.size() > kLongestLine) return std::unexpected(Error{code_, "it says something without an end of line", name_});
    text_.append(some.data(), static_cast<std::size_t>(n));
  }
}

}  // namespace rodeo::network::laboratory
