#include "formats/fid.h"

#include <gtest/gtest.h>

namespace {

using namespace rodeo::formats;
using rodeo::Fid;

TEST(CardElink, EveryNumberComesBackFromItsFid) {
  for (std::uint16_t elink = 0; elink < kCardElinks; ++elink) {
    const Fid fid = fid_of_card_elink(0x42, 0x1234, elink);
    EXPECT_EQ(fid.detector(), 0x42U);
    EXPECT_EQ(fid.connector(), 0x1234U);
    EXPECT_EQ(card_elink_of(fid), elink);
  }
}

TEST(CardElink, GroupsAndPathsLieWhereTheFirmwarePutsThem) {
  EXPECT_EQ(card_elink(23, 7, 3), 23 << 6 | 7 << 3 | 3);
  EXPECT_EQ(card_elink_lpgbt(23, 6, 3), 23 << 6 | 6 << 2 | 3);
}

TEST(CardElink, LinksThatNoCardHasAndVirtualOnesHaveNoNumber) {
  EXPECT_FALSE(card_elink_of(Fid::of(0, 0, 32, 0)).has_value());
  EXPECT_FALSE(card_elink_of(Fid{Fid::of(0, 0, 1, 0).value | std::uint64_t{1} << 35}).has_value());
}

}  // namespace
