// The texts that are built in are the files that a reader finds.
#include "cli/texts.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

namespace rodeo::cli {
namespace {

TEST(Texts, TheDemoIsExamplesDemoToml) {
  std::ifstream file(std::string(SOURCE_DIRECTORY) + "/examples/demo.toml");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  ASSERT_FALSE(text.empty());
  EXPECT_EQ(built_in_text("demo.toml"), text);
}

TEST(Texts, OthersAreNotBuiltIn) { EXPECT_TRUE(built_in_text("no-such.toml").empty()); }

}  // namespace
}  // namespace rodeo::cli
