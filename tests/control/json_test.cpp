#include "control/json.h"

#include <gtest/gtest.h>

#include <limits>

using rodeo::control::Json;

TEST(Json, WritesMembersInTheOrderTheyWereSet) {
  Json object;
  object["run"]["seconds"] = 10.5;
  object["links"] = 192;
  object["condition"] = "GOOD";
  object["files"].push_back("a.data");
  EXPECT_EQ(object.dump(0), R"({"run":{"seconds":10.5},"links":192,"condition":"GOOD","files":["a.data"]})");
}

TEST(Json, KeepsEveryBitOfAnInteger) {
  const std::uint64_t fid = 0xfffffffffffffffeu;
  const auto back = Json::parse(Json::object({{"fid", fid}, {"least", std::int64_t{-9'000'000'000'000'000'001}}}).dump());
  ASSERT_TRUE(back);
  EXPECT_EQ(back->find("fid")->unsigned_integer(), fid);
  EXPECT_EQ(back->find("least")->signed_integer(), -9'000'000'000'000'000'001);
}

TEST(Json, WhatJsonCannotSayBecomesNullOrAReplacement) {
  EXPECT_EQ(Json(std::numeric_limits<double>::quiet_NaN()).dump(), "null");
  EXPECT_NE(Json("\xff").dump().find("\xef\xbf\xbd"), std::string::npos);
}

TEST(Json, BrokenTextIsRefusedWithItsPlace) {
  const auto broken = Json::parse("{\n  \"a\": 1,\n  oops\n}");
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().where.substr(0, 2), "3:");
  EXPECT_FALSE(Json::parse(""));
}
