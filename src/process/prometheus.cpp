#include "process/prometheus.h"

namespace rodeo::process {
namespace {

std::string escaped(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

std::string help_of(const base::CounterInfo& counter) { return fmt::format("{} [{}]", counter.help, counter.unit); }

void PrometheusText::metric(std::string_view name, std::string_view type, std::string_view help) {
  name_ = name;
  text_ += fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
}

void PrometheusText::counters(std::string_view prefix, std::string_view group, std::span<const base::CounterInfo> infos,
                              std::span<const NamedCounter> values) {
  for (const base::CounterInfo& info : infos) {
    const std::string name = fmt::format("{}{}", group, info.name);
    metric(fmt::format("{}{}_total", prefix, name), "counter", help_of(info));
    sample(base::counter_value(values, name));
  }
}

void PrometheusText::add(const Labels& labels, std::string_view value) {
  Labels all = common_;
  all.insert(all.end(), labels.begin(), labels.end());
  text_ += name_;
  for (std::size_t i = 0; i < all.size(); ++i)
    text_ += fmt::format("{}{}=\"{}\"", i == 0 ? "{" : ",", all[i].first, escaped(all[i].second));
  text_ += fmt::format("{} {}\n", all.empty() ? "" : "}", value);
}

HttpServer::Answer metrics_answer(std::function<std::string()> text) {
  return [text = std::move(text)](const std::string& target) -> HttpReply {
    // A scrape may carry parameters; they are ignored.
    if (target.substr(0, target.find('?')) != "/metrics") return {.status = 404, .body = "the metrics are at /metrics\n"};
    return {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = text()};
  };
}

}  // namespace rodeo::process
