#include "card/card_wait.h"

#include <gtest/gtest.h>

namespace rodeo::card {
namespace {

using namespace std::chrono_literals;

TEST(CardWait, EndsWhenItsTimeIsOver) {
  CardWait::Clock::time_point now{};
  CardWait wait(2s, now);
  for (int i = 0; i < 19; ++i) EXPECT_FALSE(wait.over(now += 100ms)) << i;
  EXPECT_TRUE(wait.over(now += 100ms));
}

TEST(CardWait, HalfAMinuteInWhichTheCardAnswersNothingIsATenthOfIt) {
  CardWait::Clock::time_point now{};
  CardWait wait(2s, now);
  EXPECT_FALSE(wait.over(now += 30s));
  for (int i = 0; i < 17; ++i) EXPECT_FALSE(wait.over(now += 100ms)) << i;
  EXPECT_TRUE(wait.over(now += 100ms));
}

TEST(CardWait, ACardIsLookedAtTenTimesAtLeast) {
  CardWait::Clock::time_point now{};
  CardWait wait(1ms, now);
  for (int i = 0; i < 9; ++i) EXPECT_FALSE(wait.over(now += 1min)) << i;
  EXPECT_TRUE(wait.over(now += 1min));
}

}  // namespace
}  // namespace rodeo::card
