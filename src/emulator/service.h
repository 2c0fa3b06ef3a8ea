// The emulator as a process: requests to its triggers and cards, its report and view.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/emulator.h"
#include "process/service.h"

namespace rodeo::emulator {

using settings::Json;

/// Says whether triggers wait, and for what. They wait if triggers were offered since the last accepted one.
class WatchedTriggers {
 public:
  std::vector<process::WatchedPart> parts(const trigger::TriggerReport& trigger);

 private:
  std::uint64_t accepted_ = 0;
  std::uint64_t offered_ = 0;  ///< offered triggers when the last one was accepted
};

/// Its cards live over many runs, and so do their counters.
class EmulatorService final : public process::Service {
 public:
  explicit EmulatorService(EmulatorSettings settings);

  void prepare() override;
  void start() override {}
  void step() override;
  std::chrono::milliseconds pause() const override { return emulator_->next_poll(); }
  void stop() override { phase_ = std::max(phase_, process::Phase::draining); }
  /// As of the last status(). Cards serve as soon as they exist; they run while a reader takes their data.
  process::Phase phase() const override { return phase_; }
  double seconds(double) const override { return emulator_->seconds(); }
  Report conclude(bool aborted) override;

  Json status(const Json& request) override;
  std::string_view commands() const override { return ", fault, trigger_hold, trigger_release, trigger_advance"; }
  std::optional<Result<Json>> command(const std::string& command, const Json& request) override;
  std::vector<process::WatchedPart> watched() override { return triggers_.parts(emulator_->report().trigger); }
  std::vector<std::string> view_lines(double seconds, process::ViewStyle style) override;
  std::string view_line(double seconds) override;

 private:
  EmulatorSettings settings_;
  std::unique_ptr<Emulator> emulator_;
  WatchedTriggers triggers_;
  EmulatorReport viewed_;  // the report that the last view showed
  process::Phase phase_ = process::Phase::ready;
};

}  // namespace rodeo::emulator
