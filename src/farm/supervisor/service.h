// A supervisor as a process: its report, view and metrics.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "farm/supervisor/configuration.h"
#include "farm/supervisor/supervisor.h"
#include "process/service.h"

namespace rodeo::farm {

using process::Phase;
using settings::Json;

/// The parts of the farm that wait, and what they wait for. Pure.
std::vector<process::WatchedPart> watched_parts(const SupervisorStatus& status);

class SupervisorService final : public process::Service {
 public:
  explicit SupervisorService(const SupervisorConfiguration& configuration);

  /// Puts its service on the bus.
  void prepare() override;
  void hold() override { phase_ = Phase::ready; }
  Result<void> set_run(std::uint32_t run_number, const Json&) override {
    run_number_ = run_number;
    return {};
  }
  void start() override;
  void step() override;
  void stop() override;
  void give_up() override { supervisor_->give_up(); }
  Phase phase() const override { return phase_; }
  Report conclude(bool aborted) override;

  Json status(const Json& request) override;
  std::vector<std::string> take_messages() override { return supervisor_->take_messages(); }
  std::vector<process::WatchedPart> watched() override { return watched_parts(shown_); }
  std::vector<std::string> view_lines(double seconds, process::ViewStyle style) override;
  std::string view_line(double seconds) override;
  std::function<std::string()> metrics() const override;

 private:
  process::Condition condition() const;
  Json report() const;

  const SupervisorSettings settings_;
  std::unique_ptr<Supervisor> supervisor_;
  Phase phase_ = Phase::prepared;
  std::uint32_t run_number_;
  SupervisorStatus shown_;
  SupervisorStatus viewed_;
  double viewed_s_ = 0;
};

}  // namespace rodeo::farm
