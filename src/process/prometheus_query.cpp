#include "process/prometheus_query.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "process/http_client.h"

namespace rodeo::process {

namespace {

constexpr std::chrono::seconds kQueryTime{30};

std::unexpected<Error> query_error(std::string what) {
  return std::unexpected(Error{"process.prometheus", std::move(what), "", "try the query in the server's own page"});
}

/// "1.5", "NaN", "+Inf"; nothing for any other text.
std::optional<double> value_of(const Json& json) {
  if (json.is_number()) return json.number();
  char* end = nullptr;
  const double value = std::strtod(json.string().c_str(), &end);
  if (json.string().empty() || *end != 0) return std::nullopt;
  return value;
}

}  // namespace

Result<std::vector<TimeSeries>> query_prometheus(const std::string& server, const std::string& query, double from_unix_s,
                                                 double to_unix_s) {
  const double step = std::max(1.0, (to_unix_s - from_unix_s) / 100);
  const double to = std::max(to_unix_s, from_unix_s + step);
  const std::string base = server.ends_with('/') ? server.substr(0, server.size() - 1) : server;
  const auto answer = RODEO_TRY(http_get(fmt::format("{}/api/v1/query_range?query={}&start={:.3f}&end={:.3f}&step={:.3f}",
                                                     base, percent_encoded(query), from_unix_s, to, step),
                                         kQueryTime));
  auto series = parse_range_answer(answer.body);
  if (!series && answer.status != 200 && answer.status != 400)
    return query_error(fmt::format("{} answers with status {}", server, answer.status));
  return series;
}

Result<std::vector<TimeSeries>> parse_range_answer(const std::string& body) {
  const auto json = Json::parse(body);
  if (!json) return query_error("the answer is not JSON: " + body.substr(0, 100));
  const Json* status = json->find("status");
  if (status == nullptr || status->string() != "success") {
    const Json* why = json->find("error");
    return query_error(why != nullptr ? "the server refuses the query: " + why->string()
                                      : "the answer is not from Prometheus");
  }
  const Json* data = json->find("data");
  const Json* result = data != nullptr ? data->find("result") : nullptr;
  const Json* type = data != nullptr ? data->find("resultType") : nullptr;
  if (result == nullptr || !result->is_array() || type == nullptr || type->string() != "matrix")
    return query_error("the answer has no matrix of series");
  std::vector<TimeSeries> all;
  for (const Json& one : result->elements()) {
    TimeSeries series;
    if (const Json* labels = one.find("metric"); labels != nullptr) {
      for (const auto& [name, value] : labels->members()) series.labels.emplace_back(name, value.string());
    }
    const Json* values = one.find("values");
    if (values == nullptr) return query_error("a series has no values");
    for (const Json& pair : values->elements()) {
      const auto value = pair.elements().size() == 2 ? value_of(pair.elements()[1]) : std::nullopt;
      if (!value) return query_error("a sample is not a time and a value");
      series.samples.emplace_back(pair.elements()[0].number(), *value);
    }
    all.push_back(std::move(series));
  }
  return all;
}

Json json_of(const TimeSeries& series) {
  Json labels = Json::object();
  for (const auto& [name, value] : series.labels) labels[name] = Json(value);
  Json samples = Json::array();
  for (const auto& [time, value] : series.samples) {
    Json pair = Json::array();
    pair.push_back(Json(time));
    pair.push_back(Json(value));
    samples.push_back(std::move(pair));
  }
  Json json = Json::object({{"labels", std::move(labels)}});
  if (!series.samples.empty()) {
    const auto [least, most] = std::ranges::minmax_element(series.samples, {}, &std::pair<double, double>::second);
    json["first"] = Json(series.samples.front().second);
    json["last"] = Json(series.samples.back().second);
    json["min"] = Json(least->second);
    json["max"] = Json(most->second);
  }
  json["samples"] = std::move(samples);
  return json;
}

}  // namespace rodeo::process
