// The settings of one filter node as plain values. farm/node/configuration.h makes them from a configuration; tests set them
// by hand.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/thread.h"
#include "farm/network_settings.h"
#include "process/stop_limit.h"
#include "rodeo/parameters.h"

namespace rodeo::farm {

enum class Building : std::uint8_t {
  full,   ///< Fetches all fragments of an event at once, then calls its selection.
  steps,  ///< Fetches the fragments that the selection asks for, step by step, and the rest once the event is accepted.
};

/// The settings of a selection, as the registry's factory needs them.
struct SelectionSettings {
  std::string type = "accept";
  Parameters parameters = {};
  std::string where = {};  ///< file:line:column of its table, for messages; may be empty.
};

struct NodeSettings {
  std::string name = "node";
  std::string supervisor = "supervisor";  ///< Name of the supervisor's service on the bus.
  std::uint32_t slots = 32;               ///< Limit of events at a time.
  Building building = Building::full;
  std::uint32_t workers = 2;  ///< Number of threads that run the selection.
  std::uint32_t credit_fragments = 0;
  std::uint64_t credit_bytes = 0;
  std::chrono::nanoseconds fetch_wait = std::chrono::milliseconds{20};
  std::chrono::nanoseconds pending_retry = std::chrono::milliseconds{1};
  std::chrono::nanoseconds readout_grace = std::chrono::seconds{2};
  std::chrono::nanoseconds record_timeout = std::chrono::seconds{10};
  std::chrono::nanoseconds recorder_patience = std::chrono::seconds{30};
  std::uint64_t most_event_bytes = std::uint64_t{64} << 20;
  bool event_checksum = true;
  base::IdlePolicy idle = base::IdlePolicy::sleep;
  SelectionSettings selection = {};
  NetworkSettings network = {};
  std::chrono::nanoseconds stop_limit = process::kStopLimit;  ///< Limit of the time from the command to stop to the end.
};

}  // namespace rodeo::farm
