// The built-in texts equal the files of the documentation.
#include "cli/texts.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

namespace rodeo::cli {
namespace {

TEST(Texts, DemosAreExamples) {
  for (const std::string name : {"demo.toml", "chain.toml", "farm/chain.toml"}) {
    std::ifstream file(std::string(SOURCE_DIRECTORY) + "/examples/" + name);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    ASSERT_FALSE(text.empty()) << name;
    EXPECT_EQ(built_in_text(name), text) << name;
  }
}

TEST(Texts, OthersAreNotBuiltIn) { EXPECT_TRUE(built_in_text("no-such.toml").empty()); }

}  // namespace
}  // namespace rodeo::cli
