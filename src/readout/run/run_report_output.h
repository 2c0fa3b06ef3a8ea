// The end-of-run report for programs and for people.
#pragma once

#include <string>
#include <string_view>

#include "readout/readout_status.h"
#include "readout/run_report.h"
#include "settings/json.h"

namespace rodeo::readout {

using settings::Json;

/// As docs/reference/run-report.md describes it.
Json report_json(const RunReport& report);

/// A running readout, for `rodeo readout status` and the control socket: the report so far, and every link and fill level.
Json status_json(const RunReport& so_far, const ReadoutStatus& status);

/// The percentiles, kept apart by `between`, or that nothing was measured.
std::string latency_text(const readout::Latency& latency, std::string_view between);

/// Some lines to read on a terminal, without colours.
std::string report_text(const RunReport& report);

}  // namespace rodeo::readout
