#include "storage/file_seal.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "formats/file_marks.h"

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
  const base::UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file) return failed(path, "cannot make the file", errno);
  Result<void> written = write_all(file.get(), bytes, path);
  if (written && ::fsync(file.get()) != 0) written = failed(path, "cannot write", errno);
  if (!written) ::unlink(path.c_str());
  return written;
}

Result<void> seal_event_file(DirectFile& file, const std::string& closed, std::size_t crc_offset, std::uint32_t crc) {
  const auto digits = crc_digits(crc);
  int error = file.patch(crc_offset, std::as_bytes(std::span(digits)));
  if (error == 0 && ::fsync(file.descriptor()) != 0) error = errno;
  if (error != 0) return failed(file.path(), "cannot close the file", error);
  return rename_new(file.path(), closed);
}

Result<void> flush_directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const base::UniqueFd opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened) return failed(directory, "cannot open the directory", errno);
  // Some file systems cannot flush directories (EINVAL); there is no better guarantee for the rename there.
  if (::fsync(opened.get()) != 0 && errno != EINVAL) return failed(directory, "cannot flush the directory", errno);
  return {};
}

}  // namespace rodeo::storage
