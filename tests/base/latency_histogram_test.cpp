#include "base/latency_histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace rodeo::base {
namespace {

TEST(LatencyHistogram, PercentilesAreWithinThreePercentOfTheSortedValues) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> draw(10.0, 2.0);
  std::vector<std::uint64_t> values;
  const auto histogram = std::make_unique<LatencyHistogram>();
  for (int i = 0; i < 100'000; ++i) {
    values.push_back(static_cast<std::uint64_t>(draw(random)));
    histogram->record(values.back());
  }
  std::sort(values.begin(), values.end());
  LatencySummary sum;
  histogram->add_to(sum);
  EXPECT_EQ(sum.count(), values.size());
  EXPECT_EQ(sum.max_ns(), values.back());
  for (const double share : {0.01, 0.5, 0.9, 0.99, 0.999}) {
    const auto exact = static_cast<double>(values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))]);
    const auto found = static_cast<double>(sum.percentile_ns(share));
    EXPECT_GE(found, exact) << share;
    EXPECT_LE(found, exact * 1.04 + 1) << share;
  }
}

TEST(LatencyHistogram, LosesNothingOfTwoThreadsThatShareIt) {
  constexpr std::uint64_t kEach = 1'000'000;
  const auto histogram = std::make_unique<LatencyHistogram>();
  const auto record = [&] {
    for (std::uint64_t i = 0; i < kEach; ++i) histogram->record(7);
  };
  std::thread other(record);
  record();
  other.join();
  LatencySummary sum;
  histogram->add_to(sum);
  EXPECT_EQ(sum.count(), 2 * kEach);
}

TEST(LatencyHistogram, SumsSeveralThreadsAndKeepsTheLargest) {
  const auto a = std::make_unique<LatencyHistogram>();
  const auto b = std::make_unique<LatencyHistogram>();
  a->record(10);
  b->record(20);
  b->record(std::uint64_t{1} << 50);
  LatencySummary sum;
  EXPECT_EQ(sum.percentile_ns(0.5), 0u);
  a->add_to(sum);
  b->add_to(sum);
  EXPECT_EQ(sum.count(), 3u);
  EXPECT_EQ(sum.percentile_ns(0.0), 10u);
  EXPECT_EQ(sum.percentile_ns(0.5), 20u);
  EXPECT_EQ(sum.max_ns(), std::uint64_t{1} << 50);
}

}  // namespace
}  // namespace rodeo::base
