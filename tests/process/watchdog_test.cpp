// Standing parts are named once, with the reason and the time since when they wait; and the limit for the end of a run.
#include "process/watchdog.h"

#include <gtest/gtest.h>

#include <array>

#include "process/configuration.h"
#include "process/stop_limit.h"

namespace rodeo::process {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

TEST(Watchdog, APartThatWaitsAndDoesNothingIsNamedOnceAndWhenItGoesOn) {
  Watchdog watchdog(5 * kSecond);
  const auto look = [&](std::uint64_t second, const char* waits_for, std::uint64_t progress) {
    const std::array parts{WatchedPart{"worker 0", waits_for, progress}};
    watchdog.check(parts, second * kSecond);
  };
  look(1, "consumers", 7);
  look(5, "consumers", 7);
  EXPECT_TRUE(watchdog.standing().empty());
  look(6, "consumers", 7);
  ASSERT_EQ(watchdog.standing().size(), 1U);
  EXPECT_EQ(watchdog.standing()[0].text(), "worker 0 has waited for consumers for 5 s");
  EXPECT_EQ(watchdog.take_messages(),
            std::vector<std::string>{"warning: worker 0 has waited for consumers for 5 s, and does nothing"});
  look(60, "pages of the input", 7);
  EXPECT_EQ(watchdog.standing()[0].text(), "worker 0 has waited for pages of the input for 59 s");
  EXPECT_TRUE(watchdog.take_messages().empty());
  look(61, "pages of the input", 8);
  EXPECT_TRUE(watchdog.standing().empty());
  EXPECT_EQ(watchdog.take_messages(), std::vector<std::string>{"worker 0 goes on"});
}

TEST(Watchdog, APartThatWaitsForNothingOrHasGoneDoesNotStand) {
  Watchdog watchdog(kSecond);
  const std::array idle{WatchedPart{"worker 0", "", 0}};
  for (std::uint64_t second = 1; second < 10; ++second) watchdog.check(idle, second * kSecond);
  EXPECT_TRUE(watchdog.standing().empty());
  const std::array waiting{WatchedPart{"worker 0", "data", 0}};
  watchdog.check(waiting, 10 * kSecond);
  watchdog.check({}, 11 * kSecond);
  watchdog.check(waiting, 12 * kSecond);
  EXPECT_TRUE(watchdog.standing().empty());
}

TEST(StopLimit, TimesOfTheEndThatItCutsAreNamed) {
  using std::chrono::seconds;
  const EndTime times[] = {{"drain_time", seconds{25}}, {"linger", seconds{26}}};
  const auto warnings = cut_by_stop_limit(times, seconds{30});
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("linger is 26 s, but after 25 s"), std::string::npos) << warnings[0];
}

TEST(StopLimit, CountsFromTheFirstOrderAndLeavesTheLastSixthToGiveUp) {
  StopLimit limit(std::chrono::seconds{30});
  EXPECT_FALSE(limit.gives_up(1000 * kSecond)) << "the end was not requested";
  limit.begin(100 * kSecond);
  limit.begin(110 * kSecond);
  EXPECT_FALSE(limit.gives_up(125 * kSecond - 1));
  EXPECT_TRUE(limit.gives_up(125 * kSecond));
  EXPECT_FALSE(limit.over(130 * kSecond - 1));
  EXPECT_TRUE(limit.over(130 * kSecond));
}

}  // namespace
}  // namespace rodeo::process
