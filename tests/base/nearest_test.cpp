#include "base/nearest.h"

#include <gtest/gtest.h>

using namespace rodeo::base;

namespace {
const std::vector<std::string> kKeys = {"timeout", "window", "workers", "max_chunks", "generator"};
}

TEST(Nearest, CountsASwapOfNeighboursAsOneEdit) {
  EXPECT_EQ(edit_distance("tiemout", "timeout"), 1u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("max-chunks", "max_chunks"), 0u);
}

TEST(Nearest, FindsWhatWasMeant) {
  EXPECT_EQ(did_you_mean("time_out", kKeys), "did you mean `timeout`?");
  EXPECT_EQ(nearest("gen", kKeys), std::vector<std::string>{"generator"});
}

TEST(Nearest, GuessesNothingFromAWordThatIsFarFromAll) { EXPECT_EQ(did_you_mean("colour", kKeys), ""); }
