#include "base/error.h"

#include <gtest/gtest.h>

TEST(Error, MessageSaysCodePlaceCauseAndRemedy) {
  const rodeo::Error error{"config.unknown_key", "a is not a known key", "run.toml:1:2", "did you mean `b`?"};
  EXPECT_EQ(error.message(), "error[config.unknown_key]: run.toml:1:2: a is not a known key\n  did you mean `b`?");
}

TEST(Error, ContextGrowsOnTheWayUp) {
  const rodeo::Error error{"base.io", "permission denied"};
  EXPECT_EQ(error.within("cannot open x").what, "cannot open x: permission denied");
}
