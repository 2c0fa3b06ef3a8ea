#include "settings/fid_text.h"

#include <gtest/gtest.h>

#include "formats/fid.h"

namespace {

using namespace rodeo::settings;
using rodeo::Fid;

TEST(FidText, ReferenceExampleIsLinkOneElinkTwenty) {
  const auto fid = parse_fid("0x1000000000540000");
  ASSERT_TRUE(fid.has_value());
  EXPECT_EQ(fid->link(), 1U);
  EXPECT_EQ(fid->elink(), 20U);
  EXPECT_EQ(fid->version(), 1U);
  EXPECT_FALSE(fid->to_frontend());
  EXPECT_EQ(rodeo::formats::to_text(*fid), "0x1000000000540000");
}

TEST(FidText, UpperCaseAndDecimalAreRead) {
  EXPECT_EQ(parse_fid("0X10000000005A0000")->value, 0x10000000005a0000U);
  EXPECT_EQ(parse_fid("1152921504606846976")->value, 0x1000000000000000U);
}

TEST(FidText, WhatIsNotAFidIsRefusedWithItsText) {
  for (const char* text : {"", "0x", "hello", "0x1000000000540000z", "0x10000000005400000", "-1", " 0x1000000000540000",
                           "0x0000000000540000", "0x2000000000540000"}) {
    const auto fid = parse_fid(text);
    ASSERT_FALSE(fid.has_value()) << text;
    EXPECT_EQ(fid.error().code, "formats.fid");
    EXPECT_NE(fid.error().what.find(text), std::string::npos);
  }
}

TEST(FidRange, CountsElinksUpAndCarriesIntoTheLink) {
  const auto fids = parse_fid_range("0x10000000007e0000+4");
  ASSERT_TRUE(fids.has_value());
  ASSERT_EQ(fids->size(), 4U);
  EXPECT_EQ((*fids)[0], Fid::of(0, 0, 1, 62));
  EXPECT_EQ((*fids)[1], Fid::of(0, 0, 1, 63));
  EXPECT_EQ((*fids)[2], Fid::of(0, 0, 2, 0));
  EXPECT_EQ((*fids)[3], Fid::of(0, 0, 2, 1));
}

TEST(FidRange, KeepsAllOtherFields) {
  const auto fids = parse_fid_range("0x1ab1234fffff8f7e+1");
  ASSERT_TRUE(fids.has_value());
  EXPECT_EQ(fids->at(0).value, 0x1ab1234fffff8f7eU);
  const auto more = advance(Fid{0x1ab1234800008f7e}, 64);
  ASSERT_TRUE(more.has_value());
  EXPECT_EQ(more->value, 0x1ab1234800408f7eU);
}

TEST(FidRange, OneFidIsARangeOfOne) { EXPECT_EQ(parse_fid_range("0x1000000000540000")->size(), 1U); }

TEST(FidRange, EmptyOverlongAndGarbledRangesAreRefused) {
  for (const char* text : {"0x1000000000540000+0", "0x1000000000540000+", "0x1000000000540000+x", "0x1000000000540000+1+1",
                           "0x10000007ffff0000+2", "0x1000000000000000+524289", "0x1000000000000000+18446744073709551615"}) {
    EXPECT_FALSE(parse_fid_range(text).has_value()) << text;
  }
  EXPECT_EQ(parse_fid_range("0x1000000000000000+524288")->size(), 524288U);
}

}  // namespace
