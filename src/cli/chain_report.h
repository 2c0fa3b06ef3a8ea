// The report of a run of the whole chain, made from the reports of its processes, and the sum that must hold over all of
// them.
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
  std::string kind;  ///< the control room's name for it
  Json report;       ///< null: the process left no report
};

struct ChainRun {
  std::string name;
  std::vector<ChainProcess> processes;   ///< in the order of the data path
  std::optional<farm::Decided> decided;  ///< from the file of decisions; nullopt: it cannot be read
  std::string failure;                   ///< why the run failed; empty if it did not fail
  std::string limited_by = {};           ///< the limit seen during the run; empty: take it from the reports
};

/// The report (docs/reference/run-report.md): the keys of a readout's report, over all readouts, and "farm". Its condition
/// is the worst of those of the processes and of the sums.
Json chain_report(const ChainRun& run);

/// The report for people, several lines, each ended.
std::string chain_report_text(const Json& report);

/// The last line: says whether each trigger is accounted for; `in_files` of them are in files that were read back.
std::string chain_sum_text(const Json& report, std::uint64_t in_files);

/// True if each trigger is in one place, and all accepted and debug events are in files. Where no process counted the
/// triggers, only the files are checked.
bool chain_sum_holds(const Json& report, std::uint64_t in_files);

}  // namespace rodeo::cli
