// The seeds of the random scenarios that a test runs.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace rodeo::test {

struct ScenarioSeeds {
  std::uint32_t first = 1;
  std::uint32_t count = 0;
};

/// First seed and count: from RODEO_SCENARIOS=FIRST:COUNT, else 1 and the given count.
inline ScenarioSeeds scenario_seeds(std::uint32_t count) {
  const auto number = [](const std::string& text) { return static_cast<std::uint32_t>(std::stoul(text)); };
  if (const char* const of = std::getenv("RODEO_SCENARIOS")) {
    const std::string text = of;
    return {number(text), number(text.substr(text.find(':') + 1))};
  }
  return {.count = count};
}

// The most of `count` runs with this chance: the mean plus three standard deviations.
inline std::uint32_t runs_by_chance(double chance, std::uint32_t count) {
  const double mean = chance * count;
  return static_cast<std::uint32_t>(mean + 3 * std::sqrt(mean) + 1);
}

}  // namespace rodeo::test
