// The output of `rodeo net lab`: the scaling table, one line for each run, the report.
#pragma once

#include <optional>
#include <string>

#include "cli/output.h"
#include "network/laboratory/laboratory.h"
#include "network/laboratory/scaling.h"

namespace rodeo::cli {

/// The measurement, and the real network that it represents.
struct LabReport {
  network::laboratory::Settings settings;
  network::laboratory::Settings real;
  std::string real_name;  ///< "lab-2023", "25 Gb/s node links"
  std::string where;      ///< "namespaces" or "hosts"
  std::string switch_description;
  std::string load = "emulators";  ///< or the program of --load
  network::laboratory::VetoRule rule;
  network::laboratory::Point point;
  Json metrics = Json::array();  ///< time series, if requested
};

std::string buffer_text(const network::SwitchBuffer& buffer);

/// "shared:2800kB", "port:100kB", "infinite" or a switch preset's name. Error cli.bad_value.
Result<network::SwitchBuffer> parse_buffer(std::string_view text);

/// The dimensionless groups of laboratory and original, for stderr.
std::string scaling_text(const LabReport& report);
std::string run_line(const network::laboratory::Run& run);

Json json_of(const LabReport& report);
Table table_of(const LabReport& report);

}  // namespace rodeo::cli
