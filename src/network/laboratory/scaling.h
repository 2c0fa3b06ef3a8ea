// The scaling law of the laboratory: the dimensionless groups that determine the behaviour, and a network that is slower and
// smaller with the same groups. With a = laboratory rate / real rate and b = laboratory event / real event, times stretch by
// b/a.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "network/laboratory/settings.h"

namespace rodeo::network::laboratory {

struct Scale {
  double rate = 1;  ///< factor of bit rates
  double size = 1;  ///< factor of event and buffer sizes
  double time() const { return size / rate; }
};

/// The same network at another scale: I and O are multiplied by rate, S and B by size, f by rate/size, RTO and RTT by
/// size/rate. Sizes are rounded to bytes. The MTU does not change, so fragment / segment stays equal only if size is 1.
Settings scaled(const Settings& settings, const Scale& scale);

/// One group: its value in the laboratory and in the real network.
struct Group {
  std::string name;  ///< "S f / O"
  std::string meaning;
  std::optional<double> laboratory;
  std::optional<double> real;
  bool kept() const;  ///< true if both values are equal within 2 %
};

/// The groups I/O, S f/O, B/S, fragment/MSS, RTO x O/S, RTT x O/S of both networks. Without measured round trips the last
/// group is left out.
std::vector<Group> groups(const Settings& laboratory, std::optional<std::chrono::nanoseconds> laboratory_round_trip,
                          const Settings& real, std::optional<std::chrono::nanoseconds> real_round_trip);

}  // namespace rodeo::network::laboratory
