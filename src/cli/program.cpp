#include "cli/program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace rodeo::cli {

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
  pid_t child = 0;
  const int failed = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    return std::unexpected(Error{"cli.program", "cannot start " + arguments[0] + ": " + std::strerror(failed)});
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace rodeo::cli
