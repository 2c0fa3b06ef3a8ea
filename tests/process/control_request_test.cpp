#include "process/control_request.h"

#include <gtest/gtest.h>

#include <stdexcept>

using rodeo::process::answer_line;
using rodeo::process::reply;
using rodeo::settings::Json;

TEST(ControlRequest, ALineOfAnyKindIsAnswered) {
  const auto asked = [](const std::string& line, const auto& answer) { return *Json::parse(answer_line(line, answer)); };
  const auto fine = [](const Json& request) { return reply(request); };
  EXPECT_TRUE(asked("{}", fine).find("ok")->boolean());
  EXPECT_EQ(asked(R"({"command":"status","x":1e400})", fine).find("code")->string(), "config.bad_json");
  EXPECT_EQ(asked("\xff\xfe", fine).find("code")->string(), "config.bad_json");
  EXPECT_EQ(asked(std::string(60'000, '['), fine).find("code")->string(), "config.bad_json");
  const auto refuses = [](const Json&) -> std::string { throw rodeo::SetupError({"readout.link_state", "no", "", ""}); };
  EXPECT_EQ(asked("{}", refuses).find("code")->string(), "readout.link_state");
  const auto throws = [](const Json&) -> std::string { throw std::out_of_range("too far"); };
  EXPECT_EQ(asked("{}", throws).find("code")->string(), "process.failed");
}
