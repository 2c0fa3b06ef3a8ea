// A Python function that says of each event whether it is wanted: it runs in a process of its own, which reads the same files.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "base/child_process.h"
#include "base/error.h"
#include "base/fd_socket.h"
#include "storage/file_filter.h"

namespace rodeo::cli {

/// Its answers come in the order of the events, file by file. One thread.
class PythonJudge {
 public:
  /// `function`: "FILE.py" (its function `keep`) or "FILE.py:NAME". `hang`: an event that takes it longer has timed out. Errors: cli.python,
  /// data.function.
  static Result<PythonJudge> start(const std::string& function, const std::vector<std::string>& files,
                                   std::chrono::nanoseconds hang);

  /// What it says of the next event; waits for it. Error data.function: it has failed, and has said on stderr why; or it hangs where Python cannot
  /// interrupt it, and is ended.
  Result<storage::Wanted> next();

 private:
  PythonJudge(base::ChildProcess process, base::UniqueFd answers, std::chrono::nanoseconds hang)
      : process_(std::move(process)), answers_(std::move(answers)), hang_(hang), read_(64 << 10) {}

  Result<void> read_more();

  base::ChildProcess process_;
  base::UniqueFd answers_;
  std::chrono::nanoseconds hang_;
  bool began_ = false;
  std::vector<char> read_;
  std::size_t at_ = 0;
  std::size_t end_ = 0;
};

}  // namespace rodeo::cli
