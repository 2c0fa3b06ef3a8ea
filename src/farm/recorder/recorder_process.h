// A recorder as a process: its service, the copies of its files to their target, report and view.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "farm/recorder/recorder_server.h"
#include "farm/recorder/storage_target.h"
#include "farm/run/farm_process.h"

namespace rodeo::farm {

class RecorderProcess final : public FarmProcess {
 public:
  /// The values that metrics show.
  struct Shown {
    RecorderStatus recorder;
    StorageTarget::Status target;
  };
  /// The parts of the recorder that wait, and what they wait for. Pure.
  static std::vector<process::WatchedPart> watched_parts(const Shown& shown);

  /// Listens on the network. Throws SetupError.
  explicit RecorderProcess(RecorderSettings settings);
  ~RecorderProcess() override;

  std::string name() const override { return settings_.name; }
  void start(std::uint32_t run_number) override;
  void stop() override;
  void give_up() override;
  void step() override;
  Phase phase() const override { return phase_; }
  Json report() const override;
  std::vector<std::string> take_messages() override;
  std::vector<process::WatchedPart> watched() const override { return watched_parts(shown_); }
  std::vector<std::string> view_lines(double seconds, process::ViewStyle style) override;
  std::string view_line(double seconds) override;
  /// For tests: `slow_disk` {"seconds": x} makes each write to the disk take that much longer.
  std::optional<Result<Json>> command(const std::string& command, const Json& request) override;

  process::Condition condition() const;
  Shown shown() const { return shown_; }

 private:
  const RecorderSettings settings_;
  RecorderServer server_;
  std::unique_ptr<StorageTarget> target_;
  Phase phase_ = Phase::prepared;
  std::uint64_t began_ns_ = 0;
  std::uint64_t ended_ns_ = 0;
  Shown shown_;
  RecorderStatus viewed_;  // The status that the last view showed.
  double viewed_s_ = 0;
  std::size_t files_seen_ = 0;
  std::string trouble_told_;
  std::vector<std::string> messages_;
};

/// Text format 0.0.4. Names and labels: docs/reference/metrics.md.
std::string prometheus_text(const RecorderProcess::Shown& shown);

/// A report as some lines of text for a terminal.
std::string recorder_report_text(const Json& report);

}  // namespace rodeo::farm
