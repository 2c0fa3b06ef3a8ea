// The index beside a data file: it identifies the file by size and last change, and is written in one step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace rodeo::storage {

/// The name of the index beside the file: "run._0001.data.index".
std::string index_path(const std::string& path);

/// The state of a file. If a member changes, the file counts as another file.
struct FileState {
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;  ///< time of the last change, since 1970

  bool operator==(const FileState&) const = default;
};

/// The state of the file that now has this name.
std::optional<FileState> state_of(const std::string& path);

/// Writes an index beside `path` and replaces an existing one. An index is never written in part. False if it cannot be
/// written. Any thread.
bool put_index(const std::string& path, std::span<const std::byte> index);

}  // namespace rodeo::storage
