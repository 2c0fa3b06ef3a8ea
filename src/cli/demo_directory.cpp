#include "cli/demo_directory.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <system_error>

#include "base/error.h"

namespace rodeo::cli {
namespace {

constexpr const char* kTransient = "run-";

/// The lock file of a directory, held, or -1 with errno; `wait` is LOCK_NB or 0.
int lock_of(const std::filesystem::path& directory, int wait) {
  const int fd = ::open((directory / "lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0 && ::flock(fd, LOCK_EX | wait) != 0) {
    const int error = errno;
    ::close(fd);
    errno = error;
    return -1;
  }
  return fd;
}

/// Removes what earlier demos left. What cannot be removed stays; it is only a cache.
void remove_earlier(const std::filesystem::path& root) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(root, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (!entry->is_directory(ignored) || entry->is_symlink(ignored) ||
        !entry->path().filename().native().starts_with(kTransient))
      continue;
    const int lock = lock_of(entry->path(), LOCK_NB);
    if (lock < 0) continue;
    std::filesystem::remove_all(entry->path(), ignored);
    ::close(lock);
  }
}

}  // namespace

std::filesystem::path DemoDirectory::root() {
  const auto variable = [](const char* name) -> std::filesystem::path {
    const char* value = std::getenv(name);
    return value == nullptr ? std::filesystem::path{} : std::filesystem::path(value);
  };
  if (const auto cache = variable("XDG_CACHE_HOME"); cache.is_absolute()) return cache / "rodeo" / "demo";
  if (const auto home = variable("HOME"); home.is_absolute()) return home / ".cache" / "rodeo" / "demo";
  return std::filesystem::path("/tmp") / fmt::format("rodeo-{}", ::getuid()) / "demo";
}

DemoDirectory::DemoDirectory(bool keep) {
  const std::filesystem::path root = DemoDirectory::root();
  path_ = root / (keep ? fmt::format("kept-{:%Y%m%d-%H%M%S}-{}", fmt::localtime(std::time(nullptr)), ::getpid())
                       : fmt::format("{}{}", kTransient, ::getpid()));
  std::error_code error;
  std::filesystem::create_directories(root, error);
  // One demo at a time clears and makes: a directory that has no lock yet looks like one that was left.
  const int turn = error ? -1 : lock_of(root, 0);
  if (turn >= 0) {
    remove_earlier(root);
    std::filesystem::create_directory(path_, error);
    if (!error) lock_ = lock_of(path_, LOCK_NB);
  }
  if (!error && lock_ < 0) error = std::error_code(errno, std::generic_category());
  if (turn >= 0) ::close(turn);
  if (error) {
    throw SetupError({"demo.directory", fmt::format("cannot make a directory for the demo's files: {}", error.message()),
                      path_, "set XDG_CACHE_HOME to a directory that you may write to"});
  }
}

DemoDirectory::~DemoDirectory() {
  if (lock_ >= 0) ::close(lock_);
}

std::uintmax_t DemoDirectory::free_bytes() const {
  std::error_code error;
  const auto space = std::filesystem::space(path_, error);
  return error ? 0 : space.available;
}

}  // namespace rodeo::cli
