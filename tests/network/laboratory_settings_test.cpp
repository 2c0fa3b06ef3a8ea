#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "network/laboratory/scaling.h"
#include "network/laboratory/schedule.h"
#include "network/laboratory/settings.h"
#include "network/laboratory/veto.h"
#include "network/simulator/simulate.h"

namespace rodeo::network::laboratory {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Settings small() {
  Settings settings;
  settings.topology.readouts = 8;
  settings.topology.nodes = 16;
  settings.topology.node_link_bps = 50'000'000;
  settings.topology.uplink_bps = 800'000'000;
  settings.traffic.event_bytes = 500'000;
  settings.traffic.event_rate_hz = 120;
  return settings;
}

TEST(ScalingLaw, KeepsAllGroupsWhenOnlyRatesAreScaled) {
  Settings real;
  real.buffer.shared_bytes = 27'000'000;
  const Settings lab = scaled(real, {.rate = 0.001, .size = 1});
  EXPECT_EQ(lab.topology.node_link_bps, 25'000'000u);
  EXPECT_DOUBLE_EQ(lab.traffic.event_rate_hz, 12);
  EXPECT_EQ(lab.tcp.rto_min_ns, 200'000'000'000u);
  const auto trip = std::chrono::microseconds(2);
  for (const Group& group : groups(lab, trip * 1000, real, trip)) EXPECT_TRUE(group.kept()) << group.name;
}

TEST(ScalingLaw, ASmallerEventKeepsAllButTheSegmentsOfAFragment) {
  Settings real;
  real.buffer.shared_bytes = 27'000'000;
  const Settings lab = scaled(real, {.rate = 0.001, .size = 0.1});
  EXPECT_EQ(lab.buffer.shared_bytes, 2'700'000u);
  EXPECT_DOUBLE_EQ(lab.traffic.event_rate_hz, 120);
  EXPECT_EQ(lab.tcp.rto_min_ns, 20'000'000'000u);
  for (const Group& group : groups(lab, std::nullopt, real, std::nullopt))
    EXPECT_EQ(group.kept(), group.name != "S / (R MSS)") << group.name;
}

TEST(ScalingLaw, AGroupThatOnlyOneSideHasIsNotKept) {
  const Settings settings = small();
  const auto list = groups(settings, std::chrono::microseconds(10), settings, std::nullopt);
  const auto trip = std::ranges::find(list, "RTT O / S", &Group::name);
  ASSERT_NE(trip, list.end());
  EXPECT_FALSE(trip->kept());
}

TEST(VetoRule, AStallOfNothingAddsNothing) { EXPECT_EQ(added_by_stall(small(), 0), 0); }

TEST(VetoRule, AStallOfAPeriodBringsEventsNearerUntilTheUplinkHasCaughtUp) {
  // In ms of drain time: usually 75 + 66.7 + 58.3 + ... = 375. The event of 0 ms arrives with that of 8.3 ms. Their fills
  // and the next one (5 ms each) are successive, so that at 30 ms the live events are 5, 11.7, 16.7, 21.7, 38.3, ... 71.7 ms
  // old: 390.
  EXPECT_NEAR(added_by_stall(small(), 1 / 120.0), 390.0 / 375 - 1, 1e-4);
  EXPECT_GT(added_by_stall(small(), 5 / 120.0), 3 * added_by_stall(small(), 1 / 120.0));
}

TEST(VetoRule, GrowsWithTheStall) {
  double before = 0;
  for (int milliseconds = 0; milliseconds < 200; ++milliseconds) {
    const double stall = milliseconds * 1e-3;
    const double now = added_by_stall(small(), stall);
    EXPECT_GE(now, before - 0.01) << stall;  // the value grows in steps of an event
    before = now;
  }
}

TEST(VetoRule, ANodeThatBuildsOneEventAtATimeCannotStackThem) {
  Settings settings = small();
  settings.topology.nodes = 1;
  settings.traffic.events_in_flight = 1;
  settings.traffic.event_rate_hz = 5;
  EXPECT_EQ(added_by_stall(settings, 10), 0);
}

TEST(VetoRule, AnUndisturbedRunCounts) { EXPECT_THAT(veto_reasons(small(), {}, {}), IsEmpty()); }

TEST(VetoRule, NamesWhatTheMachineDid) {
  const Disturbance all{.request_lateness_seconds = 0.1,
                        .answer_lateness_seconds = 0.1,
                        .clock_error_seconds = 0.1,
                        .machine_drops = 1,
                        .link_drops = 1,
                        .left_in_pool_bytes = 1514,
                        .counting_lateness_seconds = 0.16};
  EXPECT_THAT(veto_reasons(small(), all, {}), SizeIs(7));
  EXPECT_THAT(veto_reasons(small(), {.counting_lateness_seconds = 0.14}, {}), IsEmpty());  // 0.14 s in a run of 3 s
  EXPECT_THAT(veto_reasons(small(), {.request_lateness_seconds = 0.1}, {}),
              testing::ElementsAre(HasSubstr("a request was 100.00 ms late")));
  EXPECT_THAT(veto_reasons(small(), {.request_lateness_seconds = 0.1}, {.most_added_occupancy = 10}), IsEmpty());
}

TEST(LaboratoryCheck, MoreLoadThanALinkCarriesIsRefusedWithTheRateThatFits) {
  Settings settings = small();
  EXPECT_TRUE(check(settings));
  settings.topology.nodes = 15;
  settings.traffic.event_rate_hz = 177;  // 99 % of the link: an endless queue
  const auto refused = check(settings);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, "network.overload");
  EXPECT_THAT(refused.error().what, HasSubstr("a node's link"));
  EXPECT_THAT(refused.error().next, HasSubstr("may be 0.175"));
  settings.topology.nodes = 100;
  settings.traffic.event_rate_hz = 195;
  EXPECT_THAT(check(settings).error().what, HasSubstr("uplink"));
}

TEST(LaboratoryCheck, WhatCannotBeIsRefused) {
  const auto code_after = [](auto&& change) {
    Settings settings = small();
    change(settings);
    const auto checked = check(settings);
    return checked ? std::string("good") : checked.error().code;
  };
  EXPECT_EQ(code_after([](Settings&) {}), "good");
  EXPECT_EQ(code_after([](Settings& s) { s.topology.readouts = 0; }), "network.zero");
  EXPECT_EQ(code_after([](Settings& s) { s.traffic.event_bytes = 7; }), "network.size");
  EXPECT_EQ(code_after([](Settings& s) { s.buffer.shared_bytes = 1000; }), "network.size");
  EXPECT_EQ(code_after([](Settings& s) { s.traffic.events_in_flight = 0; }), "network.zero");
  EXPECT_EQ(code_after([](Settings& s) { s.duration_ns = 0; }), "network.zero");
  EXPECT_EQ(code_after([](Settings& s) { s.traffic.event_rate_hz = std::nan(""); }), "network.zero");
  EXPECT_EQ(code_after([](Settings& s) { s.topology.readouts = 600; }), "network.unsupported");
  EXPECT_EQ(code_after([](Settings& s) { s.topology.racks = 2, s.traffic.event_rate_hz = 60; }), "good");
  EXPECT_EQ(code_after([](Settings& s) { s.topology.racks = 3; }), "network.topology");
  EXPECT_EQ(code_after([](Settings& s) { s.buffer.virtual_output_queues = true; }), "network.unsupported");
  EXPECT_EQ(code_after([](Settings& s) { s.buffer.dynamic_threshold = 1; }), "network.unsupported");
  EXPECT_EQ(code_after([](Settings& s) { s.buffer.shared_bytes = 100'000, s.buffer.dynamic_threshold = 2000; }),
            "network.size");
  EXPECT_EQ(code_after([](Settings& s) { s.buffer.shared_bytes = 9'000'000'000; }), "network.unsupported");
  EXPECT_EQ(code_after([](Settings& s) {
              s.buffer.shared_bytes = 1536, s.buffer.cell_bytes = 256, s.buffer.first_cell_metadata_bytes = 64;
            }),
            "network.size");  // a frame of 1514 needs seven cells
  EXPECT_EQ(code_after([](Settings& s) { s.traffic.mtu_bytes = 100; }), "network.size");
  EXPECT_EQ(code_after([](Settings& s) { s.duration_ns = 100'000'000'000'000; }), "network.unsupported");
  EXPECT_EQ(code_after([](Settings& s) { s.traffic.assignment = Assignment::least_loaded; }), "network.unsupported");
  EXPECT_EQ(code_after([](Settings& s) { s.limit_readout_links = true, s.topology.readout_link_bps = 1'000'000; }),
            "network.overload");
}

Settings lasting(std::uint64_t duration_ns, std::uint64_t seed) {
  Settings settings = small();
  settings.duration_ns = duration_ns;
  settings.seed = seed;
  return settings;
}

TEST(Schedule, NodesTogetherHaveEachEventOnce) {
  Settings settings = lasting(2'000'000'000, 7);
  for (const Assignment assignment : {Assignment::round_robin, Assignment::random}) {
    settings.traffic.assignment = assignment;
    std::multiset<std::uint64_t> numbers;
    for (std::uint32_t node = 0; node < 16; ++node) {
      for (const ScheduledEvent& event : schedule_of(node, settings, 0.5)) {
        numbers.insert(event.number);
        EXPECT_NEAR(static_cast<double>(event.at_ns), (static_cast<double>(event.number) / 120 - 0.5) * 1e9, 1);
      }
    }
    EXPECT_EQ(numbers.size(), 300u);
    EXPECT_EQ(std::set<std::uint64_t>(numbers.begin(), numbers.end()).size(), 300u);
  }
}

TEST(Schedule, EachRackHasTheRateAndRacksTakeTurns) {
  Settings settings = lasting(2'000'000'000, 7);
  settings.topology.racks = 2;
  std::vector<std::size_t> counts(2);
  for (std::uint32_t node = 0; node < 16; ++node) {
    for (const ScheduledEvent& event : schedule_of(node, settings, 0)) {
      ++counts[node / 8];
      EXPECT_EQ(event.number % 8, node % 8);
      const double phase = node < 8 ? 0 : 0.5;
      EXPECT_NEAR(static_cast<double>(event.at_ns), (static_cast<double>(event.number) + phase) / 120 * 1e9, 1);
    }
  }
  EXPECT_EQ(counts, (std::vector<std::size_t>{240, 240}));
}

TEST(Schedule, HasTheEventsOfTheSimulator) {
  Settings settings = lasting(200'000'000, 5);
  settings.traffic.arrivals = Arrivals::poisson;
  settings.traffic.size_spread = SizeSpread::log_normal;
  settings.traffic.size_sigma = 0.3;
  std::uint64_t scheduled = 0;
  for (std::uint32_t node = 0; node < 16; ++node) scheduled += schedule_of(node, settings, 0).size();
  const auto simulated = simulate(settings);
  ASSERT_TRUE(simulated);
  EXPECT_EQ(scheduled, simulated->events_offered);
}

TEST(Schedule, PoissonArrivalsAndSpreadSizesHaveTheMeansAskedFor) {
  Settings settings = lasting(1'000'000'000'000, 3);
  settings.topology.nodes = 1;
  settings.traffic.arrivals = Arrivals::poisson;
  for (const SizeSpread spread : {SizeSpread::normal, SizeSpread::log_normal}) {
    settings.traffic.size_spread = spread;
    settings.traffic.size_sigma = 0.2;
    const auto events = schedule_of(0, settings, 0);
    const double n = static_cast<double>(events.size());
    EXPECT_NEAR(n, 120'000, 5 * std::sqrt(120'000));
    double sum = 0;
    double squares = 0;
    for (const ScheduledEvent& event : events) {
      sum += static_cast<double>(event.bytes);
      squares += static_cast<double>(event.bytes) * static_cast<double>(event.bytes);
    }
    EXPECT_NEAR(sum / n, 500'000, 2000);
    EXPECT_NEAR(std::sqrt(squares / n - sum / n * sum / n), 100'000, 2000);
    EXPECT_TRUE(std::ranges::is_sorted(events, {}, &ScheduledEvent::at_ns));
  }
}

TEST(Schedule, FragmentsAddUpToTheEvent) {
  for (const std::uint64_t bytes : {48ull, 49ull, 500'000ull, 1ull}) {
    std::uint64_t sum = 0;
    for (std::uint32_t readout = 0; readout < 48; ++readout) sum += fragment_bytes(bytes, readout, 48);
    EXPECT_EQ(sum, bytes);
  }
}

}  // namespace
}  // namespace rodeo::network::laboratory
