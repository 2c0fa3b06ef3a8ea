// A filter node as a process: the node, its report, view and metrics.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/registry.h"
#include "farm/node/configuration.h"
#include "farm/node/filter_node.h"
#include "process/service.h"

namespace rodeo::farm {

using process::Phase;
using settings::Json;

/// The parts of the node that wait, and what they wait for. Pure.
std::vector<process::WatchedPart> watched_parts(const NodeStatus& status);

class NodeService final : public process::Service {
 public:
  /// The registry outlives this object; prepare() makes the selection from it.
  NodeService(const NodeConfiguration& configuration, const base::ComponentRegistry& registry);
  ~NodeService() override;

  void prepare() override;
  void hold() override { phase_ = Phase::ready; }
  Result<void> set_run(std::uint32_t run_number, const Json&) override {
    run_number_ = run_number;
    return {};
  }
  void start() override;
  void step() override;
  void stop() override;
  void give_up() override { node_->give_up(); }
  Phase phase() const override { return phase_; }
  Report conclude(bool aborted) override;

  Json status(const Json& request) override;
  std::vector<std::string> take_messages() override { return node_->take_messages(); }
  std::vector<process::WatchedPart> watched() override { return watched_parts(shown_); }
  std::vector<std::string> view_lines(double seconds, process::ViewStyle style) override;
  std::string view_line(double seconds) override;
  std::function<std::string()> metrics() const override;

 private:
  process::Condition condition() const;
  Json report() const;

  const NodeSettings settings_;
  const base::ComponentRegistry& registry_;
  std::unique_ptr<FilterNode> node_;
  Phase phase_ = Phase::prepared;
  std::uint32_t run_number_ = 0;  // 0: the run that the supervisor has
  std::uint64_t began_ns_ = 0;
  std::uint64_t ended_ns_ = 0;
  NodeStatus shown_;
  NodeStatus viewed_;  // The status that the last view showed.
  double viewed_s_ = 0;
};

}  // namespace rodeo::farm
