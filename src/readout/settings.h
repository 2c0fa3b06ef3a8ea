// The task of one readout process as plain values: readout/configuration.h fills them from a configuration, tests fill them
// by hand.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "process/stop_limit.h"
#include "readout/run_info.h"
#include "rodeo/ids.h"
#include "rodeo/parameters.h"

namespace rodeo::readout {

/// One component that the registry can make: an input, builder, consumer, extractor or checker.
struct ComponentSettings {
  std::string type;       ///< the registered type
  std::string name;       ///< name in reports and messages; several consumers may have one type
  Parameters parameters;  ///< validated against the component's own keys
  std::string where;      ///< file:line:column of its table, for messages; may be empty
};

/// One ROB: its links give the fragments of one source id.
struct RobSettings {
  SourceId source_id;
  std::vector<Fid> links;               ///< empty: every link of the input
  std::vector<std::uint32_t> link_ids;  ///< resource ids for chunk headers, one per link; empty: from the FIDs
  std::uint32_t links_per_group = 0;    ///< FULL mode: number of neighbours that form a group; 0: all links form one group
  std::string where;
};

/// The rules for removing a link from the build automatically.
struct LinkPolicySettings {
  std::uint64_t remove_after_events = 0;  ///< removed after this many consecutive events without it; 0: never
  bool restore = true;                    ///< restores the link when it delivers again
};

struct ReadoutSettings {
  std::string name = "readout";
  RunInfo run;
  ComponentSettings input;
  ComponentSettings builder;
  ComponentSettings extractor;
  std::optional<ComponentSettings> checker;
  std::vector<RobSettings> robs;
  std::vector<ComponentSettings> consumers;  ///< the consumers in list order
  LinkPolicySettings link_policy;
  double fail_on_loss = 1;                                    ///< a run that loses a larger fraction has failed; 1: never
  std::chrono::nanoseconds stop_limit = process::kStopLimit;  ///< time from the stop command to the end
  std::optional<double> trigger_rate_hz = {};                 ///< trigger rate of the input, if the configuration gives it
  std::uint64_t reset_events = 0;                             ///< events between event counter resets; 0: not known
};

}  // namespace rodeo::readout
