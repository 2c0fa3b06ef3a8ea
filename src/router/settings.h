// The settings of a router process as plain values: router/configuration.h fills them from a configuration, tests fill them
// by hand.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/thread.h"
#include "process/stop_limit.h"
#include "rodeo/parameters.h"
#include "transport/publisher_keys.h"

namespace rodeo::router {

/// The settings of an input, as the registry's factory needs them.
struct InputSettings {
  std::string type;
  Parameters parameters;
  std::string where;  ///< file:line:column of its table, for messages; may be empty
};

/// The connection to the front-ends, through the cards of the input.
struct FrontEndSettings {
  bool enabled = false;
  std::uint64_t bytes_per_second = 10'000'000;  ///< limit for one link
};

struct RouterSettings {
  std::string name = "router";
  InputSettings input = {};
  std::uint32_t readers = 0;   ///< number of readers; 0: one for each DMA channel
  std::vector<int> cpus = {};  ///< the CPU of each reader, or empty
  base::IdlePolicy idle = base::IdlePolicy::sleep;
  transport::PublisherKeys publisher = {};  ///< keys of each reader's publisher
  bool wait_for_subscribers = false;
  FrontEndSettings front_ends = {};
  std::chrono::nanoseconds stop_limit = process::kStopLimit;  ///< limit of the time from the command to stop to the end
};

}  // namespace rodeo::router
