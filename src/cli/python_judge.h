// A Python function that decides for each event whether to keep it. It runs in its own process, which reads the same files.
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

/// The answers come in the order of the events, file by file. One thread.
class PythonJudge {
 public:
  /// `function`: "FILE.py" (its function `keep`) or "FILE.py:NAME". `hang`: time limit for one event. Errors: cli.python,
  /// data.function.
  static Result<PythonJudge> start(const std::string& function, const std::vector<std::string>& files,
                                   std::chrono::nanoseconds hang);

  /// Waits for the answer to the next event. Error data.function: the function failed, with the reason on stderr; or it hung
  /// where Python cannot interrupt it, and was killed.
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
