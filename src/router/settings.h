// What one router process is to do, as plain values: router/plan.h fills it from a configuration, tests fill it by hand.
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

/// The input, as the registry makes it.
struct InputSettings {
  std::string type;
  Parameters parameters;
  std::string where;  ///< file:line:column of its table, for messages; may be empty
};

/// The way to the front-ends, through the cards of the input.
struct FrontEndSettings {
  bool enabled = false;
  std::uint64_t bytes_per_second = 10'000'000;  ///< to one link, at most
};

struct RouterSettings {
  std::string name = "router";
  InputSettings input = {};
  std::uint32_t readers = 0;   ///< 0: one a DMA channel
  std::vector<int> cpus = {};  ///< one a reader, or empty
  base::IdlePolicy idle = base::IdlePolicy::sleep;
  transport::PublisherKeys publisher = {};  ///< of each reader
  bool wait_for_subscribers = false;
  FrontEndSettings front_ends = {};
  std::chrono::nanoseconds stop_limit = process::kStopLimit;  ///< from the order to stop to the end
};

}  // namespace rodeo::router
