#include "base/error.h"

#include <gtest/gtest.h>

#include <memory>

#include "base/need.h"
#include "base/sentence.h"

namespace {

rodeo::Result<std::unique_ptr<int>> number(bool there) {
  if (!there) return std::unexpected(rodeo::Error{"base.io", "no number"});
  return std::make_unique<int>(7);
}

rodeo::Result<void> nothing(bool done) {
  if (!done) return std::unexpected(rodeo::Error{"base.io", "not done"});
  return {};
}

rodeo::Result<std::string> text(bool done, bool there, int* contexts) {
  RODEO_TRY(nothing(done));
  const auto context = [&] { return "text " + std::to_string(++*contexts); };
  const std::unique_ptr<int> first = RODEO_TRY(number(there));
  return std::to_string(*first + *RODEO_TRY_WITHIN(number(RODEO_TRY(number(done)) != nullptr && *contexts == 0), context()));
}

}  // namespace

TEST(Error, MessageSaysCodePlaceCauseAndRemedy) {
  const rodeo::Error error{"config.unknown_key", "a is not a known key", "run.toml:1:2", "did you mean `b`?"};
  EXPECT_EQ(error.message(), "error[config.unknown_key]: run.toml:1:2: a is not a known key\n  did you mean `b`?");
}

TEST(Error, InALineOfTheLogHasNoSecondError) {
  const rodeo::Error error{"file.open", "permission denied", "run.toml", "see `rodeo doctor`"};
  EXPECT_EQ(rodeo::base::in_a_line(error), "run.toml: permission denied; see `rodeo doctor`");
  EXPECT_EQ(rodeo::base::in_a_line({"base.io", "no number"}), "no number");
}

TEST(Error, ContextGrowsOnTheWayUp) {
  const rodeo::Error error{"base.io", "permission denied"};
  EXPECT_EQ(error.within("cannot open x").what, "cannot open x: permission denied");
}

TEST(Error, TryGivesTheValueOrReturnsTheError) {
  int contexts = 0;
  EXPECT_EQ(text(true, true, &contexts), "14");
  EXPECT_EQ(contexts, 0) << "a context was made without an error";
  EXPECT_EQ(text(false, true, &contexts).error().what, "not done");
  EXPECT_EQ(text(true, false, &contexts).error().what, "no number");
  contexts = 1;
  EXPECT_EQ(text(true, true, &contexts).error().what, "text 2: no number");
}

TEST(Error, NeedGivesTheValueOrThrowsTheError) {
  EXPECT_EQ(*rodeo::need(number(true)), 7);
  try {
    rodeo::need(number(false));
    FAIL() << "an error was taken for a value";
  } catch (const rodeo::SetupError& refused) {
    EXPECT_EQ(refused.error().what, "no number");
  }
}
