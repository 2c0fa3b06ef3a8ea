// The fast and the slow engine agree exactly, in every corner of the model, with and without lost packets.
#include <gtest/gtest.h>

#include "network/simulator/simulate.h"
#include "slow_simulator.h"

namespace rodeo::network {
namespace {

/// A small network whose buffer overflows, with short time-outs, so that many occur.
Scenario small() {
  Scenario s;
  s.topology.readouts = 6;
  s.topology.nodes = 4;
  s.topology.readout_link_bps = 100'000'000'000;
  s.topology.uplink_bps = 100'000'000'000;
  s.topology.uplinks = 4;
  s.traffic.event_bytes = 300'000;
  s.traffic.event_rate_hz = 20'000;
  s.traffic.arrivals = Arrivals::poisson;
  s.traffic.size_spread = SizeSpread::log_normal;
  s.traffic.size_sigma = 0.5;
  s.buffer.shared_bytes = 500'000;
  s.tcp.rto_min_ns = 5'000'000;
  s.tcp.delayed_ack_ns = 1'000'000;
  s.duration_ns = 25'000'000;
  return s;
}

void expect_twins_agree(const Scenario& s, bool losses = true) {
  const auto fast = simulate(s);
  ASSERT_TRUE(fast.has_value()) << fast.error().message();
  const Outcome slow = SlowSimulator(s).run();
  EXPECT_EQ(fast->hash, slow.hash);
  EXPECT_EQ(fast->max_buffer_bytes, slow.max_buffer_bytes);
  EXPECT_EQ(fast->max_buffer_cell_bytes, slow.max_buffer_cell_bytes);
  EXPECT_EQ(fast->drops, slow.drops);
  EXPECT_EQ(fast->data.sent, slow.data.sent);
  EXPECT_EQ(fast->data.delivered, slow.data.delivered);
  EXPECT_EQ(fast->data.sent_bytes, slow.data.sent_bytes);
  EXPECT_EQ(fast->ack.sent, slow.ack.sent);
  EXPECT_EQ(fast->ack.sent_bytes, slow.ack.sent_bytes);
  EXPECT_EQ(fast->ack.delivered_bytes, slow.ack.delivered_bytes);
  EXPECT_EQ(fast->request.sent, slow.request.sent);
  EXPECT_EQ(fast->retransmits, slow.retransmits);
  EXPECT_EQ(fast->fast_recoveries, slow.fast_recoveries);
  EXPECT_EQ(fast->probes, slow.probes);
  EXPECT_EQ(fast->timeouts, slow.timeouts);
  EXPECT_EQ(fast->duplicates, slow.duplicates);
  EXPECT_EQ(fast->events_completed, slow.events_completed);
  EXPECT_EQ(fast->events_offered, slow.events_offered);
  EXPECT_EQ(fast->latency_max_ns, slow.latency_max_ns);
  EXPECT_GT(fast->events_completed, 50u);
  if (losses) {
    EXPECT_GT(fast->drops.total(), 100u);
    EXPECT_GT(fast->fast_recoveries, 10u);
  }
}

TEST(Twins, AgreeWhereTheSharedPoolOverflows) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    Scenario s = small();
    s.seed = seed;
    expect_twins_agree(s);
  }
}

TEST(Twins, AgreeWithReno) {
  Scenario s = small();
  s.tcp.control = CongestionControl::reno;
  expect_twins_agree(s);
}

TEST(Twins, AgreeWithColdConnections) {
  Scenario s = small();
  s.tcp.warm = false;
  s.buffer.shared_bytes = 200'000;
  expect_twins_agree(s);
}

TEST(Twins, AgreeOnCellsDedicatedMemoryAndThresholds) {
  Scenario s = small();
  s.buffer.cell_bytes = 256;
  s.buffer.first_cell_metadata_bytes = 64;
  s.buffer.dedicated_bytes_per_port = 20'000;
  s.buffer.dynamic_threshold = 2;
  expect_twins_agree(s);
}

TEST(Twins, AgreeOnTimersOfAKernelAndReadoutsThatAreNotEquallyQuick) {
  Scenario s = small();
  s.tcp.timer_tick_ns = 4'000'000;
  s.traffic.readout_jitter_ns = 100'000;
  expect_twins_agree(s);
}

TEST(Twins, AgreeOnPortLimitsAndHashedUplinks) {
  Scenario s = small();
  s.topology.uplink_sharing = UplinkSharing::flow_hash;
  s.traffic.event_rate_hz = 8000;
  s.buffer.shared_bytes.reset();
  s.buffer.port_limit_bytes = 250'000;
  expect_twins_agree(s);
}

TEST(Twins, AgreeOnVirtualOutputQueues) {
  Scenario s = small();
  s.topology.uplink_sharing = UplinkSharing::flow_hash;
  s.traffic.event_rate_hz = 8000;
  s.buffer.virtual_output_queues = true;
  s.buffer.shared_bytes = 400'000;
  s.buffer.port_limit_bytes = 100'000;
  expect_twins_agree(s);
}

TEST(Twins, AgreeOnSeveralRacksCreditsPacingAndServers) {
  Scenario s = small();
  s.topology.racks = 2;
  s.topology.nodes = 8;
  s.traffic.event_rate_hz = 10'000;
  s.traffic.assignment = Assignment::least_loaded;
  s.traffic.request_credits = 4;
  s.traffic.request_gap_ns = 700;
  s.traffic.node_service_hz = 5000;
  s.traffic.readout_service_hz = 400'000;
  s.traffic.readout_response_ns = 300;
  s.traffic.processing_ns = 40'000;
  s.traffic.events_in_flight = 3;
  s.buffer.shared_bytes = 200'000;
  expect_twins_agree(s);
}

TEST(Twins, AgreeOnRandomAssignmentJitterAndLinksOfOddSpeeds) {
  Scenario s = small();
  s.topology.readout_link_bps = 37'000'000'000;
  s.topology.uplink_bps = 77'000'000'000;
  s.topology.node_link_bps = 23'000'000'000;
  s.traffic.arrivals = Arrivals::jittered;
  s.traffic.jitter_periods = 1.5;
  s.traffic.assignment = Assignment::random;
  s.traffic.event_rate_hz = 15'000;
  s.traffic.mtu_bytes = 9000;
  expect_twins_agree(s);
}

TEST(Twins, AgreeWithoutPropagationAndWithPortsFasterThanTheUplink) {
  Scenario s = small();
  s.topology.propagation_ns = 0;
  s.topology.uplink_bps = 20'000'000'000;
  s.topology.node_link_bps = 25'000'000'000;
  s.traffic.event_rate_hz = 3000;
  s.buffer.shared_bytes = 10'000;
  s.duration_ns = 20'000'000;
  expect_twins_agree(s, false);
}

TEST(Twins, AgreeWithAnInfiniteBuffer) {
  Scenario s = small();
  s.buffer = {};
  s.traffic.arrivals = Arrivals::periodic;
  s.traffic.size_spread = SizeSpread::fixed;
  s.traffic.size_sigma = 0;
  expect_twins_agree(s, false);
}

}  // namespace
}  // namespace rodeo::network
