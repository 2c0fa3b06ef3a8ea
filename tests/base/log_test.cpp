#include "base/log.h"

#include <gtest/gtest.h>

using namespace rodeo::base;
using namespace std::chrono_literals;

namespace {

class Log : public testing::Test {
 protected:
  void TearDown() override { set_log_level(level_); }
  const LogLevel level_ = log_level();
};

}  // namespace

TEST_F(Log, WritesToStandardErrorAtOrAboveItsLevel) {
  set_log_level(LogLevel::warning);
  testing::internal::CaptureStderr();
  log_info("not {}", "this");
  log_warning("corrupt chunk on link {}", 7);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(said.find("not this"), std::string::npos);
  EXPECT_NE(said.find("corrupt chunk on link 7"), std::string::npos);
}

TEST_F(Log, ControlCharactersOfOtherProcessesDoNotReachTheTerminal) {
  testing::internal::CaptureStderr();
  log_error("it said: \x1b]0;title\x07 \xc2\x9b\x33m\tand\nso on, \xc3\xa9");
  EXPECT_NE(testing::internal::GetCapturedStderr().find("it said: ?]0;title? ?3m\tand\nso on, \xc3\xa9"), std::string::npos);
}

TEST_F(Log, BracesInTheTextAreNoFormat) {
  testing::internal::CaptureStderr();
  log_line(LogLevel::error, "json {\"a\": 1}");
  EXPECT_NE(testing::internal::GetCapturedStderr().find("json {\"a\": 1}"), std::string::npos);
}

TEST_F(Log, AnUnknownLevelChangesNothing) {
  EXPECT_EQ(log_level_of("debug"), LogLevel::debug);
  EXPECT_EQ(log_level_of("loud", LogLevel::error), LogLevel::error);
}

TEST_F(Log, AReasonSpeaksOnceASecondAndCountsTheRest) {
  LogThrottle throttle;
  const auto start = std::chrono::steady_clock::time_point{} + 5s;
  EXPECT_TRUE(throttle.turn(start).speak);
  for (int i = 0; i < 41; ++i) EXPECT_FALSE(throttle.turn(start + 10ms));
  const auto turn = throttle.turn(start + 1s);
  EXPECT_TRUE(turn.speak);
  EXPECT_EQ(turn.folded, 41u);
  EXPECT_EQ(turn.suffix(), " (and 41 more like it)");
  EXPECT_FALSE(throttle.turn(start + 1500ms));
  EXPECT_EQ(throttle.reset_folded(), 1u);
  EXPECT_EQ(throttle.turn(start + 2s).folded, 0u);
}
