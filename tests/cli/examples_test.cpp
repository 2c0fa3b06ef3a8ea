// The demo's configuration is the file that a reader finds in examples/.
#include "cli/examples.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

namespace rodeo::cli {
namespace {

TEST(Examples, TheDemoIsExamplesDemoToml) {
  std::ifstream file(std::string(SOURCE_DIRECTORY) + "/examples/demo.toml");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  ASSERT_FALSE(text.empty());
  EXPECT_EQ(example_text("demo.toml"), text);
}

TEST(Examples, OthersAreNotBuiltIn) { EXPECT_TRUE(example_text("no-such.toml").empty()); }

}  // namespace
}  // namespace rodeo::cli
