// A recorder as a process: its server, the copies of its files to their target, report, view and metrics.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "farm/recorder/configuration.h"
#include "farm/recorder/recorder_server.h"
#include "farm/recorder/storage_target.h"
#include "process/service.h"

namespace rodeo::farm {

using process::Phase;
using settings::Json;

class RecorderService final : public process::Service {
 public:
  /// The values that metrics show.
  struct Shown {
    RecorderStatus recorder;
    StorageTarget::Status target;
  };
  /// The parts of the recorder that wait, and what they wait for. Pure.
  static std::vector<process::WatchedPart> watched_parts(const Shown& shown);

  explicit RecorderService(const RecorderConfiguration& configuration);
  ~RecorderService() override;

  /// Listens on the network.
  void prepare() override;
  void hold() override { phase_ = Phase::ready; }
  Result<void> set_run(std::uint32_t run_number, const Json&) override {
    run_number_ = run_number;
    return {};
  }
  void start() override;
  void step() override;
  void stop() override;
  void give_up() override;
  Phase phase() const override { return phase_; }
  Report conclude(bool aborted) override;

  Json status(const Json& request) override;
  std::string_view commands() const override { return ", slow_disk"; }
  /// For tests: `slow_disk` {"seconds": x} makes each write to the disk take that much longer.
  std::optional<Result<Json>> command(const std::string& command, const Json& request) override;
  std::vector<std::string> take_messages() override;
  std::vector<process::WatchedPart> watched() override { return watched_parts(shown_); }
  std::vector<std::string> view_lines(double seconds, process::ViewStyle style) override;
  std::string view_line(double seconds) override;
  std::function<std::string()> metrics() const override;

 private:
  process::Condition condition() const;
  Json report() const;

  const RecorderSettings settings_;
  std::unique_ptr<RecorderServer> server_;
  std::unique_ptr<StorageTarget> target_;
  Phase phase_ = Phase::prepared;
  std::uint32_t run_number_;
  std::uint64_t began_ns_ = 0;
  std::uint64_t ended_ns_ = 0;
  Shown shown_;
  RecorderStatus viewed_;  // The status that the last view showed.
  double viewed_s_ = 0;
  std::size_t files_seen_ = 0;
  std::string reported_trouble_;
  std::vector<std::string> messages_;
};

}  // namespace rodeo::farm
