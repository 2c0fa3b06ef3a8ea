// The directory of a demo's files, under the user's cache. The next demo removes it unless it is to be kept.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/fd_socket.h"

namespace rodeo::cli {

class DemoDirectory {
 public:
  /// Makes a new empty directory. Removes those of earlier demos that are neither in use nor to be kept.
  /// Throws SetupError: demo.directory.
  explicit DemoDirectory(bool keep);

  DemoDirectory(const DemoDirectory&) = delete;
  DemoDirectory& operator=(const DemoDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// The bus directory of the demo's publishers.
  std::filesystem::path bus() const { return path_ / "bus"; }

  /// Free bytes of its file system.
  std::uintmax_t free_bytes() const;

  /// $XDG_CACHE_HOME/rodeo/demo, else ~/.cache/rodeo/demo, else /tmp/rodeo-UID/demo.
  static std::filesystem::path root();

 private:
  std::filesystem::path path_;
  base::UniqueFd lock_;  ///< held while the demo runs, so that no other demo removes its files
};

}  // namespace rodeo::cli
