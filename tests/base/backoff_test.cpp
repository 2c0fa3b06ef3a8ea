// The sleep times of a thread without work.
#include <gtest/gtest.h>

#include "base/thread.h"

namespace rodeo::base {
namespace {

TEST(Backoff, SleepsForASixteenthOfWhatItHasWaited) {
  for (const std::uint64_t waited_ns : {100'000u, 1'000'000u, 10'000'000u}) {
    EXPECT_EQ(Backoff::pause_ns(waited_ns), waited_ns / 16);
  }
}

TEST(Backoff, SleepsBrieflyAtFirstAndNeverForLongerThanAMillisecond) {
  EXPECT_EQ(Backoff::pause_ns(0), 5'000u);
  EXPECT_EQ(Backoff::pause_ns(60'000'000'000), 1'000'000u);
}

}  // namespace
}  // namespace rodeo::base
