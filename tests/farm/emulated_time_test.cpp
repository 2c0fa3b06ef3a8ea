// Emulated processing times.
#include "farm/selection/emulated_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace {

using rodeo::farm::EmulatedTime;
using Shape = EmulatedTime::Shape;

std::vector<double> times_ms(const EmulatedTime& time) {
  std::vector<double> out;
  for (std::uint64_t id = 0; id < 100'000; ++id) out.push_back(static_cast<double>(time.time_of(id).count()) * 1e-6);
  std::ranges::sort(out);
  return out;
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

TEST(EmulatedTime, HasTheMeanAndTheShapeThatWereAskedFor) {
  const EmulatedTime time{.mean = std::chrono::milliseconds{10}};
  auto fixed = time;
  fixed.shape = Shape::fixed;
  EXPECT_EQ(times_ms(fixed).front(), 10);
  EXPECT_EQ(times_ms(fixed).back(), 10);
  auto exponential = time;
  exponential.shape = Shape::exponential;
  EXPECT_NEAR(mean_of(times_ms(exponential)), 10, 0.2);
  EXPECT_NEAR(times_ms(exponential)[50'000], 6.93, 0.2) << "the median";
  auto log_normal = time;
  log_normal.shape = Shape::log_normal;
  EXPECT_NEAR(mean_of(times_ms(log_normal)), 10, 0.2);
  EXPECT_NEAR(times_ms(log_normal)[50'000], 8.825, 0.2) << "the median: the mean divided by exp(sigma^2 / 2)";
  EXPECT_EQ(times_ms(time).back(), 0);
}

TEST(EmulatedTime, IsTheSameForTheSameEvent) {
  const EmulatedTime one{.shape = Shape::exponential};
  EXPECT_EQ(one.time_of(7), one.time_of(7));
  EXPECT_NE(one.time_of(7), one.time_of(8));
  auto other = one;
  other.seed = 2;
  EXPECT_NE(one.time_of(7), other.time_of(7));
}

}  // namespace
