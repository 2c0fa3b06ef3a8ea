// Metrics in Prometheus' text format 0.0.4.
#pragma once

#include <fmt/format.h>

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/counters.h"
#include "base/named_counters.h"
#include "process/http_server.h"

namespace rodeo::process {

using Labels = std::vector<std::pair<std::string_view, std::string>>;

/// The meaning of a declared counter, with its unit.
std::string help_of(const base::CounterInfo& counter);

/// Writes metrics one after another: HELP and TYPE lines, then the samples.
class PrometheusText {
 public:
  /// `common`: labels at the start of every sample.
  explicit PrometheusText(Labels common = {}) : common_(std::move(common)) {}

  /// Starts a metric. `type`: counter, gauge or untyped. The samples that follow belong to it.
  void metric(std::string_view name, std::string_view type, std::string_view help);

  template <typename Value>
  void sample(const Value& value, const Labels& labels = {}) {
    add(labels, fmt::format("{}", value));
  }

  /// A sample of a link: the label `name` is there if the link has a name.
  template <typename Value>
  void link_sample(const Value& value, Labels labels, std::string fid, const std::string& name) {
    labels.emplace_back("fid", std::move(fid));
    if (!name.empty()) labels.emplace_back("name", name);
    sample(value, labels);
  }

  /// A metric with one sample.
  template <typename Value>
  void gauge(std::string_view name, std::string_view help, const Value& value) {
    metric(name, "gauge", help);
    sample(value);
  }

  /// One metric for each declared counter, PREFIX_GROUP_NAME_total. `values` holds it under the name GROUP_NAME.
  void counters(std::string_view prefix, std::string_view group, std::span<const base::CounterInfo> infos,
                std::span<const NamedCounter> values);

  std::string take() { return std::move(text_); }

 private:
  void add(const Labels& labels, std::string_view value);

  Labels common_;
  std::string name_;
  std::string text_;
};

/// Answers a GET of /metrics with the result of `text`, and other paths with 404. Runs on the server's thread.
HttpServer::Answer metrics_answer(std::function<std::string()> text);

}  // namespace rodeo::process
