#include "storage/direct_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace rodeo::storage {
namespace {

// If space cannot be reserved, the free space is checked again after this many bytes.
constexpr std::uint64_t kLookBytes = 4 << 20;

base::UniqueFd open_new(const std::string& path, int flags) {
  return base::UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | flags, 0644));
}

}  // namespace

bool means_full(int error) { return error == ENOSPC || error == EDQUOT; }

Result<DirectFile> DirectFile::create(const std::string& path, const Settings& settings) {
  bool direct = settings.direct;
  base::UniqueFd fd = open_new(path, direct ? O_DIRECT : 0);
  if (!fd && direct && errno == EINVAL) {
    // The file system does not support O_DIRECT; Linux has created the file before it failed.
    ::unlink(path.c_str());
    direct = false;
    fd = open_new(path, 0);
  }
  if (!fd) {
    const int error = errno;
    return std::unexpected(Error{"readout.cannot_write", fmt::format("cannot make the file: {}", std::strerror(error)), path,
                                 error == EEXIST ? "files of this run exist here: choose another run number or directory"
                                                 : "name a directory that you may write to"});
  }
  return DirectFile(path, std::move(fd), direct, settings);
}

void DirectFile::use_cache() {
  ::fcntl(descriptor(), F_SETFL, ::fcntl(descriptor(), F_GETFL) & ~O_DIRECT);
  direct_ = false;
}

Room DirectFile::make_room(std::uint64_t bytes) {
  if (settings_.min_free_bytes < kKeptForRecord) bytes += kKeptForRecord - settings_.min_free_bytes;
  if (bytes <= reserved_) return can_reserve_ ? Room::reserved : Room::unknown;
  std::uint64_t most = ~std::uint64_t{0};
  if (can_reserve_ && settings_.min_free_bytes > 0) {
    const std::uint64_t wanted = bytes - reserved_ + settings_.min_free_bytes;
    const std::uint64_t free = free_bytes();
    if (free < wanted) return Room::full;
    most = free - wanted;
  }
  // A refused reservation may cost as much time as a successful one: after a refusal, only half the step is requested.
  while (can_reserve_) {
    const std::uint64_t ahead = std::min(step_, most) / kAlign * kAlign;
    const std::uint64_t target = (bytes + kAlign - 1) / kAlign * kAlign + ahead;
    if (::fallocate(descriptor(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(reserved_),
                    static_cast<off_t>(target - reserved_)) == 0) {
      reserved_ = target;
      return Room::reserved;
    }
    if (errno == EINTR) continue;
    can_reserve_ = means_full(errno);
    if (can_reserve_ && step_ == 0) return Room::full;
    step_ = step_ < kAlign ? 0 : step_ / 2;
  }
  return check_space(bytes);
}

Room DirectFile::check_space(std::uint64_t bytes) {
  struct stat file{};
  // Space that was reserved earlier counts as used, too.
  const std::uint64_t taken =
      ::fstat(descriptor(), &file) == 0 ? static_cast<std::uint64_t>(std::max(file.st_size, file.st_blocks * 512)) : 0;
  const std::uint64_t wanted = bytes - std::min(bytes, taken) + settings_.min_free_bytes;
  const std::uint64_t free = free_bytes();
  if (free < wanted) return Room::full;
  reserved_ = bytes + std::min(kLookBytes, free - wanted);
  return Room::unknown;
}

std::uint64_t DirectFile::free_bytes() const {
  struct statvfs disk{};
  return ::fstatvfs(descriptor(), &disk) == 0 ? std::uint64_t{disk.f_bavail} * disk.f_frsize : ~std::uint64_t{0};
}

DirectFile::Written DirectFile::write(std::span<const std::byte> block) {
  Written out;
  while (out.bytes < block.size()) {
    const ssize_t n =
        ::pwrite(descriptor(), block.data() + out.bytes, block.size() - out.bytes, static_cast<off_t>(written_));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EINVAL && direct_) {
      // open() accepted O_DIRECT but this write did not (an odd remainder after a short write): continue through the cache.
      use_cache();
      continue;
    }
    if (n <= 0) {
      out.error = n < 0 ? errno : ENOSPC;
      return out;
    }
    out.bytes += static_cast<std::size_t>(n);
    written_ += static_cast<std::uint64_t>(n);
  }
  if (!direct_) {
    // Start writing this block to the disk; wait for the previous one and drop it from the cache.
    const std::uint64_t start = written_ - block.size();
    ::sync_file_range(descriptor(), static_cast<off_t>(start), static_cast<off_t>(block.size()), SYNC_FILE_RANGE_WRITE);
    if (start > flushed_) {
      const int waited = ::sync_file_range(descriptor(), static_cast<off_t>(flushed_), static_cast<off_t>(start - flushed_),
                                           SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
      // The kernel reports a failed write-back once, to the first waiter: a later fsync() would not. Other errors concern
      // the hint, not the data.
      if (waited != 0 && (errno == EIO || means_full(errno))) return {.bytes = out.bytes, .error = errno, .earlier = true};
      ::posix_fadvise(descriptor(), static_cast<off_t>(flushed_), static_cast<off_t>(start - flushed_), POSIX_FADV_DONTNEED);
      flushed_ = start;
    }
  }
  return out;
}

void DirectFile::rewind_to(std::uint64_t offset) {
  written_ = offset;
  flushed_ = std::min(flushed_, offset);
}

int DirectFile::sync() {
  while (::fdatasync(descriptor()) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

int DirectFile::finish(std::uint64_t size) {
  if (direct_) use_cache();
  return ::ftruncate(descriptor(), static_cast<off_t>(size)) == 0 ? 0 : errno;
}

int DirectFile::patch(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(descriptor(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : ENOSPC;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
  return 0;
}

}  // namespace rodeo::storage
