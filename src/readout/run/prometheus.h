// A readout's status as metrics in Prometheus' text format.
#pragma once

#include <string>

#include "readout/readout_status.h"
#include "readout/settings.h"

namespace rodeo::readout {

/// Text format 0.0.4: every metric with HELP and TYPE, base units in names. Names and labels: docs/reference/metrics.md.
std::string prometheus_text(const ReadoutSettings& settings, const ReadoutStatus& status);

}  // namespace rodeo::readout
