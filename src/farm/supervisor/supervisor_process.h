// A supervisor as a process: its report, view and metrics.
#pragma once

#include <string>
#include <vector>

#include "farm/run/farm_process.h"
#include "farm/supervisor/supervisor.h"

namespace rodeo::farm {

/// The parts of the farm that wait, and what they wait for. Pure.
std::vector<process::WatchedPart> watched_parts(const SupervisorStatus& status);

class SupervisorProcess final : public FarmProcess {
 public:
  /// Puts its service on the bus. Throws SetupError.
  explicit SupervisorProcess(SupervisorSettings settings);

  std::string name() const override { return supervisor_.settings().name; }
  void start(std::uint32_t run_number) override;
  void stop() override;
  void give_up() override;
  void step() override;
  Phase phase() const override { return phase_; }
  Json report() const override;
  std::vector<std::string> take_messages() override { return supervisor_.take_messages(); }
  std::vector<process::WatchedPart> watched() const override { return watched_parts(shown_); }
  std::vector<std::string> view_lines(double seconds, process::ViewStyle style) override;
  std::string view_line(double seconds) override;

  process::Condition condition() const;
  const SupervisorStatus& shown() const { return shown_; }

 private:
  Supervisor supervisor_;
  Phase phase_ = Phase::prepared;
  SupervisorStatus shown_;
  SupervisorStatus viewed_;
  double viewed_s_ = 0;
};

/// Text format 0.0.4. Names and labels: docs/reference/metrics.md.
std::string prometheus_text(const SupervisorStatus& status);

/// A report as some lines of text for a terminal.
std::string supervisor_report_text(const Json& report);

}  // namespace rodeo::farm
