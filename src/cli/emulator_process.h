// An emulator as a process of one's own: `rodeo emulate` started, asked and ended by the command that needs cards.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/child_process.h"
#include "settings/json.h"

namespace rodeo::cli {

using settings::Json;

/// Starts it at construction and ends it at destruction; it also ends when this process does, however that happens. One thread.
class EmulatorProcess {
 public:
  struct Settings {
    std::filesystem::path configuration;      ///< with an [emulator] table
    std::vector<std::string> overrides = {};  ///< KEY=VALUE
    std::string name;                         ///< emulator.name, as the overrides make it
    std::filesystem::path log;                ///< what it says goes there
  };

  /// Waits until its cards are there. Throws SetupError: cli.emulator (it could not be started, or ended at once: what it said is
  /// repeated).
  explicit EmulatorProcess(Settings settings);
  ~EmulatorProcess();
  EmulatorProcess(EmulatorProcess&&) = delete;

  /// Its report as of now (docs/emulator.md).
  Result<Json> report() const;
  /// Ends it in order; after five seconds by force. Nothing if it has ended.
  void stop();

 private:
  [[noreturn]] void fail(const std::string& what);

  Settings settings_;
  base::ChildProcess process_;
};

}  // namespace rodeo::cli
