// Time series of a Prometheus server: values from the network's own monitoring during a run (network paper, section 3.2).
// API: https://prometheus.io/docs/prometheus/latest/querying/api/
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "settings/json.h"

namespace rodeo::process {

using settings::Json;

struct TimeSeries {
  std::vector<std::pair<std::string, std::string>> labels;
  std::vector<std::pair<double, double>> samples;  ///< Unix time [s], value; sorted by time
};

/// A range query of `query` (PromQL) between two Unix times. The step is a hundredth of the range, at least 1 s. A range
/// shorter than a step still gives a sample at each end. `server`: "http://HOST:PORT". Errors: process.http_client,
/// process.prometheus (the server refused the query, or its answer is invalid).
Result<std::vector<TimeSeries>> query_prometheus(const std::string& server, const std::string& query, double from_unix_s,
                                                 double to_unix_s);

/// Parses an answer of /api/v1/query_range. Error process.prometheus.
Result<std::vector<TimeSeries>> parse_range_answer(const std::string& body);

/// Labels, first, last, smallest and largest value, and all samples.
Json json_of(const TimeSeries& series);

}  // namespace rodeo::process
