#include "base/runtime_dir.h"

#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include <fmt/format.h>

namespace rodeo::base {
namespace {

constexpr const char* kNext = "set RODEO_RUNTIME_DIR to a directory of your own";

Error refused(const std::filesystem::path& directory, std::string why) {
  return Error{"base.runtime_dir", fmt::format("cannot use the runtime directory: {}", why), directory.string(), kNext};
}

/// A session's directory that is missing or belongs to another user (`sudo` keeps the variable) is not used.
bool is_own_directory(const char* path) {
  struct stat found{};
  return ::stat(path, &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == ::geteuid();
}

}  // namespace

std::filesystem::path runtime_directory_name() {
  if (const char* own = std::getenv("RODEO_RUNTIME_DIR"); own != nullptr && *own != '\0') return own;
  if (const char* xdg = std::getenv("XDG_RUNTIME_DIR"); xdg != nullptr && is_own_directory(xdg))
    return std::filesystem::path(xdg) / "rodeo";
  return fmt::format("/tmp/rodeo-{}", ::geteuid());
}

Result<std::filesystem::path> runtime_directory() {
  std::filesystem::path directory = runtime_directory_name();
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return std::unexpected(refused(directory, std::strerror(errno)));
  }
  struct stat found{};
  if (::lstat(directory.c_str(), &found) != 0) return std::unexpected(refused(directory, std::strerror(errno)));
  if (!S_ISDIR(found.st_mode)) return std::unexpected(refused(directory, "it is not a directory"));
  if (found.st_uid != ::geteuid()) {
    return std::unexpected(refused(directory, fmt::format("it belongs to user {}, not to you", found.st_uid)));
  }
  if ((found.st_mode & 0022) != 0) {
    return std::unexpected(refused(directory, fmt::format("others may write to it (mode {:04o})", found.st_mode & 07777)));
  }
  return directory;
}

Result<std::filesystem::path> runtime_socket(std::string_view file_name) {
  if (file_name.empty() || file_name.find('/') != std::string_view::npos) {
    return std::unexpected(Error{"base.runtime_dir",
                                 fmt::format("`{}` cannot be the name of a socket", file_name),
                                 {},
                                 "use a name without a slash"});
  }
  Result<std::filesystem::path> directory = runtime_directory();
  if (!directory) return directory;
  std::filesystem::path path = *directory / file_name;
  if (path.native().size() >= sizeof(sockaddr_un::sun_path)) {
    constexpr std::size_t kLongest = sizeof(sockaddr_un::sun_path) - 1;
    const std::size_t around = path.native().size() - path.stem().native().size();
    const std::string what =
        fmt::format("a socket's path has at most {} characters, and this one has {}", kLongest, path.native().size());
    if (around >= kLongest) return std::unexpected(refused(path, what));
    return std::unexpected(Error{
        "base.runtime_dir", fmt::format("the name `{}` is too long: {}", path.stem().native(), what), path.string(),
        fmt::format("in this directory a name has at most {} characters; a shorter RODEO_RUNTIME_DIR leaves room for more",
                    kLongest - around)});
  }
  return path;
}

}  // namespace rodeo::base
