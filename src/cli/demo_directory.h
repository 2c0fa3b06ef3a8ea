// Where a demo leaves its files: one directory a demo, under the user's cache, removed by the next demo unless it is to be kept.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/fd_socket.h"

namespace rodeo::cli {

class DemoDirectory {
 public:
  /// Makes an empty directory of its own and removes those of earlier demos that nobody uses and nobody wanted to keep.
  /// Throws SetupError: demo.directory.
  explicit DemoDirectory(bool keep);

  DemoDirectory(const DemoDirectory&) = delete;
  DemoDirectory& operator=(const DemoDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// Where the demo's publishers are found.
  std::filesystem::path bus() const { return path_ / "bus"; }

  /// Free bytes of the file system it lies on.
  std::uintmax_t free_bytes() const;

  /// $XDG_CACHE_HOME/rodeo/demo, else ~/.cache/rodeo/demo, else /tmp/rodeo-UID/demo.
  static std::filesystem::path root();

 private:
  std::filesystem::path path_;
  base::UniqueFd lock_;  ///< held while the demo runs, so that a demo beside it does not take its files away
};

}  // namespace rodeo::cli
