// The processes of `rodeo demo --chain`.
#include "cli/chain_parts.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "formats/temporary_directory.h"

namespace rodeo::cli {
namespace {

TEST(ChainParts, ReadoutsShareTheLinksAlsoOfOneFibre) {
  const test::TemporaryDirectory cache;
  ::setenv("XDG_CACHE_HOME", cache.path().c_str(), 1);
  DemoOptions options;
  options.chain = true;
  const DemoDirectory directory(false);
  const auto links_of = [&](std::uint64_t links) {
    std::vector<std::string> found;
    for (const ChainPart& part : chain_parts(options, DemoCard(links), directory)) {
      for (const std::string& one : part.overrides) {
        if (one.starts_with("readout.input.links=")) found.push_back(one.substr(one.find('=') + 1));
      }
    }
    return found;
  };
  EXPECT_EQ(links_of(1), std::vector<std::string>{"0x1000000000000000+1"});
  EXPECT_EQ(links_of(5), (std::vector<std::string>{"0x1000000000000000+2", "0x1000000000020000+3"}));
  EXPECT_EQ(links_of(18), (std::vector<std::string>{"0x1000000000000000+8,0x1000000000400000+1",
                                                    "0x1000000000410000+7,0x1000000000800000+2"}));
  ::unsetenv("XDG_CACHE_HOME");
}

}  // namespace
}  // namespace rodeo::cli
