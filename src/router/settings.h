// The settings of a router process as plain values: router/plan.h fills them from a configuration, tests fill them by hand.
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

/// The input, in the form that the registry takes.
struct InputSettings {
  std::string type;
  Parameters parameters;
  std::string where;  ///< file:line:column of its table, for messages; may be empty
};

/// The way to the front-ends, through the cards of the input.
struct FrontEndSettings {
  bool enabled = false;
  std::uint64_t bytes_per_second = 10'000'000;  ///< limit for one link
};

struct RouterSettings {
  std::string name = "router";
  InputSettings input = {};
  std::uint32_t readers = 0;   ///< 0: one for each DMA channel
  std::vector<int> cpus = {};  ///< one for each reader, or empty
  base::IdlePolicy idle = base::IdlePolicy::sleep;
  transport::PublisherKeys publisher = {};  ///< of each reader
  bool wait_for_subscribers = false;
  FrontEndSettings front_ends = {};
  std::chrono::nanoseconds stop_limit = process::kStopLimit;  ///< from the order to stop to the end
};

}  // namespace rodeo::router
