// The end-of-run report for programs and for people.
#pragma once

#include <string>
#include <string_view>

#include "readout/readout_status.h"
#include "readout/run_report.h"
#include "settings/json.h"

namespace rodeo::readout {

using settings::Json;

/// The report as docs/reference/run-report.md describes it.
Json report_json(const RunReport& report);

/// The state of a running readout, for `rodeo readout status` and the control socket: the report up to now, all links and
/// fill levels.
Json status_json(const RunReport& so_far, const ReadoutStatus& status);

/// The percentiles with `between` as separator, or a text if nothing was measured.
std::string latency_text(const readout::Latency& latency, std::string_view between);

/// The report as lines for a terminal, without colours.
std::string report_text(const RunReport& report);

}  // namespace rodeo::readout
