#include "settings/json.h"

#include <gtest/gtest.h>

#include <limits>

using rodeo::settings::Json;

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

TEST(Json, NumbersThatNoDoubleHoldsAreRefusedWithTheirPlace) {
  for (const char* text : {R"({"a": 1e400})", R"({"a": -1e400})", R"([{"a": 1e999999}])"}) {
    const auto parsed = Json::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, "config.bad_json");
    EXPECT_EQ(parsed.error().what, "a number is too large");
    EXPECT_EQ(parsed.error().where.substr(0, 2), "1:");
  }
  EXPECT_EQ(Json::parse("[\n1e-400,\n1e308]")->elements()[0].number(), 0) << "a too small number is zero";
  EXPECT_EQ(Json::parse("[1,\n2e400]").error().where.substr(0, 2), "2:");
}

TEST(Json, WhatIsNestedTooDeepIsRefused) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(Json::parse(nested(Json::kDeepest)));
  EXPECT_EQ(Json::parse(nested(Json::kDeepest + 1)).error().where, "1:101");
  EXPECT_FALSE(Json::parse(nested(30'000)));
  EXPECT_EQ(Json::parse("\"" + std::string(500, '[') + "\\\"\"")->string().size(), 501U) << "brackets in texts do not count";
  EXPECT_TRUE(Json::parse("[" + std::string(500, ' ') + "[],[],{\"a\":[]}]"));
}

TEST(Json, ANulByteIsNoEndOfTheText) {
  EXPECT_EQ(Json::parse(std::string_view("{}\0{\n", 5)).error().where, "1:3");
  EXPECT_FALSE(Json::parse(std::string_view("1\0", 2)));
}

TEST(Json, AMemberThatStandsTwiceHasItsLastValue) {
  EXPECT_EQ(Json::parse(R"({"a":1,"b":2,"a":3})")->dump(0), R"({"a":3,"b":2})");
}
