// The verbs of another program as JSON, read back: completion and manual pages see the same tree.
#include "cli/described_verbs.h"

#include <gtest/gtest.h>

namespace rodeo::cli {
namespace {

TEST(DescribedVerbs, AreTheSameAfterTheWayThroughJson) {
  Command root("rodeo", "the program");
  Command& noun = root.verb("bench", "Measures");
  Command& verb = noun.verb("build", "Chunks to fragments");
  std::uint32_t links = 192;
  bool pinned = false;
  std::string file;
  verb.example("rodeo bench build", "192 links").paragraph("Errors end in exit status 7.");
  verb.option("-n,--links", links, "Links");
  verb.flag("--not-pinned", pinned, "Leave the workers to the scheduler");
  verb.option("FILE", file, "Where");

  Command copy("bench", "Measures");
  describe_as(copy, described(noun));

  EXPECT_EQ(described(copy).dump(), described(noun).dump());
  const Command& build = *copy.verbs().front();
  EXPECT_EQ(build.name(), "build");
  EXPECT_EQ(build.options()[0]->help(), "Links (default 192)");
  EXPECT_EQ(build.options()[0]->names(), (std::vector<std::string>{"-n", "--links"}));
  EXPECT_TRUE(build.options()[1]->is_flag());
  EXPECT_TRUE(build.options()[2]->positional());
  EXPECT_EQ(build.examples().front().first, "rodeo bench build");
  EXPECT_EQ(build.paragraphs().front(), "Errors end in exit status 7.");
}

TEST(DescribedVerbs, IgnoreWhatIsMissing) {
  Command verb("bench", "Measures");
  describe_as(verb, settings::Json::object());
  EXPECT_TRUE(verb.verbs().empty());
  EXPECT_TRUE(verb.options().empty());
}

}  // namespace
}  // namespace rodeo::cli
