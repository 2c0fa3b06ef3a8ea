#include "network/formula/superposition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "network/formula/closed_forms.h"

namespace rodeo::network {
namespace {

/// The slow twin: in small time steps, it adds incoming and subtracts outgoing bytes, port by port.
double stepped_maximum(std::vector<Burst> bursts, const SuperpositionSettings& settings, double step) {
  const double in = settings.input_bps / 8 * step;
  const double out = settings.output_bps / 8 * step;
  std::stable_sort(bursts.begin(), bursts.end(), [](const Burst& a, const Burst& b) { return a.start_s < b.start_s; });
  std::vector<double> held(settings.ports);
  std::size_t current = 0;
  double largest = 0;
  double left = bursts.empty() ? 0 : bursts[0].bytes;
  for (double time = 0; current < bursts.size(); time += step) {
    double room = in;
    while (current < bursts.size() && bursts[current].start_s <= time && room > 0) {
      const double moved = std::min(room, left);
      held[bursts[current].port] += moved;
      left -= moved;
      room -= moved;
      if (left > 0) break;
      if (++current < bursts.size()) left = bursts[current].bytes;
    }
    double sum = 0;
    for (double& one : held) {
      one = std::max(0.0, one - out);
      sum += one;
    }
    largest = std::max(largest, sum);
  }
  return largest;
}

TEST(Superposition, IsTheExactFormWhereItsPremisesHold) {
  std::mt19937 random(1);
  const auto between = [&](double low, double high) { return std::uniform_real_distribution(low, high)(random); };
  for (int i = 0; i < 300; ++i) {
    FormulaInput input;
    input.output_bps = between(1e9, 100e9);
    input.ports = 1 + random() % 64;
    input.input_bps = input.output_bps * between(1.05, 64);
    input.event_bytes = std::exp(between(std::log(1e3), std::log(1e8)));
    const double limit = std::min(input.input_bps, input.output_bps * input.ports) / 8 / input.event_bytes;
    input.event_rate_hz = between(0.02, 0.999) * limit;
    const ClosedForms forms = closed_forms(input).value();
    ASSERT_TRUE(forms.valid) << forms.why;
    const auto bursts = make_bursts(
        {.event_bytes = input.event_bytes, .event_rate_hz = input.event_rate_hz, .ports = input.ports, .events = 400});
    const auto sum = superpose(bursts, {.input_bps = input.input_bps, .output_bps = input.output_bps, .ports = input.ports});
    EXPECT_NEAR(sum->max_bytes, forms.exact_bytes.value(), 1e-6 * input.event_bytes) << i;
    EXPECT_LE(forms.paper_bytes, forms.exact_bytes.value() * (1 + 1e-9)) << i;
  }
}

TEST(Superposition, NeverExceedsTheBound) {
  std::mt19937 random(2);
  for (int i = 0; i < 100; ++i) {
    const double ratio = std::uniform_real_distribution(1.2, 40.0)(random);
    const FormulaInput input{
        .event_bytes = 1e6,
        .event_rate_hz = 1,
        .input_bps = ratio * 10e9,
        .output_bps = 10e9,
        .ports = static_cast<std::uint32_t>(std::ceil(ratio)) + static_cast<std::uint32_t>(random() % 3)};
    const double bound = closed_forms(input)->bound_bytes.value();
    SequenceSettings settings{.event_bytes = 1e6,
                              .event_rate_hz = 0.97 * input.input_bps / 8e6,
                              .ports = input.ports,
                              .arrivals = Arrivals::poisson,
                              .events = 2000,
                              .seed = random()};
    const SuperpositionSettings network{.input_bps = input.input_bps, .output_bps = 10e9, .ports = input.ports};
    EXPECT_LE(superpose(make_bursts(settings), network)->max_bytes, bound * (1 + 1e-9)) << ratio;
    // Simultaneous events are the worst case and reach the bound.
    settings.event_rate_hz = 1e12;
    settings.arrivals = Arrivals::periodic;
    EXPECT_NEAR(superpose(make_bursts(settings), network)->max_bytes, bound, 1e-6 * bound) << ratio;
  }
}

TEST(Superposition, AgreesWithSmallStepsOfTime) {
  std::mt19937 random(3);
  for (int i = 0; i < 20; ++i) {
    const SuperpositionSettings network{.input_bps = 8e6 * static_cast<double>(2 + random() % 9),
                                        .output_bps = 8e6,
                                        .ports = 1 + static_cast<std::uint32_t>(random() % 4)};
    std::vector<Burst> bursts(12);
    for (Burst& burst : bursts) {
      burst = {std::uniform_real_distribution(0.0, 0.2)(random), 1e3 * static_cast<double>(1 + random() % 40),
               static_cast<std::uint32_t>(random() % network.ports)};
    }
    const double exact = superpose(bursts, network)->max_bytes;
    const double step = 1e-6;
    EXPECT_NEAR(stepped_maximum(bursts, network, step), exact, 3 * step * network.input_bps / 8) << i;
  }
}

TEST(Superposition, EventsForOnePortQueueInIt) {
  // Two events of 1 MB, each in at 10 MB/s, out at 1 MB/s: 0.9 MB after the first has arrived, 1.8 MB after both.
  const SuperpositionSettings network{.input_bps = 80e6, .output_bps = 8e6, .ports = 1};
  const std::vector<Burst> bursts{{0, 1e6, 0}, {0, 1e6, 0}};
  const auto sum = superpose(bursts, network);
  EXPECT_NEAR(sum->max_bytes, 1.8e6, 1);
  EXPECT_NEAR(sum->last_drained_s, 2.0, 1e-9);
}

TEST(Superposition, EventsWithUplinksOfTheirOwnComeInTogether) {
  SuperpositionSettings network{.input_bps = 80e6, .output_bps = 8e6, .ports = 2};
  const std::vector<Burst> bursts{{0, 1e6, 0}, {0, 1e6, 1}};
  EXPECT_NEAR(superpose(bursts, network)->max_bytes, 1.7e6, 1);
  network.one_uplink = false;
  EXPECT_NEAR(superpose(bursts, network)->max_bytes, 1.8e6, 1);
}

TEST(Superposition, ItsPointsAreTheCornersOfTheSum) {
  const SuperpositionSettings network{.input_bps = 80e6, .output_bps = 8e6, .ports = 1, .keep_points = true};
  const auto sum = superpose(std::vector<Burst>{{0.5, 1e6, 0}}, network).value();
  ASSERT_EQ(sum.points.size(), 3u);
  EXPECT_NEAR(sum.points[0].bytes, 0, 1e-6);
  EXPECT_NEAR(sum.points[1].time_s, 0.6, 1e-12);
  EXPECT_NEAR(sum.points[1].bytes, 0.9e6, 1e-3);
  EXPECT_NEAR(sum.points[2].time_s, 1.5, 1e-9);
  EXPECT_NEAR(sum.points[2].bytes, 0, 1e-3);
}

TEST(Superposition, RefusesWhatIsNoEvent) {
  const SuperpositionSettings network{};
  EXPECT_EQ(superpose(std::vector<Burst>{{0, 0, 0}}, network).error().code, "network.zero");
  EXPECT_EQ(superpose(std::vector<Burst>{{NAN, 1, 0}}, network).error().code, "network.bad_sequence");
  EXPECT_EQ(superpose(std::vector<Burst>{{0, 1, 32}}, network).error().code, "network.bad_sequence");
  EXPECT_EQ(superpose({}, SuperpositionSettings{.ports = 0}).error().code, "network.zero");
}

TEST(Sequences, AreTheSameForTheSameSeed) {
  const SequenceSettings settings{.arrivals = Arrivals::poisson, .events = 100, .seed = 7};
  const auto first = make_bursts(settings);
  const auto second = make_bursts(settings);
  EXPECT_TRUE(std::equal(first.begin(), first.end(), second.begin(),
                         [](const Burst& a, const Burst& b) { return a.start_s == b.start_s; }));
  EXPECT_NEAR(make_bursts({.arrivals = Arrivals::poisson, .events = 100'000}).back().start_s, 100'000 / 12e3, 0.1);
}

}  // namespace
}  // namespace rodeo::network
