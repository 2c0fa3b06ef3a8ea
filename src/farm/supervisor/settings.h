// What a supervisor is to do, as plain values: farm/supervisor/plan.h fills it from a configuration, tests fill it by hand.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/thread.h"
#include "dispatch/node_choice.h"
#include "farm/network_keys.h"
#include "process/stop_limit.h"

namespace rodeo::farm {

struct SupervisorSettings {
  std::string name = "supervisor";
  std::string trigger = {};                ///< address of the trigger authority; empty: ids are those that the readouts hold
  std::string system = {};                 ///< of the trigger authority
  std::uint64_t seed = 1;                  ///< of provable payload: must be the authority's
  std::vector<std::string> readouts = {};  ///< names of their services
  std::vector<std::string> recorders = {};  ///< the same
  dispatch::Policy assignment = dispatch::Policy::least_loaded;
  std::uint32_t nodes = 0;  ///< that there are; 0: not known
  std::uint32_t most_nodes = 4096;
  std::uint32_t run_number = 1;
  std::uint32_t run_type = 0xf;
  std::uint32_t events_in_flight = 100'000;  ///< that it has room for, those included whose clears are under way
  std::chrono::nanoseconds event_timeout{std::chrono::seconds{10}};
  std::chrono::nanoseconds lost_after{std::chrono::seconds{120}};
  std::uint32_t clear_count = 10'000;
  std::chrono::nanoseconds clear_after{std::chrono::milliseconds{10}};
  std::chrono::nanoseconds readout_grace{std::chrono::seconds{10}};
  std::chrono::nanoseconds readout_silence{std::chrono::seconds{60}};
  std::chrono::nanoseconds node_grace{std::chrono::seconds{2}};
  std::chrono::nanoseconds rebuild_time{std::chrono::seconds{5}};
  std::chrono::nanoseconds poll_holdings{std::chrono::milliseconds{50}};
  std::chrono::nanoseconds assign_after{std::chrono::seconds{1}};
  std::chrono::nanoseconds drain_time{std::chrono::seconds{25}};
  std::chrono::nanoseconds work_patience{std::chrono::milliseconds{500}};
  std::chrono::nanoseconds lumi_block{0};
  std::filesystem::path decisions = {};
  base::IdlePolicy idle = base::IdlePolicy::sleep;
  NetworkKeys network = {};
  std::chrono::nanoseconds stop_limit = process::kStopLimit;  ///< from the order to stop to the end
};

/// A supervisor as it is written: [farm.supervisor].
struct SupervisorKeys : SupervisorSettings {
  bool control = true;
};

const Settings<SupervisorKeys>& supervisor_settings();

}  // namespace rodeo::farm
