#include "input/offered_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace rodeo::input {
namespace {

using testing::ElementsAre;

constexpr Fid kA{0x1000000000000000}, kB{0x1000000000010000}, kC{0x1000000000020000};

TEST(OfferedLinks, AreGivenToOneStreamEach) {
  OfferedLinks links(std::vector<Fid>{kA, kB, kC});
  EXPECT_THAT(links.select(std::vector<Fid>{kC, kA}, "the generator"), ElementsAre(2, 0));
  EXPECT_THROW(links.select(std::vector<Fid>{kA}, "the generator"), std::runtime_error);
  EXPECT_THAT(links.select(std::vector<Fid>{kB}, "the generator"), ElementsAre(1));
}

TEST(OfferedLinks, AreLeftAsTheyWereByARequestThatCannotBeMet) {
  OfferedLinks links(std::vector<Fid>{kA, kB});
  EXPECT_THROW(links.select({}, "the generator"), std::runtime_error);
  EXPECT_THROW(links.select(std::vector<Fid>{kA, kA}, "the generator"), std::runtime_error);
  try {
    links.select(std::vector<Fid>{kA, kC}, "the generator");
    ADD_FAILURE();
  } catch (const std::runtime_error& refused) {
    EXPECT_STREQ(refused.what(),
                 "There is no link 0x1000000000020000 in the generator: it has 2 links, 0x1000000000000000 to "
                 "0x1000000000010000.");
  }
  EXPECT_THAT(links.select(std::vector<Fid>{kA, kB}, "the generator"), ElementsAre(0, 1));
}

}  // namespace
}  // namespace rodeo::input
