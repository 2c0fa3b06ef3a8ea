// The file of decisions: 9 bytes per decision, appended before a node learns that the decision is safe
// (docs/reference/formats/assignments.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/fd_socket.h"
#include "dispatch/event.h"

namespace rodeo::farm {

/// One thread.
class DecisionFile {
 public:
  static constexpr std::size_t kRecordBytes = 9;

  /// An empty path means no file.
  explicit DecisionFile(std::filesystem::path path) : path_(std::move(path)) {}

  /// Opens the file at the start of a run, and cuts an incomplete last record off. Throws SetupError farm.decisions.
  void open();

  void add(std::uint64_t id, dispatch::Verdict verdict);
  /// Writes what was added. After an error the next call writes the rest.
  Result<void> flush();
  /// True if everything that was added is in the file, and also without a file.
  bool written() const { return waiting_.empty(); }

 private:
  std::filesystem::path path_;
  base::UniqueFd file_;
  std::vector<std::byte> waiting_;
};

}  // namespace rodeo::farm
