// The software ROD as a process: an Application with the requests to it, its report, view and metrics.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "process/service.h"
#include "readout/application.h"
#include "readout/configuration.h"
#include "readout/run_report.h"

namespace rodeo::readout {

using settings::Json;

class ReadoutService final : public process::Service {
 public:
  struct Options {
    std::string build = {};                       ///< version and revision, for the files of the run
    std::optional<std::uint64_t> fragments = {};  ///< the input stops after this many; some more may follow
    /// Adds to a status what another process knows of the run (the emulator of its cards). `last`: the run has ended.
    std::function<void(ReadoutStatus&, bool last)> amend = {};
    /// Called once the run has ended and its files are closed. It adds to the JSON report, prints its findings on stderr,
    /// and returns false if the data did not verify. It may make the run's condition worse. One signal ends it.
    std::function<Result<bool>(RunReport&, Json&)> after = {};
  };

  /// The library of the configuration outlives this object. A run number 0: the process is held.
  ReadoutService(const ReadoutConfiguration& configuration, Options options);

  void prepare() override;
  void hold() override;
  Result<void> set_run(std::uint32_t number, const Json& request) override;
  void start() override;
  void step() override;
  void stop() override { application_->stop(); }
  bool stopping() const override { return application_->stopping(); }
  void give_up() override { application_->give_up(); }
  void fail(const std::string& why) override { application_->fail(why); }
  /// A readout that has not reached its publishers is ready, not running: data sent now would be lost.
  Phase phase() const override;
  double seconds(double) const override { return shown_.seconds; }
  Report conclude(bool aborted) override;

  Json status(const Json& request) override;
  std::string_view commands() const override { return ", link_remove, link_restore"; }
  std::optional<Result<Json>> command(const std::string& command, const Json& request) override;
  std::vector<std::string> take_messages() override { return application_->take_messages(); }
  std::vector<process::WatchedPart> watched() override;
  std::vector<std::string> view_lines(double seconds, process::ViewStyle style) override;
  std::string view_line(double seconds) override;
  std::function<std::string()> metrics() const override;

 private:
  const ReadoutSettings& settings() const { return application_ ? application_->settings() : settings_; }

  ReadoutSettings settings_;
  const base::ComponentRegistry& registry_;
  const Options options_;
  const bool numbered_;
  bool held_ = false;
  std::unique_ptr<Application> application_;
  ReadoutStatus shown_;
  ReadoutStatus viewed_;  // the status that the last view showed
};

}  // namespace rodeo::readout
