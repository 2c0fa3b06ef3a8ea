#include "storage/event_file_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace rodeo::storage {

using namespace formats;

namespace {

std::unexpected<Error> failed(const std::string& path, const std::string& what, int error) {
  const std::string next = error == ENOSPC ? "free space on this file system or name another directory" : "";
  return std::unexpected(Error{"file.write", what + ": " + std::strerror(error), path, next});
}

Result<void> write_all(int fd, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failed(path, "cannot write", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Result<void> flush_directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return failed(directory, "cannot open the directory", errno);
  // Some file systems cannot flush directories (EINVAL); there the rename is as safe as it gets.
  const int error = ::fsync(fd) != 0 && errno != EINVAL ? errno : 0;
  ::close(fd);
  if (error != 0) return failed(directory, "cannot flush the directory", error);
  return {};
}

}  // namespace

Result<void> rename_new(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return {};
  int error = errno;
  if (error == EINVAL || error == ENOSYS) {
    error = ::access(to.c_str(), F_OK) == 0 ? EEXIST : ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
  }
  if (error == 0) return {};
  if (error == EEXIST) return std::unexpected(Error{"file.exists", "is there already", to, "the data stay in " + from});
  return failed(from, "cannot rename the file to " + to, error);
}

Result<void> write_file(const std::string& path, std::span<const std::byte> bytes) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return failed(path, "cannot make the file", errno);
  Result<void> written = write_all(fd, bytes, path);
  if (written && ::fsync(fd) != 0) written = failed(path, "cannot write", errno);
  ::close(fd);
  if (!written) ::unlink(path.c_str());
  return written;
}

Result<void> seal_event_file(const std::string& writing, const std::string& closed, std::size_t crc_offset,
                             std::uint32_t crc) {
  const int fd = ::open(writing.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return failed(writing, "cannot open the file", errno);
  const auto digits = crc_digits(crc);
  const bool written =
      ::pwrite(fd, digits.data(), digits.size(), static_cast<off_t>(crc_offset)) == static_cast<ssize_t>(digits.size());
  const int error = !written || ::fsync(fd) != 0 ? errno : 0;
  ::close(fd);
  if (error != 0) return failed(writing, "cannot close the file", error);
  if (auto renamed = rename_new(writing, closed); !renamed) return renamed;
  return flush_directory_of(closed);
}

EventFileWriter::EventFileWriter(std::string directory, EventFileSettings settings, std::function<std::time_t()> clock)
    : directory_(std::move(directory)), encoder_(std::move(settings)), clock_(std::move(clock)) {}

EventFileWriter::~EventFileWriter() {
  if (fd_ >= 0) ::close(fd_);
}

void EventFileWriter::discard() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  if (std::exchange(unsealed_, false)) ::unlink(path_of(encoder_.writing_name()).c_str());
}

Result<void> EventFileWriter::put(std::span<const std::byte> bytes) {
  digest_.update(bytes);
  return write_all(fd_, bytes, path_of(encoder_.writing_name()));
}

Result<void> EventFileWriter::open_file() {
  const auto header = encoder_.begin_file(clock_(), make_guid());
  const std::string path = path_of(encoder_.writing_name());
  const std::string closed = path_of(encoder_.file_name());
  if (::access(closed.c_str(), F_OK) == 0) {
    return std::unexpected(
        Error{"file.exists", "is there already", closed, "remove it or name another directory or run number"});
  }
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd_ < 0 && errno == EEXIST) {
    return std::unexpected(Error{"file.exists", "is there already, left by a writer that did not close it", path,
                                 "save its events: rodeo data recover " + path});
  }
  if (fd_ < 0) return failed(path, "cannot make the file", errno);
  unsealed_ = true;
  digest_ = {};
  return put(header);
}

Result<void> EventFileWriter::close_file(bool last) {
  if (auto done = put(encoder_.end_file(clock_(), last)); !done) return done;
  ::close(std::exchange(fd_, -1));
  const std::string closed = path_of(encoder_.file_name());
  if (auto done = seal_event_file(path_of(encoder_.writing_name()), closed, encoder_.crc_offset(), digest_.crc32()); !done) {
    return done;
  }
  unsealed_ = false;
  files_.push_back(
      {closed, encoder_.file_bytes(), encoder_.blocks_in_file(), digest_.adler32_when_sealed(encoder_.crc_offset())});
  return {};
}

Result<void> EventFileWriter::add(std::span<const std::byte> event) {
  if (fd_ >= 0 && encoder_.must_roll_over(event.size())) {
    if (auto done = close_file(false); !done) return done;
  }
  if (fd_ < 0) {
    if (auto done = open_file(); !done) return done;
  }
  if (auto done = put(encoder_.separator(static_cast<std::uint32_t>(event.size()))); !done) return done;
  return put(event);
}

Result<void> EventFileWriter::close() {
  if (fd_ < 0) {
    if (!files_.empty()) return {};
    if (auto done = open_file(); !done) return done;
  }
  return close_file(true);
}

}  // namespace rodeo::storage
