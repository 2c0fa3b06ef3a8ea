#include "network/laboratory/line_process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "network/laboratory/leftovers.h"

namespace rodeo::network::laboratory {

namespace {

constexpr std::size_t kLongestLine = 64 * 1024;
constexpr int kStopIntervalMs = 100;
constexpr auto kGrace = std::chrono::milliseconds(300);

}  // namespace

const Json& member_of(const Json& said, std::string_view name) {
  static const Json kNothing;
  const Json* const found = said.find(name);
  return found != nullptr ? *found : kNothing;
}

std::unexpected<Error> LineProcess::failed(std::string what) const {
  return std::unexpected(Error{code_, std::move(what), name_, "start its command by hand; its own messages are above"});
}

Result<LineProcess> LineProcess::start(std::string name, std::string code, const std::vector<std::string>& command,
                                       int network_namespace) {
  LineProcess made(std::move(name), std::move(code));
  std::array<int, 2> to{-1, -1};
  std::array<int, 2> from{-1, -1};
  // A socket: writing to it after the reader has closed gives an error, not a signal.
  const bool piped =
      socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, to.data()) == 0 && pipe2(from.data(), O_CLOEXEC) == 0;
  const base::UniqueFd their_stdin(to[0]);
  const base::UniqueFd their_stdout(from[1]);
  made.to_.reset(to[1]);
  made.from_.reset(from[0]);
  if (!piped) return made.failed(fmt::format("cannot start {}: {}", command[0], std::strerror(errno)));
  auto started = base::ChildProcess::start({.command = command,
                                            .environment = {std::string(kRunVariable) + "=" + run_mark()},
                                            .in = their_stdin.get(),
                                            .out = their_stdout.get(),
                                            .first = [network_namespace] {
                                              // The laboratory handles Ctrl-C and ends its agents in order.
                                              signal(SIGINT, SIG_IGN);
                                              return network_namespace < 0 || setns(network_namespace, CLONE_NEWNET) == 0;
                                            }});
  if (!started) return made.failed(started.error().what);
  made.process_ = std::move(*started);
  return made;
}

LineProcess::~LineProcess() {
  to_.reset();
  process_.wait(kGrace);
}

Result<void> LineProcess::send(const Json& object) {
  const std::string text = object.dump(0) + "\n";
  if (::send(to_.get(), text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size())) return {};
  return failed("it could not be started, or has ended");
}

Result<Json> LineProcess::receive(std::chrono::milliseconds patience, const Stop& stop) {
  const std::string line = RODEO_TRY(next_line(patience, stop));
  auto said = Json::parse(line);
  if (!said || !said->is_object()) return failed("unexpected answer, not a JSON object: " + line.substr(0, 200));
  const Json* const error = said->find("error");
  if (error == nullptr) return said;
  const std::string& code = member_of(*said, "code").string();
  return std::unexpected(
      Error{code.starts_with("network.") ? code : code_, error->string(), name_, member_of(*said, "next").string()});
}

Result<Json> LineProcess::ask(const Json& question, std::chrono::milliseconds patience, const Stop& stop) {
  RODEO_TRY(send(question));
  return receive(patience, stop);
}

Result<std::string> LineProcess::next_line(std::chrono::milliseconds patience, const Stop& stop) {
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
    if (n <= 0) return failed("it could not be started, or has ended");
    if (text_.size() > kLongestLine) return failed("it sends text without an end of line");
    text_.append(some.data(), static_cast<std::size_t>(n));
  }
}

}  // namespace rodeo::network::laboratory
