#include "storage/index_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

#include <fmt/format.h>

#include "storage/file_seal.h"

namespace rodeo::storage {

std::string index_path(const std::string& path) { return path + ".index"; }

std::optional<FileState> state_of(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  constexpr std::int64_t kSecond = 1'000'000'000;
  return FileState{.bytes = static_cast<std::uint64_t>(status.st_size),
                   .modified_ns = status.st_mtim.tv_sec * kSecond + status.st_mtim.tv_nsec};
}

bool put_index(const std::string& path, std::span<const std::byte> index) {
  static std::atomic<unsigned> number = 0;  // gives each thread of a process its own name
  const std::string name = index_path(path);
  const std::string unfinished = fmt::format("{}.{}-{}", name, ::getpid(), ++number);
  if (!write_file(unfinished, index)) return false;
  // An existing index is stale: this one replaces it.
  if (::rename(unfinished.c_str(), name.c_str()) == 0) return true;
  ::unlink(unfinished.c_str());
  return false;
}

}  // namespace rodeo::storage
