// The tables [network...] of a configuration: the user's network, and the questions about it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rodeo/settings.h"
#include "settings/declarations.h"

namespace rodeo::network {

using settings::TableDeclaration;

struct Sweep {
  std::string method = "simulation";
  std::int64_t repeats = 1;
  std::uint64_t seed = 1;
  std::string search = "none";
  std::string low;
  std::string high;
  double tolerance = 0.01;
  double drops_allowed = 0;
};

/// A list of values, or a range.
struct SweepAxis {
  std::string key;
  std::vector<std::string> values;
  std::string from;
  std::string to;
  std::int64_t steps = 0;
  bool log = false;
};

const Settings<Sweep>& sweep_settings();
const Settings<SweepAxis>& axis_settings();

/// network/scenario_settings.h has the keys of topology, traffic, switch and simulation.
std::vector<TableDeclaration> network_tables();

}  // namespace rodeo::network
