#include "router/service.h"

#include <cstdio>
#include <utility>

#include "base/sentence.h"
#include "base/terminal_text.h"
#include "router/router_report.h"
#include "router/run/prometheus.h"
#include "router/run/router_report_output.h"
#include "router/run/router_view.h"
#include "router/watched_parts.h"

namespace rodeo::router {
namespace {

process::ServiceFacts facts_of_router(const RouterConfiguration& configuration) {
  process::ServiceFacts facts =
      process::facts_of(process::kRouter, configuration, "the input stops, and the subscribers get the rest");
  facts.aborted = "data under way are lost";
  facts.long_prepare = true;
  return facts;
}

process::ExitCode exit_code_of(const RouterReport& report) {
  using process::ExitCode;
  if (report.condition == Condition::aborted || report.condition == Condition::wrong) return ExitCode::failed;
  return report.not_taken + report.pending > 0 ? ExitCode::partial : ExitCode::done;
}

}  // namespace

RouterService::RouterService(const RouterConfiguration& configuration, const base::ComponentRegistry& registry)
    : Service(facts_of_router(configuration)), settings_(configuration.settings), registry_(registry) {}

void RouterService::prepare() {
  router_ = std::make_unique<Router>(settings_, registry_);
  shown_ = router_->status();
  for (const ReaderStatus& reader : shown_.readers) {
    const std::string what = reader.trigger_list ? "the trigger's list" : base::counted(reader.links.size(), "link");
    base::say_folded(fmt::format("{} publishes {}\n", reader.name, what));
  }
}

void RouterService::step() {
  router_->step();
  shown_ = router_->status();
}

process::Service::Report RouterService::conclude(bool aborted) {
  const RouterReport report = make_report(settings_, router_->status(), aborted);
  if (!aborted) router_.reset();
  return {report_json(report), report_text(report), exit_code_of(report)};
}

Json RouterService::status(const Json& request) {
  const RouterStatus now = router_->status();
  Json status = status_json(make_report(settings_, now, false), now);
  if (const Json* links = request.find("links"); links != nullptr && links->boolean()) status["by_link"] = links_json(now);
  return status;
}

std::vector<process::WatchedPart> RouterService::watched() { return watched_parts(shown_); }

std::vector<std::string> RouterService::view_lines(double, process::ViewStyle style) {
  return router::view_lines(settings_, std::exchange(viewed_, shown_), shown_, style);
}

std::string RouterService::view_line(double) { return router::view_line(std::exchange(viewed_, shown_), shown_); }

std::function<std::string()> RouterService::metrics() const {
  return [this, status = shown_] { return prometheus_text(settings_, status); };
}

}  // namespace rodeo::router
