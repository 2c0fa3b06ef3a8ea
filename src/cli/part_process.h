// `rodeo emulate` or `rodeo route` as a child process. The command that needs it starts, awaits and ends it.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/child_process.h"

namespace rodeo::cli {

/// The constructor starts the process, the destructor ends it. It also ends if this process dies. One thread.
class PartProcess {
 public:
  struct Settings {
    std::vector<std::string> command;         ///< {"emulate", FILE}
    std::vector<std::string> overrides = {};  ///< KEY=VALUE
    std::filesystem::path log;                ///< file for its stdout and stderr
    std::function<bool()> there;              ///< true once the process is ready
    std::string lack;                         ///< begins the error text: "no emulated card"
  };

  /// Waits until the process is ready. Throws SetupError: cli.part (it could not be started, or ended at once; includes its
  /// output).
  explicit PartProcess(Settings settings);
  ~PartProcess();
  PartProcess(PartProcess&&) = delete;

  /// True if the process has ended; waits up to `patience`.
  bool ended(std::chrono::milliseconds patience = {}) { return process_.wait(patience).has_value(); }
  /// Ends the process in order; after five seconds by force. No effect if it has ended.
  void stop();

 private:
  std::string said() const;
  [[noreturn]] void fail(const std::string& what);

  Settings settings_;
  base::ChildProcess process_;
};

}  // namespace rodeo::cli
