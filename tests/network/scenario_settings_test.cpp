#include "network/scenario_settings.h"

#include <gtest/gtest.h>

namespace rodeo::network {
namespace {

const ScenarioSetting& setting(std::string_view name) { return *find_scenario_setting(name); }

TEST(ReadableSettings, AreWhatPeopleWrite) {
  const Scenario scenario;
  for (const auto& [name, text] : {std::pair{"event_size", "5 MB"},
                                   {"rate", "12 kHz"},
                                   {"node_link", "25 Gbps"},
                                   {"propagation", "1 us"},
                                   {"rto_min", "200 ms"},
                                   {"rto_max", "120 s"},
                                   {"buffer", "infinite"},
                                   {"port_limit", "none"},
                                   {"receive_window", "6 MiB"},
                                   {"arrivals", "periodic"},
                                   {"readouts", "48"}})
    EXPECT_EQ(setting(name).readable(scenario), text) << name;
}

TEST(ReadableSettings, AreReadAsTheyAreWritten) {
  Scenario scenario;
  scenario.tcp.probe_min_ns = scenario.topology.propagation_ns = 1'234;
  scenario.traffic.processing_ns = 250'000;
  for (const ScenarioSetting& one : scenario_settings()) {
    Scenario read = scenario;
    ASSERT_TRUE(one.assign(read, one.readable(scenario))) << one.key.name;
    EXPECT_EQ(one.text(read), one.text(scenario)) << one.key.name;
  }
}

TEST(ReadableSettings, OfAPresetSayItsBuffer) {
  const auto scenario = scenario_of({{"switch", "qfx5120"}});
  ASSERT_TRUE(scenario);
  EXPECT_EQ(setting("buffer").readable(*scenario), "27 MB");
  EXPECT_EQ(setting("cell").readable(*scenario), "256 B");
}

}  // namespace
}  // namespace rodeo::network
