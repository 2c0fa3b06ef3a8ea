#include "router/front_end/rate_limit.h"

#include <gtest/gtest.h>

namespace rodeo::router {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

TEST(RateLimit, GivesABurstAndThenTheRate) {
  RateLimit limit(1000, 500);
  std::uint64_t now = kSecond;
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(limit.try_acquire(100, now));
  EXPECT_FALSE(limit.try_acquire(100, now));
  double taken = 0;
  for (const std::uint64_t end = now + 10 * kSecond; now < end; now += kSecond / 1000) {
    if (limit.try_acquire(100, now)) taken += 100;
  }
  EXPECT_NEAR(taken, 10'000, 200);
}

TEST(RateLimit, AMessageThatIsLargerThanTheBurstHasItsTurnAndIsPaidFor) {
  RateLimit limit(1000, 100);
  EXPECT_TRUE(limit.try_acquire(5000, kSecond));
  EXPECT_FALSE(limit.try_acquire(1, kSecond + 4 * kSecond));
  EXPECT_TRUE(limit.try_acquire(1, kSecond + 5 * kSecond));
}

TEST(RateLimit, SavesNoMoreThanTheBurst) {
  RateLimit limit(1000, 100);
  EXPECT_TRUE(limit.try_acquire(100, kSecond));
  EXPECT_TRUE(limit.try_acquire(100, 3600 * kSecond));
  EXPECT_FALSE(limit.try_acquire(1, 3600 * kSecond));
}

TEST(RateLimit, AClockThatGoesBackIsNoTime) {
  RateLimit limit(1000, 100);
  EXPECT_TRUE(limit.try_acquire(200, 10 * kSecond));
  EXPECT_FALSE(limit.try_acquire(1, kSecond));
  EXPECT_FALSE(limit.try_acquire(1, 10 * kSecond + kSecond / 20));
  EXPECT_TRUE(limit.try_acquire(1, 10 * kSecond + kSecond / 5));
}

}  // namespace
}  // namespace rodeo::router
