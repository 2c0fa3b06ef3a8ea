// Counters in the form of reports.
#pragma once

#include <span>

#include "rodeo/input.h"
#include "settings/json.h"

namespace rodeo::process {

/// An object with one member (name, value) for each counter, in the order given.
inline settings::Json counters_json(std::span<const NamedCounter> counters) {
  settings::Json out = settings::Json::object();
  for (const NamedCounter& counter : counters) out[counter.name] = counter.value;
  return out;
}

}  // namespace rodeo::process
