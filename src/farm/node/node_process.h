// A filter node as a process: the node, its report and view.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/registry.h"
#include "farm/node/filter_node.h"
#include "farm/run/farm_process.h"

namespace rodeo::farm {

/// The parts of the node that wait, and what they wait for. Pure.
std::vector<process::WatchedPart> watched_parts(const NodeStatus& status);

class NodeProcess final : public FarmProcess {
 public:
  /// Makes the selection from a registry that outlives this object. Throws SetupError.
  NodeProcess(NodeSettings settings, const base::ComponentRegistry& registry);
  ~NodeProcess() override;

  std::string name() const override { return settings_.name; }
  /// 0: the run that the supervisor has.
  void start(std::uint32_t run_number) override;
  void stop() override;
  void give_up() override;
  void step() override;
  Phase phase() const override { return phase_; }
  Json report() const override;
  std::vector<std::string> take_messages() override { return node_->take_messages(); }
  std::vector<process::WatchedPart> watched() const override { return watched_parts(shown_); }
  std::vector<std::string> view_lines(double seconds, process::ViewStyle style) override;
  std::string view_line(double seconds) override;

  process::Condition condition() const;
  const NodeStatus& shown() const { return shown_; }

 private:
  const NodeSettings settings_;
  std::unique_ptr<FilterNode> node_;
  Phase phase_ = Phase::prepared;
  std::uint64_t began_ns_ = 0;
  std::uint64_t ended_ns_ = 0;
  NodeStatus shown_;
  NodeStatus viewed_;  // The status that the last view showed.
  double viewed_s_ = 0;
};

/// Text format 0.0.4. Names and labels: docs/reference/metrics.md.
std::string prometheus_text(const NodeStatus& status);

/// A report as some lines of text for a terminal.
std::string node_report_text(const Json& report);

}  // namespace rodeo::farm
