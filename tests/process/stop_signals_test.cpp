// Signals as requests, also during the life of another object that counts them.
#include "process/stop_signals.h"

#include <gtest/gtest.h>

#include <csignal>
#include <optional>

namespace rodeo::process {
namespace {

void others(int) {}

TEST(StopSignals, AreCountedUntilTheOutermostEnds) {
  const auto before = std::signal(SIGINT, others);
  {
    const StopSignals whole;
    std::optional<StopSignals> run(std::in_place);
    EXPECT_FALSE(run->stop_requested());
    std::raise(SIGINT);
    EXPECT_TRUE(run->stop_requested() && whole.stop_requested());
    run.reset();
    std::raise(SIGINT);
    EXPECT_TRUE(whole.stop_requested_again()) << "the run is over, and its report is being written";
  }
  EXPECT_EQ(std::signal(SIGINT, before), others) << "as before";
}

TEST(StopSignals, TheNextRunKnowsNothingOfTheLast) {
  const auto before = std::signal(SIGTERM, others);
  {
    const StopSignals one;
    std::raise(SIGTERM);
  }
  EXPECT_FALSE(StopSignals().stop_requested());
  std::signal(SIGTERM, before);
}

TEST(StopSignals, WhatIsIgnoredStaysIgnored) {
  const auto before = std::signal(SIGHUP, SIG_IGN);
  {
    const StopSignals run;
    std::raise(SIGHUP);
    EXPECT_FALSE(run.stop_requested()) << "as after nohup";
  }
  EXPECT_EQ(std::signal(SIGHUP, before), SIG_IGN);
}

}  // namespace
}  // namespace rodeo::process
