#include "base/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <thread>

#include "base/fd_socket.h"

namespace rodeo::base {
namespace {

std::unexpected<Error> failed(const std::string& what, int error) {
  return std::unexpected(Error{"base.process", "cannot start " + what + ": " + std::strerror(error)});
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> list;
  for (const std::string& word : words) list.push_back(const_cast<char*>(word.c_str()));
  list.push_back(nullptr);
  return list;
}

/// False if the parent ended before the signal was set.
bool end_with(pid_t parent, int signal) {
  if (signal == 0) return true;
  ::prctl(PR_SET_PDEATHSIG, signal);
  return ::getppid() == parent;
}

/// Runs in the child: system calls only. Returns only if exec failed.
void become(const ChildProcess::Settings& settings, char* const* arguments, char* const* environment, pid_t parent) {
  if (!end_with(parent, settings.when_we_end)) ::_exit(1);
  for (const int number : {SIGPIPE, SIGXFSZ}) ::signal(number, SIG_DFL);  // the program must not inherit our ignored signals
  if (settings.first && !settings.first()) return;
  std::array<int, 3> given{settings.in, settings.out, settings.err};
  // If standard streams are closed, a given descriptor may have one of their numbers: exec would close it, or an earlier
  // dup2 would overwrite it.
  for (int& fd : given) {
    if (fd < 0 || fd > STDERR_FILENO) continue;
    fd = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (fd < 0) return;
  }
  for (int i = 0; i < 3; ++i) {
    if (given[static_cast<std::size_t>(i)] >= 0 && ::dup2(given[static_cast<std::size_t>(i)], i) < 0) return;
  }
  ::execvpe(arguments[0], arguments, environment);
}

}  // namespace

Result<ChildProcess> ChildProcess::start(const Settings& settings) {
  std::vector<std::string> variables = settings.environment;
  for (char** one = environ; *one != nullptr; ++one) variables.emplace_back(*one);
  const std::vector<char*> arguments = pointers(settings.command);
  const std::vector<char*> environment = pointers(variables);
  // exec closes it; if exec fails, the child writes the reason into it.
  auto [said, says] = RODEO_TRY(make_pipe());
  const pid_t parent = ::getpid();
  ChildProcess child;
  child.pid_ = ::fork();
  if (child.pid_ < 0) return failed(settings.command[0], errno);
  if (child.pid_ == 0) {
    become(settings, arguments.data(), environment.data(), parent);
    const int error = errno;
    (void)!::write(says.get(), &error, sizeof error);
    ::_exit(127);
  }
  says.reset();
  int error = 0;
  ssize_t got = 0;
  while ((got = ::read(said.get(), &error, sizeof error)) < 0 && errno == EINTR) {
  }
  if (got == sizeof error) return failed(settings.command[0], error);
  return child;
}

Result<ChildProcess> ChildProcess::fork(const std::function<void()>& work) {
  const pid_t parent = ::getpid();
  ChildProcess child;
  child.pid_ = ::fork();
  if (child.pid_ < 0) return failed("a process", errno);
  if (child.pid_ == 0) {
    if (!end_with(parent, SIGKILL)) ::_exit(1);
    try {
      work();
    } catch (const std::exception&) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  return child;
}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(status_, other.status_);
  return *this;
}

ChildProcess::~ChildProcess() {
  signal(SIGKILL);
  wait();
}

void ChildProcess::signal(int number) const {
  if (pid_ > 0) ::kill(pid_, number);
}

/// True: the child has ended.
bool ChildProcess::reap(int options) {
  if (pid_ < 0) return true;
  int status = 0;
  pid_t ended = 0;
  while ((ended = ::waitpid(pid_, &status, options)) < 0 && errno == EINTR) {
  }
  if (ended == 0) return false;
  if (ended > 0) status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  pid_ = -1;
  return true;
}

std::optional<int> ChildProcess::wait(std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!reap(WNOHANG)) {
    if (std::chrono::steady_clock::now() >= deadline) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  }
  return status_;
}

int ChildProcess::wait() {
  reap(0);
  return status_;
}

}  // namespace rodeo::base
