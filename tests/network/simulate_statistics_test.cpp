// Properties over many runs: determinism, services that limit, constant memory, moments of random numbers.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "network/lossy_scenario.h"
#include "network/simulator/event_source.h"
#include "network/simulator/latencies.h"
#include "network/simulator/random.h"
#include "network/simulator/simulate.h"

namespace rodeo::network {
namespace {

TEST(Determinism, TheSameSeedGivesTheSameBitsOnEveryMachine) {
  struct Golden {
    Scenario scenario;
    std::uint64_t hash;
  };
  std::vector<Scenario> scenarios(6, lossy(7));
  scenarios[1].engine = Engine::train;
  scenarios[2].traffic.size_spread = SizeSpread::log_normal;
  scenarios[2].traffic.size_sigma = 0.4;
  scenarios[3].traffic.size_spread = SizeSpread::normal;
  scenarios[3].traffic.size_sigma = 0.2;
  scenarios[3].traffic.arrivals = Arrivals::jittered;
  scenarios[4].traffic.processing_ns = 200'000;
  scenarios[4].traffic.processing_exponential = true;
  scenarios[4].traffic.assignment = Assignment::random;
  scenarios[5].buffer = switch_preset("qfx5120").value();
  scenarios[5].buffer.shared_bytes = 2'000'000;
  scenarios[5].buffer.dynamic_threshold = 0.5;
  scenarios[5].topology.uplink_sharing = UplinkSharing::flow_hash;
  scenarios[5].traffic.event_rate_hz = 8000;
  const std::vector<std::uint64_t> golden = {664617440846680661u,   9054699111651722764u, 9108983664252319978u,
                                             15432408487201823116u, 7599835221689059099u, 2416293271135291993u};
  ASSERT_EQ(golden.size(), scenarios.size());
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    scenarios[i].duration_ns = 30'000'000;
    EXPECT_EQ(simulate(scenarios[i]).value().hash, golden[i]) << "scenario " << i;
    scenarios[i].seed = 8;
    EXPECT_NE(simulate(scenarios[i]).value().hash, golden[i]) << "scenario " << i;
  }
}

TEST(Determinism, LookingDoesNotChangeTheRun) {
  const Outcome unseen = simulate(lossy(3)).value();
  std::uint64_t largest = 0;
  std::uint64_t drops = 0;
  std::uint64_t samples = 0;
  std::uint64_t fragments = 0;
  std::uint64_t flow_drops = 0;
  Observers observers;
  observers.occupancy = [&](const OccupancySample& sample) {
    largest = std::max(largest, sample.max_bytes);
    drops += sample.drops;
    ++samples;
    EXPECT_LE(sample.last_bytes, sample.max_bytes);
  };
  observers.flow = [&](const FlowRecord& record) {
    fragments += record.fragments;
    flow_drops += record.segments_dropped;
  };
  observers.progress = [](std::uint64_t) { return true; };
  const Outcome seen = simulate(lossy(3), observers).value();
  EXPECT_EQ(seen.hash, unseen.hash);
  EXPECT_EQ(largest, seen.max_buffer_bytes);
  EXPECT_EQ(drops, seen.drops.total());
  EXPECT_EQ(flow_drops, seen.drops.total());
  EXPECT_EQ(samples, 5000u);
  EXPECT_GE(fragments, 12 * seen.events_completed);
}

TEST(Services, LimitTheRateOfADeepBufferSwitch) {
  // The paper's deep-buffer switch: 14.2 kHz, limited by the servers, not by the network.
  Scenario s;
  s.buffer = switch_preset("acx7100").value();
  s.engine = Engine::train;
  s.traffic.event_rate_hz = 18'000;
  s.traffic.node_service_hz = 14'200.0 / 32;
  s.duration_ns = 400'000'000;
  const Outcome outcome = simulate(s).value();
  const double warm_up = 32 * 32;  // events built before the first server falls behind
  EXPECT_NEAR(static_cast<double>(outcome.events_completed), 14'200 * 0.4, warm_up);
  EXPECT_LT(outcome.events_completed, outcome.events_offered);
  EXPECT_EQ(outcome.drops.total(), 0u);
}

TEST(Services, AreSaidToBeSlowerThanAskedFor) {
  Traffic traffic;
  traffic.readout_service_hz = 12'000;
  traffic.node_service_hz = 12'000.0 / 32;
  EXPECT_EQ(slower_than_asked(Topology{}, traffic), "");
  traffic.readout_service_hz = 1000;
  EXPECT_NE(slower_than_asked(Topology{}, traffic).find("a readout accepts 1000 Hz but gets 12000 Hz"), std::string::npos);
  traffic.readout_service_hz = 0;
  traffic.node_service_hz = 374;
  EXPECT_NE(slower_than_asked(Topology{}, traffic).find("a node's server accepts 374 Hz"), std::string::npos);
}

TEST(Credits, KeepTheBufferSmall) {
  Scenario s;
  s.engine = Engine::packet;
  s.duration_ns = 10'000'000;
  s.traffic.event_rate_hz = 6000;
  const std::uint64_t free = simulate(s).value().max_buffer_bytes;
  s.traffic.request_credits = 8;
  const Outcome shaped = simulate(s).value();
  EXPECT_LT(shaped.max_buffer_bytes, free / 2);
  EXPECT_GT(shaped.events_completed, 40u);
}

TEST(Memory, DoesNotGrowWithTheDuration) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers keep freed memory";
#endif
  const auto peak_kib = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  Scenario s = lossy(5);
  s.engine = Engine::train;
  s.duration_ns = 50'000'000;
  simulate(s).value();
  const long after_short = peak_kib();
  s.duration_ns = 500'000'000;
  simulate(s).value();
  EXPECT_LT(peak_kib() - after_short, 4096);
}

TEST(Progress, FalseEndsTheRun) {
  Scenario s = lossy(1);
  s.duration_ns = 100'000'000'000;
  Observers observers;
  observers.progress = [](std::uint64_t) { return false; };
  const Outcome outcome = simulate(s, observers).value();
  EXPECT_GT(outcome.virtual_ns, 0u);
  EXPECT_LT(outcome.virtual_ns, s.duration_ns);
}

TEST(Random, LogarithmAndExponentialAreThoseOfTheLibrary) {
  Random random(1, 0);
  for (int i = 0; i < 20'000; ++i) {
    const double x = std::ldexp(random.uniform() + 0x1p-60, static_cast<int>(random.below(60)) - 30);
    EXPECT_NEAR(portable_log(x), std::log(x), 1e-15 * std::max(1.0, std::fabs(std::log(x))));
    const double y = (random.uniform() - 0.5) * 100;
    EXPECT_NEAR(portable_exp(y) / std::exp(y), 1, 4e-15);
  }
  EXPECT_EQ(portable_sqrt(2.0), std::sqrt(2.0));
}

TEST(Random, HasTheMomentsItPromises) {
  Random random(42, 0);
  const int n = 200'000;
  double exponential = 0;
  double normal = 0;
  double square = 0;
  std::vector<int> below(7);
  for (int i = 0; i < n; ++i) {
    exponential += random.exponential();
    const double x = random.normal();
    normal += x;
    square += x * x;
    ++below[random.below(7)];
  }
  EXPECT_NEAR(exponential / n, 1, 0.01);
  EXPECT_NEAR(normal / n, 0, 0.01);
  EXPECT_NEAR(square / n, 1, 0.02);
  for (const int count : below) EXPECT_NEAR(count, n / 7.0, 600);
}

TEST(Sizes, HaveTheMeanThatWasAskedForHoweverWideTheyAre) {
  Traffic traffic;
  for (const auto& [spread, sigma] : {std::pair{SizeSpread::normal, 0.4}, std::pair{SizeSpread::log_normal, 1.0}}) {
    traffic.size_spread = spread;
    traffic.size_sigma = sigma;
    ASSERT_TRUE(check(Topology{}, traffic));
    EventSource source(Topology{}, traffic, 0, 1);
    double sum = 0;
    constexpr int kDraws = 400'000;
    for (int i = 0; i < kDraws; ++i) sum += static_cast<double>(source.draw_bytes());
    const double scatter = sigma / std::sqrt(kDraws);
    EXPECT_NEAR(sum / kDraws / 5e6, 1, 0.001 + 4 * scatter);
  }
}

TEST(Latencies, HavePercentilesToTwoThousandths) {
  Latencies latencies;
  EXPECT_EQ(latencies.percentile_ns(0.5), 0u);
  for (std::uint64_t ns = 1; ns <= 1'000'000; ++ns) latencies.record(ns);
  for (const double share : {0.0001, 0.01, 0.5, 0.99, 1.0})
    EXPECT_NEAR(static_cast<double>(latencies.percentile_ns(share)), share * 1e6, 0.002 * share * 1e6 + 1);
  EXPECT_EQ(latencies.max_ns(), 1'000'000u);
}

TEST(Random, StreamsOfOneSeedDiffer) {
  EXPECT_NE(Random(1, 0).next(), Random(1, 1).next());
  EXPECT_NE(Random(1, 0).next(), Random(2, 0).next());
  EXPECT_EQ(Random(1, 0).next(), Random(1, 0).next());
}

}  // namespace
}  // namespace rodeo::network
