#include "base/lock_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

namespace rodeo::base {
namespace {

/// Returns 0 or the errno.
int try_lock(int file, const LockedPart& part) {
  if (!part.bytes) return ::flock(file, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
  struct flock range{};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = part.first;
  range.l_len = part.count;
  if (::fcntl(file, F_OFD_SETLK, &range) == 0) return 0;
  return errno == EACCES ? EAGAIN : errno;
}

}  // namespace

bool is_named(int file, const std::filesystem::path& path) {
  struct stat here{};
  struct stat there{};
  return ::fstat(file, &here) == 0 && ::lstat(path.c_str(), &there) == 0 && here.st_dev == there.st_dev &&
         here.st_ino == there.st_ino;
}

std::expected<LockFile, int> LockFile::acquire(const std::filesystem::path& path, LockedPart part,
                                               std::chrono::milliseconds patience) {
  constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    UniqueFd file(::open(path.c_str(), kFlags | O_CREAT | O_EXCL, 0600));
    const bool made = static_cast<bool>(file);
    if (!made && errno == EEXIST) file.reset(::open(path.c_str(), kFlags));
    if (file) {
      const int error = try_lock(file.get(), part);
      if (error == 0 && is_named(file.get(), path)) return LockFile(path, std::move(file), made);
      if (error != 0 && error != EWOULDBLOCK && error != EINTR) return std::unexpected(error);
    } else if (errno != ENOENT || ::access(path.parent_path().c_str(), F_OK) != 0) {
      return std::unexpected(errno);
    }
    // Another process has the lock, or has just removed the file: retry, up to the limit.
    if (std::chrono::steady_clock::now() >= deadline) return std::unexpected(EWOULDBLOCK);
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
}

void LockFile::remove() const { ::unlink(path_.c_str()); }

}  // namespace rodeo::base
