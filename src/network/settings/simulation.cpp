// Settings of a run: engine, congestion control, duration, seed.
#include "network/settings/tables.h"
#include "network/settings/values.h"

namespace rodeo::network::settings {

namespace {

using Kind = ScenarioSetting::Kind;

constexpr Names<Engine, 2> kEngines{{{{"packet", Engine::packet}, {"train", Engine::train}}}};
constexpr Names<CongestionControl, 3> kControls{
    {{{"none", CongestionControl::none}, {"reno", CongestionControl::reno}, {"cubic", CongestionControl::cubic}}}};

}  // namespace

std::vector<ScenarioSetting> simulation_table() {
  return {
      {"engine",
       "simulation",
       Kind::choice,
       "packet follows every packet; train is many times faster and within 0.5 % of it. Where connections wait for their "
       "windows, or packets are lost, it follows packets too, at their cost.",
       {"packet", "train"},
       READS(kEngines.read(s.engine, t)),
       WRITES(kEngines.text(s.engine))},
      {"tcp",
       "simulation",
       Kind::choice,
       "Congestion control; none sends fragments at once and never again.",
       {"none", "reno", "cubic"},
       READS(kControls.read(s.tcp.control, t)),
       WRITES(kControls.text(s.tcp.control))},
      {"duration",
       "simulation",
       Kind::duration,
       "Virtual time of a run.",
       {},
       READS(read_duration(s.duration_ns, t)),
       WRITES(seconds(s.duration_ns))},
      {"seed",
       "simulation",
       Kind::count,
       "Seed of everything random.",
       {},
       READS(read_count(s.seed, t)),
       WRITES(std::to_string(s.seed))},
  };
}

}  // namespace rodeo::network::settings
