// The whole simulator: answers known in closed form, results that must never occur, and refusals.
#include "network/simulator/simulate.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rodeo::network {
namespace {

constexpr double kIn = 100e9;  // uplink and node link, bytes per second
constexpr double kOut = 3.125e9;

/// Triangles of overlapping events, each in a separate port: n live events, the youngest at its maximum.
double exact_periodic(double bytes, double rate) {
  const double n = std::floor((kIn - kOut) / kIn * bytes * rate / kOut) + 1;
  return n * ((kIn - kOut) / kIn * bytes - (n - 1) / 2 * kOut / rate);
}

Scenario scenario(std::uint64_t event_bytes, double rate_hz, std::uint32_t mtu = 1500) {
  Scenario s;
  s.traffic.event_bytes = event_bytes;
  s.traffic.event_rate_hz = rate_hz;
  s.traffic.mtu_bytes = mtu;
  s.duration_ns = 20'000'000;
  return s;
}

void expect_conserved(const PacketCount& count) {
  EXPECT_EQ(count.sent, count.delivered + count.dropped + count.in_flight);
  EXPECT_EQ(count.sent_bytes, count.delivered_bytes + count.dropped_bytes + count.in_flight_bytes);
}

struct Point {
  std::uint64_t event_bytes;
  double rate_hz;
  std::uint32_t mtu;
};

class ExactPeriodic : public testing::TestWithParam<Point> {};

TEST_P(ExactPeriodic, TheLargestOccupancyIsThatOfTheClosedForm) {
  const auto [bytes, rate, mtu] = GetParam();
  Scenario s = scenario(bytes, rate, mtu);
  s.duration_ns = static_cast<std::uint64_t>(40e9 / rate);
  const double expected = exact_periodic(wire_bytes_per_event(s.topology, s.traffic), rate);
  for (const Engine engine : {Engine::packet, Engine::train}) {
    s.engine = engine;
    const Outcome outcome = simulate(s).value();
    EXPECT_NEAR(static_cast<double>(outcome.max_buffer_bytes), expected, 0.005 * expected);
    EXPECT_EQ(outcome.drops.total(), 0u);
    EXPECT_EQ(outcome.retransmits, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Reference, ExactPeriodic,
                         testing::Values(Point{5'000'000, 1800, 1500}, Point{5'000'000, 6000, 1500},
                                         Point{5'000'000, 12'000, 1500}, Point{5'000'000, 18'000, 1500},
                                         Point{2'500'000, 12'000, 1500}, Point{1'000'000, 1000, 1500},
                                         Point{5'000'000, 12'000, 9000}, Point{8'000'000, 11'000, 9000}),
                         [](const auto& point) {
                           return std::to_string(point.param.event_bytes / 1000) + "kB_" +
                                  std::to_string(static_cast<int>(point.param.rate_hz)) + "Hz_mtu" +
                                  std::to_string(point.param.mtu);
                         });

TEST(Simulator, PoissonRoundRobinNeverExceedsTheBound) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Scenario s = scenario(5'000'000, 12'000);
    s.traffic.arrivals = Arrivals::poisson;
    s.traffic.events_in_flight = 0;
    s.seed = seed;
    s.engine = Engine::train;
    s.duration_ns = 300'000'000;
    const double bound = wire_bytes_per_event(s.topology, s.traffic) * (kIn / kOut - 1) / 2;
    const Outcome outcome = simulate(s).value();
    EXPECT_LE(static_cast<double>(outcome.max_buffer_bytes), bound);
    EXPECT_GT(static_cast<double>(outcome.max_buffer_bytes), 0.9 * bound);
  }
}

TEST(Simulator, ABufferAsLargeAsTheLargestOccupancyLosesNothing) {
  Scenario s = scenario(5'000'000, 12'000);
  s.traffic.arrivals = Arrivals::jittered;
  const Outcome free = simulate(s).value();
  s.buffer.shared_bytes = free.max_buffer_bytes;
  const Outcome enough = simulate(s).value();
  EXPECT_EQ(enough.drops.total(), 0u);
  EXPECT_EQ(enough.hash, free.hash);
  s.buffer.shared_bytes = free.max_buffer_bytes - 1;
  EXPECT_GT(simulate(s).value().drops.total(), 0u);
}

TEST(Simulator, ConservesPacketsAndBytesOfEveryKind) {
  for (const Engine engine : {Engine::packet, Engine::train}) {
    for (const CongestionControl control : {CongestionControl::none, CongestionControl::reno, CongestionControl::cubic}) {
      Scenario s = scenario(5'000'000, 12'000);
      s.engine = engine;
      s.tcp.control = control;
      s.buffer = switch_preset("qfx5120").value();
      s.topology.uplink_sharing = UplinkSharing::flow_hash;
      s.traffic.size_spread = SizeSpread::normal;
      s.traffic.size_sigma = 0.2;
      s.traffic.event_rate_hz = 9000;
      const Outcome outcome = simulate(s).value();
      EXPECT_GT(outcome.drops.total(), 0u);
      EXPECT_EQ(outcome.drops.total(), outcome.data.dropped);
      expect_conserved(outcome.data);
      expect_conserved(outcome.ack);
      expect_conserved(outcome.request);
    }
  }
}

TEST(Simulator, CountsTheRateFromTheFirstEventThatIsComplete) {
  Scenario s = scenario(5'000'000, 12'000);
  s.engine = Engine::train;
  s.duration_ns = 6'000'000;  // the first event takes 1.7 ms of it
  const Outcome outcome = simulate(s).value();
  EXPECT_NEAR(outcome.completed_rate_hz(), 12'000, 12'000 * 0.025);
  EXPECT_LT(static_cast<double>(outcome.events_completed) / 6e-3, 12'000 * 0.8);
}

TEST(Simulator, RefusesALoadThatALinkCannotCarry) {
  const auto refused = [](Scenario s) { return simulate(s).error().code; };
  EXPECT_EQ(refused(scenario(5'000'000, 20'000)), "network.overload");  // uplink
  Scenario slow_nodes = scenario(5'000'000, 12'000);
  slow_nodes.topology.node_link_bps = 10'000'000'000;
  EXPECT_EQ(refused(slow_nodes), "network.overload");
  Scenario slow_readouts = scenario(5'000'000, 12'000);
  slow_readouts.topology.readout_link_bps = 10'000'000'000;
  EXPECT_EQ(refused(slow_readouts), "network.overload");
}

TEST(Simulator, RefusesWhatCannotBeBuilt) {
  const auto refused = [](auto change) {
    Scenario s;
    change(s);
    const auto outcome = simulate(s);
    return outcome ? std::string("accepted") : outcome.error().code;
  };
  EXPECT_EQ(refused([](Scenario& s) { s.topology.racks = 5; }), "network.topology");
  EXPECT_EQ(refused([](Scenario& s) { s.topology.nodes = 100'000; }), "network.topology");
  EXPECT_EQ(refused([](Scenario& s) { s.topology.readouts = 0; }), "network.zero");
  EXPECT_EQ(refused([](Scenario& s) { s.traffic.event_bytes = 10; }), "network.size");
  EXPECT_EQ(refused([](Scenario& s) { s.traffic.mtu_bytes = 60; }), "network.size");
  EXPECT_EQ(refused([](Scenario& s) { s.traffic.event_rate_hz = std::nan(""); }), "network.zero");
  EXPECT_EQ(refused([](Scenario& s) { s.traffic.size_sigma = std::nan(""); }), "network.size");
  EXPECT_EQ(refused([](Scenario& s) { s.buffer.shared_bytes = 1000; }), "network.size");
  EXPECT_EQ(refused([](Scenario& s) { s.duration_ns = 0; }), "network.zero");
  EXPECT_EQ(refused([](Scenario& s) { s.buffer.cell_bytes = s.buffer.first_cell_metadata_bytes = 64; }), "network.size");
  EXPECT_EQ(refused([](Scenario& s) { s.buffer.cell_bytes = 100'000; }), "network.size");
  EXPECT_EQ(refused([](Scenario& s) { s.traffic.size_spread = SizeSpread::normal, s.traffic.size_sigma = 0.5; }),
            "network.size");
  EXPECT_EQ(refused([](Scenario& s) { s.traffic.size_spread = SizeSpread::log_normal, s.traffic.size_sigma = 1.1; }),
            "network.size");
}

}  // namespace
}  // namespace rodeo::network
