#include "cli/program.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>

#include "base/child_process.h"
#include "base/fd_socket.h"

namespace rodeo::cli {
namespace {

// Signals to this process are passed on to the program that it runs.
volatile std::sig_atomic_t running_program = 0;
volatile std::sig_atomic_t asked_to_end = 0;

void pass_on(int signal) {
  asked_to_end = 1;
  if (running_program != 0) kill(static_cast<pid_t>(running_program), signal);
}

}  // namespace

std::filesystem::path own_executable() {
  constexpr const char* kLink = "/proc/self/exe";
  std::error_code failed;
  std::filesystem::path path = std::filesystem::read_symlink(kLink, failed);
  if (failed)
    throw SetupError({"base.resources", "cannot find the path of this program: " + failed.message(), kLink,
                      "mount /proc: mount -t proc proc /proc"});
  return path;
}

std::filesystem::path command_directory() { return own_executable().parent_path(); }

std::filesystem::path rodeo_command() { return command_directory() / "rodeo"; }

std::optional<std::filesystem::path> find_beside(std::initializer_list<const char*> candidates) {
  std::error_code ignored;
  for (const char* candidate : candidates) {
    std::filesystem::path path = (command_directory() / candidate).lexically_normal();
    if (std::filesystem::exists(path, ignored)) return path;
  }
  return std::nullopt;
}

Result<int> run_program(const std::vector<std::string>& arguments, bool quiet) {
  // Ctrl-C goes to the program, which reports its end; this process waits for it, as system(3) does.
  struct sigaction ignore{};
  ignore.sa_handler = SIG_IGN;
  struct sigaction interrupt{};
  struct sigaction quit{};
  sigaction(SIGINT, &ignore, &interrupt);
  sigaction(SIGQUIT, &ignore, &quit);
  // Pass on a SIGTERM to this process alone; an ignored SIGTERM stays ignored.
  struct sigaction pass{};
  pass.sa_handler = pass_on;
  struct sigaction terminate{};
  sigaction(SIGTERM, nullptr, &terminate);
  asked_to_end = 0;
  if (terminate.sa_handler != SIG_IGN) sigaction(SIGTERM, &pass, nullptr);
  const base::UniqueFd nowhere(quiet ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1);
  auto child = base::ChildProcess::start(
      {.command = arguments, .out = nowhere.get(), .err = nowhere.get(), .when_we_end = 0, .first = [&] {
         sigaction(SIGINT, &interrupt, nullptr);
         sigaction(SIGQUIT, &quit, nullptr);
         return true;
       }});
  if (child) running_program = child->pid();
  if (child && asked_to_end != 0) child->signal(SIGTERM);
  const int status = child ? child->wait() : 0;
  running_program = 0;
  sigaction(SIGINT, &interrupt, nullptr);
  sigaction(SIGQUIT, &quit, nullptr);
  sigaction(SIGTERM, &terminate, nullptr);
  if (!child) return std::unexpected(Error{"cli.program", child.error().what});
  return status;
}

}  // namespace rodeo::cli
