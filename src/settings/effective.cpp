#include "settings/effective.h"

#include <map>
#include <span>

#include "base/sha256.h"

namespace rodeo::settings {
namespace {

/// A text has the same value with quotes (in a file) or without (in a flag).
Json value_of(const ConfiguredValue& setting) {
  const auto text = Json::parse(setting.written);
  return text && text->is_string() ? *text : Json(setting.written);
}

}  // namespace

void add_values(const Table& table, Json& values) {
  table.visit([&](const Table& one) {
    for (const ConfiguredValue& setting : one.settings()) values[one.path() + "." + setting.key.name] = value_of(setting);
  });
}

std::string configuration_sha256(const Configuration& configuration) {
  std::map<std::string, std::string> sorted;
  configuration.root.visit([&](const Table& one) {
    for (const ConfiguredValue& setting : one.settings())
      sorted[Json(one.path() + "." + setting.key.name).dump(0)] = value_of(setting).dump(0);
  });
  std::string text;
  for (const auto& [key, value] : sorted) text.append(text.empty() ? "{" : ",").append(key).append(":").append(value);
  text += text.empty() ? "{}" : "}";
  return base::sha256_hex(std::as_bytes(std::span(text)));
}

}  // namespace rodeo::settings
