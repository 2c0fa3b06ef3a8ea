// The scaling law of the laboratory: which dimensionless groups decide what happens, and how a network is made slower and smaller with the
// groups kept. With a = laboratory rate / real rate and b = laboratory event / real event, times stretch by b/a.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "network/laboratory/settings.h"

namespace rodeo::network::laboratory {

struct Scale {
  double rate = 1;  ///< bit rates are multiplied by it
  double size = 1;  ///< event and buffer sizes are multiplied by it
  double time() const { return size / rate; }
};

/// The same network at another scale: I, O x rate; S, B x size; f x rate/size; RTO, RTT x size/rate. Sizes are rounded to bytes.
/// The MTU stays, so fragment / segment is kept only if size is 1.
Settings scaled(const Settings& settings, const Scale& scale);

/// One group in the laboratory and in what it stands for.
struct Group {
  std::string name;  ///< "S f / O"
  std::string meaning;
  std::optional<double> laboratory;
  std::optional<double> real;
  bool kept() const;  ///< equal to 2 %
};

/// I/O, S f/O, B/S, fragment/MSS, RTO x O/S, RTT x O/S of both. Round trips: nothing if not measured.
std::vector<Group> groups(const Settings& laboratory, std::optional<std::chrono::nanoseconds> laboratory_round_trip,
                          const Settings& real, std::optional<std::chrono::nanoseconds> real_round_trip);

}  // namespace rodeo::network::laboratory
