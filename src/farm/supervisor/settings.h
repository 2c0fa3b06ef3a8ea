// The settings of a supervisor as plain values. A configuration gives them (farm/supervisor/configuration.h), or a test sets
// them.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/thread.h"
#include "dispatch/node_choice.h"
#include "farm/network_settings.h"
#include "process/stop_limit.h"

namespace rodeo::farm {

struct SupervisorSettings {
  std::string name = "supervisor";
  std::string trigger = {};                        ///< Address of the trigger authority; empty: there is none.
  std::string system = {};                         ///< System of the trigger authority.
  std::filesystem::path trigger_secret_file = {};  ///< Required if the address of the authority is beyond this host.
  std::uint64_t seed = 1;                          ///< Seed of provable payload; must be equal to the authority's.
  std::vector<std::string> readouts = {};          ///< Names of the readouts' services.
  std::vector<std::string> recorders = {};         ///< Names of the recorders' services.
  dispatch::Policy assignment = dispatch::Policy::least_loaded;
  std::uint32_t nodes = 0;  ///< Number of filter nodes; 0: not known.
  std::uint32_t most_nodes = 4096;
  std::uint32_t run_number = 1;
  std::uint32_t run_type = 0xf;
  std::uint32_t events_in_flight = 100'000;  ///< Room for events, including those whose clears are under way.
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
  NetworkSettings network = {};
  std::chrono::nanoseconds stop_limit = process::kStopLimit;  ///< Limit of the time from the command to stop to the end.
};

}  // namespace rodeo::farm
