// Counters in the form of reports, and values read from a report.
#pragma once

#include <span>
#include <string_view>

#include "rodeo/input.h"
#include "settings/json.h"

namespace rodeo::process {

/// An object with one member (name, value) for each counter, in the order given.
inline settings::Json counters_json(std::span<const NamedCounter> counters) {
  settings::Json out = settings::Json::object();
  for (const NamedCounter& counter : counters) out[counter.name] = counter.value;
  return out;
}

/// The value `group`.`key` of a report; null if there is none.
inline const settings::Json& value_at(const settings::Json& report, std::string_view group, std::string_view key) {
  static const settings::Json nothing;
  const settings::Json* const found = report.find(group);
  const settings::Json* const value = found == nullptr ? nullptr : found->find(key);
  return value == nullptr ? nothing : *value;
}

}  // namespace rodeo::process
