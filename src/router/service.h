// The router as a process: its report, view and metrics.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/registry.h"
#include "process/service.h"
#include "router/configuration.h"
#include "router/router.h"

namespace rodeo::router {

using settings::Json;

class RouterService final : public process::Service {
 public:
  /// The registry outlives this object.
  RouterService(const RouterConfiguration& configuration, const base::ComponentRegistry& registry);

  void prepare() override;
  void start() override { router_->start(); }
  void step() override;
  void stop() override { router_->stop(); }
  bool stopping() const override { return router_->stopping(); }
  void give_up() override { router_->give_up(); }
  Phase phase() const override { return router_->phase(); }
  double seconds(double) const override { return shown_.seconds; }
  Report conclude(bool aborted) override;

  /// With "links": true also `by_link`.
  Json status(const Json& request) override;
  std::vector<std::string> take_messages() override { return router_->take_messages(); }
  std::vector<process::WatchedPart> watched() override;
  std::vector<std::string> view_lines(double seconds, process::ViewStyle style) override;
  std::string view_line(double seconds) override;
  std::function<std::string()> metrics() const override;

 private:
  const RouterSettings settings_;
  const base::ComponentRegistry& registry_;
  std::unique_ptr<Router> router_;
  RouterStatus shown_;
  RouterStatus viewed_;  // the status that the last view showed
};

}  // namespace rodeo::router
