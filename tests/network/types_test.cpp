#include <gtest/gtest.h>

#include "network/types.h"

namespace rodeo::network {
namespace {

TEST(Presets, AreThoseOfThePaper) {
  EXPECT_EQ(topology_preset("lab-2023").value().readouts, 48u);
  EXPECT_EQ(topology_preset("hl-lhc").value().readouts, 600u);
  EXPECT_EQ(switch_preset("qfx5120").value().shared_bytes, 27'000'000u);
  EXPECT_TRUE(switch_preset("acx7100").value().virtual_output_queues);
}

TEST(Presets, AnUnknownNameIsAnError) {
  EXPECT_EQ(topology_preset("lab").error().code, "network.unknown_preset");
  EXPECT_EQ(switch_preset("").error().code, "network.unknown_preset");
}

TEST(Topology, ZeroOfAnythingIsAnError) {
  Topology topology;
  topology.readouts = 0;
  EXPECT_EQ(check(topology, Traffic{}).error().code, "network.zero");
  Traffic traffic;
  traffic.event_rate_hz = 0;
  EXPECT_EQ(check(Topology{}, traffic).error().code, "network.zero");
}

}  // namespace
}  // namespace rodeo::network
