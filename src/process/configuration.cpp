#include "process/configuration.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/units.h"
#include "process/http_server.h"

namespace rodeo::process {
namespace {

bool is_plain_name(std::string_view name) {
  constexpr std::size_t kLongest = 64;
  const auto alphanumeric = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  return !name.empty() && name.size() <= kLongest && alphanumeric(name.front()) &&
         std::ranges::all_of(name, [&](char c) { return alphanumeric(c) || c == '_' || c == '-' || c == '.'; });
}

}  // namespace

std::vector<Key> metrics_keys() {
  return {{.name = "listen",
           .type = KeyType::text,
           .fallback = "",
           .help = "ADDRESS:PORT to listen at, for example 127.0.0.1:9464. Empty: no metrics over HTTP."}};
}

void refuse_other_than_plain_name(const settings::Table& table, const char* key, settings::ConfigurationErrors& errors) {
  const std::string& name = table.parameters().text(key);
  if (is_plain_name(name)) return;
  errors.push_back(
      {"config.bad_value", fmt::format("{}.{}: `{}` is not allowed in the names of files", table.path(), key, name),
       settings::where_of(table, key), "up to 64 letters, digits, `_`, `-` and `.`, beginning with a letter or digit"});
}

std::vector<std::string> cut_by_stop_limit(std::span<const EndTime> times, std::chrono::nanoseconds stop_limit) {
  const std::chrono::nanoseconds most = StopLimit::in_order(stop_limit);
  std::vector<std::string> warnings;
  for (const auto& [key, time] : times) {
    if (time <= most) continue;
    warnings.push_back(
        fmt::format("{} is {}, but after {} of the end what waits is given up (five sixths of stop_limit = {}); make "
                    "stop_limit longer",
                    key, base::format_duration(time), base::format_duration(most), base::format_duration(stop_limit)));
  }
  return warnings;
}

void refuse_bad_listen(const settings::Table& metrics, settings::ConfigurationErrors& errors) {
  const std::string& listen = metrics.parameters().text("listen");
  if (listen.empty()) return;
  if (auto good = HttpServer::check(listen); !good) {
    Error error = std::move(good).error();
    error.what = fmt::format("{}.listen: {}", metrics.path(), error.what);
    error.where = settings::where_of(metrics, "listen");
    errors.push_back(std::move(error));
  }
}

}  // namespace rodeo::process
