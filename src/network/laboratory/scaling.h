// The scaling law of the laboratory: the dimensionless groups that determine the behaviour, and how to make a network slower
// and smaller without changing them. With a = laboratory rate / real rate and b = laboratory event / real event, times
// stretch by b/a.
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

/// The same network at another scale: I, O x rate; S, B x size; f x rate/size; RTO, RTT x size/rate. Sizes are rounded to
/// bytes. The MTU does not change, so fragment / segment is kept only if size is 1.
Settings scaled(const Settings& settings, const Scale& scale);

/// One group: its value in the laboratory and in the real network.
struct Group {
  std::string name;  ///< "S f / O"
  std::string meaning;
  std::optional<double> laboratory;
  std::optional<double> real;
  bool kept() const;  ///< equal within 2 %
};

/// I/O, S f/O, B/S, fragment/MSS, RTO x O/S, RTT x O/S of both. Without measured round trips the last is left out.
std::vector<Group> groups(const Settings& laboratory, std::optional<std::chrono::nanoseconds> laboratory_round_trip,
                          const Settings& real, std::optional<std::chrono::nanoseconds> real_round_trip);

}  // namespace rodeo::network::laboratory
