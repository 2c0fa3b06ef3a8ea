#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/mapping_guard.h"

namespace rodeo::base {

Result<MappedFile> MappedFile::open(const std::string& path, Access access) {
  const auto failed = [&](const char* code, std::string what, std::string next = {}) {
    return std::unexpected(Error{code, std::move(what), path, std::move(next)});
  };
  // Without O_NONBLOCK a pipe would wait here for its writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    const bool absent = errno == ENOENT || errno == ENOTDIR;
    return failed("file.open", std::string("cannot open the file: ") + std::strerror(errno),
                  absent
                      ? "name an existing file; relative names start at the working directory, in a configuration at its own"
                      : "name a file that you may read");
  }
  struct stat status{};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(fd);
    return S_ISDIR(status.st_mode) ? failed("file.not_regular", "is a directory, not a file",
                                            "name the files in it: " + path + (path.ends_with('/') ? "*" : "/*"))
                                   : failed("file.not_regular", "is not a regular file", "copy its data to a file first");
  }
  MappedFile file;
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size > 0) {
    void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
    if (address == MAP_FAILED) {
      const int error = errno;
      ::close(fd);
      return failed("file.map", std::string("cannot map the file: ") + std::strerror(error));
    }
    if (access == Access::sequential) ::madvise(address, size, MADV_SEQUENTIAL);
    file.bytes_ = {static_cast<const std::byte*>(address), size};
    file.path_ = path;
    file.guard_ = mapping_guard::watch(file.bytes_);
  }
  ::close(fd);
  return file;
}

void MappedFile::release_up_to(std::size_t offset) const {
  const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t whole = std::min(offset, bytes_.size()) / page * page;
  if (whole > 0) ::madvise(const_cast<std::byte*>(bytes_.data()), whole, MADV_DONTNEED);
}

Result<void> MappedFile::check() const {
  if (!mapping_guard::was_hit(guard_)) return {};
  return std::unexpected(Error{
      "file.shrunk", "the file became shorter while it was read, or the disk could not read it", path_,
      "let the program that writes the file end first; if the file is whole, look for disk errors in the kernel's log"});
}

MappedFile::~MappedFile() {
  mapping_guard::forget(guard_);
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace rodeo::base
