// Counters as reports have them.
#pragma once

#include <span>

#include "rodeo/input.h"
#include "settings/json.h"

namespace rodeo::process {

/// An object of name and value, in their order.
inline settings::Json counters_json(std::span<const NamedCounter> counters) {
  settings::Json out = settings::Json::object();
  for (const NamedCounter& counter : counters) out[counter.name] = counter.value;
  return out;
}

}  // namespace rodeo::process
