// `standing` of a status: parts that wait and do nothing (docs/reference/run-report.md).
#pragma once

#include <span>

#include "process/watchdog.h"
#include "settings/json.h"

namespace rodeo::process {

inline settings::Json standing_json(std::span<const StandingPart> parts) {
  settings::Json out = settings::Json::array();
  for (const StandingPart& part : parts)
    out.push_back(settings::Json::object({{"name", part.name}, {"waits_for", part.waits_for}, {"seconds", part.seconds}}));
  return out;
}

}  // namespace rodeo::process
