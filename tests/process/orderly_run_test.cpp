// A run that does not end: waiting parts give up, and the process leaves parts that do not.
#include "process/orderly_run.h"

#include <gtest/gtest.h>

namespace rodeo::process {
namespace {

struct Stubborn {
  bool gives_up = false;
  bool told = false;

  Ended run() {
    LiveView view;
    return run_in_order({.start = [] {},
                         .step = [this] { return !(told && gives_up); },
                         .stop = [] {},
                         .answer = {},
                         .ending = "nothing",
                         .stop_limit = std::chrono::milliseconds{200},
                         .stopping = [] { return true; },
                         .give_up = [this] { told = true; }},
                        view, nullptr);
  }
};

TEST(OrderlyRun, WhatIsToldToGiveUpEndsInOrder) {
  Stubborn run{.gives_up = true};
  EXPECT_EQ(run.run(), Ended::in_order);
  EXPECT_TRUE(run.told);
}

TEST(OrderlyRun, WhatDoesNotGiveUpIsLeftWhenTheLimitIsOver) {
  Stubborn run;
  EXPECT_EQ(run.run(), Ended::by_limit);
  EXPECT_TRUE(run.told);
}

TEST(OrderlyRun, ARunThatNobodyEndsHasNoLimit) {
  LiveView view;
  int steps = 0;
  const Ended ended = run_in_order({.start = [] {},
                                    .step = [&] { return ++steps < 6; },
                                    .stop = [] {},
                                    .answer = {},
                                    .ending = "nothing",
                                    .stop_limit = std::chrono::milliseconds{1},
                                    .give_up = [] { ADD_FAILURE(); }},
                                   view, nullptr);
  EXPECT_EQ(ended, Ended::in_order);
}

}  // namespace
}  // namespace rodeo::process
