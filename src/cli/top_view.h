// The view of `rodeo top`, from two samples of the processes: verdicts, rates, losses by reason, the worst links.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/output.h"
#include "process/process_list.h"

namespace rodeo::cli {

/// One process. An unknown value is empty, never 0.
struct TopRow {
  std::string name;
  std::string kind;
  std::optional<pid_t> pid;
  std::string phase;
  std::optional<std::uint64_t> run;
  std::string verdict;            ///< GOOD, INCOMPLETE, WRONG, ABORTED; SILENT: it does not answer
  std::string why;                ///< the reason for SILENT
  std::optional<double> rate_hz;  ///< events of a readout, triggers of a card, chunks a link of a router
  std::optional<double> dead_time_fraction;
  std::vector<std::pair<std::string, double>> lost;  ///< by reason; no zeros
  std::string limited_by;
  std::optional<double> cpu;  ///< cores
  std::uint64_t rss_bytes = 0;
};

/// A link that is removed, that events lack, or that brought bad chunks.
struct TopLink {
  std::string process;
  std::string fid;
  std::string name = {};  ///< that its owner gave it
  std::string state;
  double missing = 0;
  double bad = 0;
  double in_doubt = 0;
  bool out_of_step = false;
};

struct TopView {
  std::vector<TopRow> rows;
  std::vector<TopLink> links;  ///< the worst of all readouts, at most `most_links`
  std::size_t more_links = 0;  ///< further bad links
};

/// Pure. `before`: an earlier sample, for rates and CPU. If it is empty, rates are means over the run, and CPU is not known.
TopView top_view(const std::vector<process::ListedProcess>& before, const std::vector<process::ListedProcess>& now,
                 std::size_t most_links);

Table top_table(const TopView& view);
Table top_links_table(const TopView& view);
/// {"processes": [...], "worst_links": [...], "control_rooms": [...]}
Json top_json(const TopView& view, const std::vector<std::string>& rooms);

}  // namespace rodeo::cli
