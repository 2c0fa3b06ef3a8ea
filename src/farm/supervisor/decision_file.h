// The file of decisions: 9 bytes a decision, appended before anybody is told that it is safe (docs/formats/assignments.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/fd_socket.h"
#include "dispatch/event.h"

namespace rodeo::farm {

/// What became of the events of a run, whichever life of its supervisor said so.
struct Decided {
  std::uint64_t accepted = 0;
  std::uint64_t rejected = 0;
  std::uint64_t debug = 0;
  std::uint64_t lost = 0;  ///< no readout had anything of them

  std::uint64_t all() const { return accepted + rejected + debug + lost; }
};

/// Counts each event of the file once: its first decision holds. Error farm.decisions: it cannot be read, or has what no supervisor writes.
Result<Decided> read_decisions(const std::filesystem::path& path);

/// One thread.
class DecisionFile {
 public:
  static constexpr std::size_t kRecordBytes = 9;

  /// Appends to what is there, after the last whole record. An empty path: nothing is kept. Throws SetupError: farm.decisions.
  explicit DecisionFile(const std::filesystem::path& path);

  void add(std::uint64_t id, dispatch::Verdict verdict);
  /// Writes what was added. An error is told once; what could not be written is tried again with the next.
  Result<void> flush();
  bool in_use() const { return static_cast<bool>(file_); }
  /// Everything that was added is in the file, or there is none.
  bool written() const { return waiting_.empty(); }

 private:
  std::filesystem::path path_;
  base::UniqueFd file_;
  std::vector<std::byte> waiting_;
};

}  // namespace rodeo::farm
