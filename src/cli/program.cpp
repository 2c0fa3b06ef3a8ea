#include "cli/program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace rodeo::cli {
namespace {

// What a program is asked to do while another runs for it, that one does.
volatile std::sig_atomic_t running_program = 0;
volatile std::sig_atomic_t asked_to_end = 0;

void pass_on(int signal) {
  asked_to_end = 1;
  if (running_program != 0) kill(static_cast<pid_t>(running_program), signal);
}

}  // namespace

std::filesystem::path command_directory() { return std::filesystem::read_symlink("/proc/self/exe").parent_path(); }

std::optional<std::filesystem::path> find_beside(std::initializer_list<const char*> candidates) {
  std::error_code ignored;
  for (const char* candidate : candidates) {
    std::filesystem::path path = (command_directory() / candidate).lexically_normal();
    if (std::filesystem::exists(path, ignored)) return path;
  }
  return std::nullopt;
}

Result<int> run_program(const std::vector<std::string>& arguments, bool quiet) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (quiet) {
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  }
  // Ctrl-C is for the program, which says what became of it; we wait for that, as system(3) does.
  struct sigaction ignore{};
  ignore.sa_handler = SIG_IGN;
  struct sigaction interrupt{};
  struct sigaction quit{};
  sigaction(SIGINT, &ignore, &interrupt);
  sigaction(SIGQUIT, &ignore, &quit);
  // An end that is asked of us alone is passed on; what is ignored stays so.
  struct sigaction pass{};
  pass.sa_handler = pass_on;
  struct sigaction terminate{};
  sigaction(SIGTERM, nullptr, &terminate);
  asked_to_end = 0;
  if (terminate.sa_handler != SIG_IGN) sigaction(SIGTERM, &pass, nullptr);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  if (interrupt.sa_handler != SIG_IGN) sigaddset(&defaults, SIGINT);
  if (quit.sa_handler != SIG_IGN) sigaddset(&defaults, SIGQUIT);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failed == 0) running_program = child;
  if (failed == 0 && asked_to_end != 0) kill(child, SIGTERM);
  int status = 0;
  while (failed == 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  running_program = 0;
  sigaction(SIGINT, &interrupt, nullptr);
  sigaction(SIGQUIT, &quit, nullptr);
  sigaction(SIGTERM, &terminate, nullptr);
  if (failed != 0) {
    return std::unexpected(Error{"cli.program", "cannot start " + arguments[0] + ": " + std::strerror(failed)});
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace rodeo::cli
