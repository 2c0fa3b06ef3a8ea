// What a run of the whole chain came to: one report made of those of its processes, and the sum that must hold over all of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "farm/supervisor/decision_file.h"
#include "settings/json.h"

namespace rodeo::cli {

using settings::Json;

/// One life of a process of the chain.
struct ChainProcess {
  std::string name;
  std::string kind;  ///< as the control room calls it
  Json report;       ///< null: it left none
};

struct ChainRun {
  std::string name;
  std::vector<ChainProcess> processes;   ///< on the way of the data
  std::optional<farm::Decided> decided;  ///< what the file of decisions says; nothing: it cannot be read
  std::string failure;                   ///< why the run had to end; empty if it did not
  std::string limited_by = {};           ///< by whom it was asked while it ran; empty: the reports say
};

/// The report (docs/reference/run-report.md): what `rodeo readout` says of its run, over all readouts, and "farm". Its condition is the worst of those of the
/// processes and of the sums.
Json chain_report(const ChainRun& run);

/// The report for people, several lines, each ended.
std::string chain_report_text(const Json& report);

/// The last line: that each trigger is somewhere, `in_files` of them in files that were read back; or that it is not.
std::string chain_sum_text(const Json& report, std::uint64_t in_files);

/// Each trigger is in one place, and what was accepted or kept for debugging is in files.
bool chain_sum_holds(const Json& report, std::uint64_t in_files);

}  // namespace rodeo::cli
