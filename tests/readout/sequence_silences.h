// Random runs in which ids repeat while a link is silent, begins late, lags, jumps or loses blocks. Times as in
// sequence_scenarios.h.
#pragma once

#include <algorithm>
#include <random>
#include <string>

#include "readout/sequence_scenarios.h"

namespace rodeo::test {

enum class Silence : std::uint8_t { none, silent, late_start, slow, jump, reset, blocks, count };

inline const char* name_of(Silence kind) {
  constexpr const char* kNames[] = {
      "none", "silent", "late start", "slow", "jump", "reset while silent", "blocks of several"};
  return kNames[static_cast<std::size_t>(kind)];
}

struct SilenceScenario : Scenario {
  Silence kind = Silence::none;
  std::uint64_t silent_for = 0;  // events
  std::uint32_t lag = 0;         // lag of the slow link, at most a quarter of the period; more cannot be detected
};

/// One reader and at least three links. Ids have 8 bits, or at least 16 bits for cases with resets.
inline SilenceScenario make_silence_scenario(std::uint32_t seed) {
  std::mt19937 engine(seed);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(engine() % n); };
  const auto between = [&](std::uint32_t a, std::uint32_t b) { return a + below(b - a + 1); };
  SilenceScenario s;
  s.seed = seed;
  s.kind = static_cast<Silence>(below(static_cast<std::uint32_t>(Silence::count)));
  s.full = below(2) == 0;
  s.bcid = below(2) == 0;
  s.links = between(3, 6);
  const bool resets = s.kind == Silence::reset;
  s.bits = resets ? (below(2) == 0 ? 16 : 24) : 8;
  s.reach = std::max<std::uint64_t>(resets ? 16 : 8, s.full ? 2 * s.links : 0);
  // The default window spans many periods of 8 bits; epochs are short.
  s.window = s.full ? 4096 : 16384;
  s.aside = 4 * s.reach + 2 * kScenarioStep * s.links + 64;
  s.timeout = between(100, 2000);
  const std::uint32_t period = resets ? between(300, 900) : 256;
  // The silence lasts half a period to twenty periods, often nearly a whole number of periods.
  s.silent_for = below(2) == 0 ? between(period / 2, 20 * period) : period * between(1, 20) + between(0, 12) - 6;
  const auto before = between(60, 700);
  const auto total = static_cast<std::uint32_t>(before + s.silent_for + between(200, 500));
  for (std::uint32_t g = 0; g < total; ++g) {
    const std::uint32_t epoch = resets ? g / period : 0;
    s.truth.push_back(epoch << 24 | (resets ? g % period : g));
    s.bcids.push_back(static_cast<std::uint16_t>(below(3564)));
    s.epoch.push_back(epoch);
  }
  const std::size_t bad = below(static_cast<std::uint32_t>(s.links));
  const std::uint32_t lag = s.lag = s.kind == Silence::slow ? between(20, 50) : 0;
  const std::uint32_t run = s.full ? 1 : between(1, 16);
  std::vector<bool> lost(total);
  for (std::size_t link = 0; link < s.links; ++link) {
    double last = -1;
    std::uint32_t drops = s.kind == Silence::blocks && link != bad ? between(1, 3) : 0;
    lost.assign(total, false);
    while (drops-- > 0) {
      const std::uint32_t from = between(before / 2, total - 1);
      for (std::uint32_t g = from; g < std::min(total, from + between(10, 60)); ++g) lost[g] = true;
    }
    for (std::uint32_t g = 0; g < total; ++g) {
      if (s.full && g % s.links != link) continue;
      const bool is_bad = link == bad && s.kind != Silence::none;
      const bool silent = g >= (s.kind == Silence::late_start ? 0 : before) && g < before + s.silent_for;
      if ((is_bad && s.kind != Silence::jump && silent) || lost[g]) continue;
      // A link sends its chunks in runs.
      const double at = std::max(last + 1e-3, static_cast<double>((g / run + 1) * run) + (is_bad ? lag : 0) +
                                                  static_cast<double>(below(100)) / 100);
      last = at;
      SentChunk c{static_cast<std::uint64_t>((at + 1) * 1000), link, g, id_of(s.truth[g], s.bits), s.bcids[g], 0};
      if (is_bad && s.kind == Silence::jump && g >= before && g < before + 16) {
        c.id = (c.id + 97) & 0xff;
        c.fault = 'j';
      }
      s.chunks.push_back(c);
    }
  }
  std::ranges::stable_sort(s.chunks, {}, &SentChunk::at);
  return s;
}

}  // namespace rodeo::test
