// A part of the chain as a process of one's own: `rodeo emulate` or `rodeo route`, started, waited for and ended by the command that needs it.
#pragma once

#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/child_process.h"

namespace rodeo::cli {

/// Starts it at construction and ends it at destruction; it also ends when this process does, however that happens. One thread.
class PartProcess {
 public:
  struct Settings {
    std::vector<std::string> command;         ///< {"emulate", FILE}
    std::vector<std::string> overrides = {};  ///< KEY=VALUE
    std::filesystem::path log;                ///< what it says goes there
    std::function<bool()> there;              ///< it does its work
    std::string lack;                         ///< what there is not without it: "no emulated card"
  };

  /// Waits until it is there. Throws SetupError: cli.part (it could not be started, or ended at once: what it said is repeated).
  explicit PartProcess(Settings settings);
  ~PartProcess();
  PartProcess(PartProcess&&) = delete;

  /// Tells it to end in order, and does not wait.
  void tell_to_stop() const { process_.signal(SIGTERM); }
  /// It has ended; looks, or waits for so long.
  bool ended(std::chrono::milliseconds patience = {}) { return process_.wait(patience).has_value(); }
  /// Ends it in order; after five seconds by force. Nothing if it has ended.
  void stop();
  /// Ends it by force, at once.
  void kill() { process_ = {}; }
  /// The last line that it has said.
  std::string last_said() const;

 private:
  std::string said() const;
  [[noreturn]] void fail(const std::string& what);

  Settings settings_;
  base::ChildProcess process_;
};

}  // namespace rodeo::cli
