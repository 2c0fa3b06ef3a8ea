// An index beside a data file: what the file is by its size and last change, and how an index gets to its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace rodeo::storage {

/// "run._0001.data.index", beside the file.
std::string index_path(const std::string& path);

/// Once one of these has changed the file is another.
struct FileState {
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;  ///< since 1970

  bool operator==(const FileState&) const = default;
};

/// Of the file that has this name now.
std::optional<FileState> state_of(const std::string& path);

/// Puts an index beside `path`, whole or not at all, in the place of one that is there. False where the directory takes no file. Any thread.
bool put_index(const std::string& path, std::span<const std::byte> index);

}  // namespace rodeo::storage
