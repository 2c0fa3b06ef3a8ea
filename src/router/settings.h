// What one router process is to do, as plain values: router/plan.h fills it from a configuration, tests fill it by hand.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/thread.h"
#include "rodeo/parameters.h"

namespace rodeo::router {

/// The input, as the registry makes it.
struct InputSettings {
  std::string type;
  Parameters parameters;
  std::string where;  ///< file:line:column of its table, for messages; may be empty
};

struct RouterSettings {
  std::string name = "router";
  InputSettings input = {};
  std::uint32_t readers = 0;   ///< 0: one a card
  std::vector<int> cpus = {};  ///< one a reader, or empty
  base::IdlePolicy idle = base::IdlePolicy::sleep;
  std::filesystem::path bus = {};  ///< empty: transport::default_bus()
  std::string address = "127.0.0.1";
  std::vector<std::string> providers = {};
  std::filesystem::path secret_file = {};
  std::uint32_t page_bytes = 64U << 10;
  std::uint32_t pages = 64;
  std::chrono::nanoseconds flush = std::chrono::milliseconds{1};
  std::chrono::nanoseconds grace = std::chrono::seconds{5};
  bool wait_for_subscribers = false;
};

}  // namespace rodeo::router
