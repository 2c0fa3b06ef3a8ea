// Random runs of some links with one kind of fault each. Times are in events, one event per microsecond. The links may have
// several readers, which pause and continue at random.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <random>
#include <vector>

namespace rodeo::test {

enum class LinkFault {
  none,
  loss,
  dup,
  flip,
  silent,
  dead,
  jump_alone,
  restart_alone,
  storm,
  sparse,
  short_epochs,
  silent_all,
  mix,
  list_bad,
  count
};

inline const char* name_of(LinkFault fault) {
  constexpr const char* kNames[] = {"none",          "loss",  "dup",    "flip",         "silent",     "dead", "jump_alone",
                                    "restart_alone", "storm", "sparse", "short_epochs", "silent_all", "mix",  "list_bad"};
  return kNames[static_cast<std::size_t>(fault)];
}

struct SentChunk {
  std::uint64_t at = 0;  // ns
  std::size_t link = 0;
  std::size_t event = 0;  // index into `truth`
  std::uint32_t id = 0;
  std::uint16_t bcid = 0;
  char fault = 0;  // 'f': flipped id, 'j': wrong counter, 'd': sent twice
};

struct Scenario {
  std::uint32_t seed = 0;
  std::uint32_t bits = 32;  // 32: 24 and the event counter resets
  bool full = false;
  bool listed = false;
  bool bcid = false;
  std::size_t links = 1;
  std::size_t readers = 1;
  LinkFault fault = LinkFault::none;
  std::uint64_t reach = 16;
  std::uint64_t window = 256;
  std::size_t aside = 1024;
  std::uint64_t timeout = 200;       // events
  std::vector<std::uint32_t> truth;  // extended L1 ids
  std::vector<std::uint16_t> bcids;
  std::vector<std::size_t> epoch;  // by event
  std::vector<SentChunk> chunks;   // in the order of arrival
  std::vector<SentChunk> list;     // id: extended
};

inline constexpr std::uint32_t kScenarioStep = 8;

inline std::uint32_t id_of(std::uint32_t truth, std::uint32_t bits) {
  return bits == 32 ? truth : truth & 0xffffffU & ((1U << bits) - 1);
}

inline Scenario make_scenario(std::uint32_t seed, bool several_readers = false) {
  std::mt19937 engine(seed);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(engine() % n); };
  const auto between = [&](std::uint32_t a, std::uint32_t b) { return a + below(b - a + 1); };
  const auto chance = [&](double p) { return static_cast<double>(engine()) / 4294967296.0 < p; };
  const auto pick = [&](std::initializer_list<std::uint32_t> of) {
    return *(of.begin() + below(static_cast<std::uint32_t>(of.size())));
  };
  Scenario s;
  s.seed = seed;
  s.bits = pick({8, 16, 24, 32});
  s.full = chance(.4) && !several_readers;
  s.listed = chance(.4);
  s.bcid = chance(.5);
  const bool visible = s.bits == 32;
  s.links = between(several_readers ? 2 : 1, s.full ? 4 : 6);
  if (several_readers) s.readers = between(2, std::min<std::uint32_t>(3, static_cast<std::uint32_t>(s.links)));
  s.fault = static_cast<LinkFault>(below(static_cast<std::uint32_t>(LinkFault::count)));
  s.reach = s.bits == 8 ? pick({4, 8}) : pick({4, 8, 16});
  if (s.full) s.reach = std::max<std::uint64_t>(s.reach, 2 * s.links);
  s.window = std::bit_ceil(std::max<std::uint64_t>(64, 4 * s.reach + 2 * kScenarioStep * (s.full ? s.links : 1)));
  if (several_readers) s.window = std::bit_ceil(std::max<std::uint64_t>(128, 12 * s.reach));
  s.aside = several_readers ? 4 * s.reach + 2 * kScenarioStep + 64 : 4 * s.window;
  s.timeout = 8 * s.reach + 40;
  const auto skew = static_cast<std::uint32_t>(s.reach / 2);
  const std::uint32_t events = between(150, 500) * (several_readers ? 4 : 1);
  std::vector<std::uint32_t> lengths;
  std::uint32_t sum = 0;
  const auto add = [&](std::uint32_t n) {
    lengths.push_back(n);
    sum += n;
  };
  const auto gap = static_cast<std::uint32_t>(5 * s.reach + 20);
  if (s.fault == LinkFault::short_epochs && (visible || (s.listed && (s.bits >= 16 || s.bcid)))) {
    while (sum < events) add(between(1, 20));
  } else if ((visible || s.listed || s.bits >= 16) && chance(.6)) {
    while (sum < events) add(between(gap, std::max(gap, 200U)));
  } else {
    add(events);
  }
  const std::uint32_t start = lengths.size() == 1 ? pick({0, 0, below(6), below(30001)}) : 0;
  const std::uint32_t epoch0 = pick({0, 0, 254});
  for (std::size_t e = 0; e < lengths.size(); ++e) {
    for (std::uint32_t i = 0; i < lengths[e]; ++i) {
      s.truth.push_back((((epoch0 + static_cast<std::uint32_t>(e)) & 0xff) << 24) + (e == 0 ? start : 0) + i);
      s.bcids.push_back(static_cast<std::uint16_t>(below(3564)));
      s.epoch.push_back(e);
    }
  }
  const auto total = static_cast<std::uint32_t>(s.truth.size());
  const std::uint32_t a = between(20, total - 20);
  const std::uint32_t jump = pick({9, 20, skew, static_cast<std::uint32_t>(3 * s.reach), 1000});
  const std::uint32_t b = std::min(total, a + pick({10, 30, 100, total}));
  const std::uint32_t storm = pick({3, 9, static_cast<std::uint32_t>(s.reach), 40, 100});
  const double p = pick({2, 10, 50}) / 1000.0;
  std::vector<double> occupancy;
  for (std::size_t i = 0; i < s.links; ++i)
    occupancy.push_back(s.fault == LinkFault::sparse && (i != 0 || s.links == 1 || s.full) ? pick({2, 10, 30}) / 100.0
                                                                                           : 1.0);
  const std::uint32_t low = s.bits == 32 ? 0xffffffU : (1U << s.bits) - 1;
  for (std::size_t link = 0; link < s.links; ++link) {
    std::uint32_t lag = between(0, skew);
    double last = -1;
    const bool bad = link == 0;
    for (std::uint32_t g = 0; g < total; ++g) {
      if (s.full && g % s.links != link) continue;
      if (g % 24 == 0) lag = between(0, skew);
      const double at = std::max(last + 1e-3, g + lag + chance(1) * .5);
      last = at;
      SentChunk c{static_cast<std::uint64_t>((at + 1) * 1000), link, g, id_of(s.truth[g], s.bits), s.bcids[g], 0};
      const bool spell = g >= a && g < b;
      if (s.fault == LinkFault::dead && bad && s.links > 1) continue;
      if (s.fault == LinkFault::silent && bad && spell) continue;
      if ((s.fault == LinkFault::silent_all || s.fault == LinkFault::storm) && g >= a && g < a + storm) continue;
      if (occupancy[link] < 1 && !chance(occupancy[link])) continue;
      const bool mixed = s.fault == LinkFault::mix;
      if ((mixed || s.fault == LinkFault::loss) && chance(p)) continue;
      if (s.fault == LinkFault::jump_alone && bad && spell) {
        c.id = (c.id & ~low) | ((c.id + jump) & low);
        c.fault = 'j';
      }
      if (s.fault == LinkFault::restart_alone && bad && spell) {
        c.id = visible ? ((c.id >> 24) + 1) << 24 | (g - a) : (g - a) & low;
        c.fault = 'j';
      }
      if ((mixed || (s.fault == LinkFault::flip && bad)) && chance(p)) {
        c.id ^= 1U << below(s.bits);
        c.fault = 'f';
      }
      s.chunks.push_back(c);
      if ((mixed || s.fault == LinkFault::dup) && chance(p)) {
        if (c.fault == 0) c.fault = 'd';
        s.chunks.push_back(c);
      }
    }
  }
  std::stable_sort(s.chunks.begin(), s.chunks.end(), [](const SentChunk& x, const SentChunk& y) { return x.at < y.at; });
  if (s.listed) {
    std::uint32_t lag = between(0, skew);
    const std::uint32_t lead = pick({0, 0, skew, 100, 300});
    double last = -400;
    for (std::uint32_t g = 0; g < total; ++g) {
      if (g % 24 == 0) lag = between(0, skew);
      last = std::max(last + 1e-3, static_cast<double>(g) + lag - lead);
      if (s.fault == LinkFault::list_bad && chance(.005)) continue;
      std::uint32_t id = s.truth[g];
      if (s.fault == LinkFault::list_bad && chance(.005)) id ^= 1U << below(32);
      s.list.push_back({static_cast<std::uint64_t>(std::max(0.0, last + 1) * 1000), 0, g, id, s.bcids[g], 0});
    }
  }
  return s;
}

}  // namespace rodeo::test
