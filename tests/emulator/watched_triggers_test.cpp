// The reports to the watchdog of an emulator.
#include <gtest/gtest.h>

#include "emulator/service.h"

namespace rodeo::emulator {
namespace {

TEST(WatchedTriggers, WaitOnlyIfSomeAreOfferedAndNoneIsAccepted) {
  WatchedTriggers triggers;
  trigger::TriggerReport report;
  report.offered = report.accepted = 100;
  EXPECT_TRUE(triggers.parts(report).empty());
  report.offered = 150;
  report.busy_follower = "felix0:1";
  const auto parts = triggers.parts(report);
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].waits_for, "felix0:1, which is busy");
  EXPECT_EQ(parts[0].progress, 100U);
  report.held = true;
  EXPECT_TRUE(triggers.parts(report).empty());
  report.held = false;
  EXPECT_TRUE(triggers.parts(report).empty()) << "no trigger was offered since";
}

TEST(WatchedTriggers, WaitForAnAuthorityThatIsAway) {
  WatchedTriggers triggers;
  trigger::TriggerReport report;
  report.link = {.address = "there", .authority = {}, .connected = false, .why = {}};
  ASSERT_EQ(triggers.parts(report).size(), 1U);
  EXPECT_EQ(triggers.parts(report)[0].waits_for, "the authority at there");
}

}  // namespace
}  // namespace rodeo::emulator
