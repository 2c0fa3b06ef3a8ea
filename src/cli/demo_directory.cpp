#include "cli/demo_directory.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <expected>
#include <system_error>

#include "base/error.h"
#include "base/lock_file.h"

namespace rodeo::cli {
namespace {

constexpr const char* kTransient = "run-";

/// The time to wait while other demos remove large leftovers.
constexpr std::chrono::minutes kTurn{1};

/// The lock file of a directory, held. The error is an errno.
std::expected<base::LockFile, int> lock_of(const std::filesystem::path& directory, std::chrono::milliseconds patience) {
  return base::LockFile::acquire(directory / "lock", base::LockedPart::whole(), patience);
}

/// Removes directories of earlier demos. Failures are ignored: it is only a cache.
void remove_earlier(const std::filesystem::path& root) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(root, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (!entry->is_directory(ignored) || entry->is_symlink(ignored) ||
        !entry->path().filename().native().starts_with(kTransient))
      continue;
    if (const auto lock = lock_of(entry->path(), {})) std::filesystem::remove_all(entry->path(), ignored);
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
  // Only one demo at a time removes and creates directories: a new directory without a lock looks like a leftover.
  if (const auto turn = error ? std::unexpected(error.value()) : lock_of(root, kTurn)) {
    remove_earlier(root);
    std::filesystem::create_directory(path_, error);
    auto lock = error ? std::unexpected(error.value()) : lock_of(path_, {});
    if (lock) lock_ = lock->release();
    if (!lock) error = std::error_code(lock.error(), std::generic_category());
  } else {
    error = std::error_code(turn.error(), std::generic_category());
  }
  if (error) {
    throw SetupError({"demo.directory", fmt::format("cannot make a directory for the demo's files: {}", error.message()),
                      path_, "set XDG_CACHE_HOME to a directory that you may write to"});
  }
}

std::uintmax_t DemoDirectory::free_bytes() const {
  std::error_code error;
  const auto space = std::filesystem::space(path_, error);
  return error ? 0 : space.available;
}

}  // namespace rodeo::cli
