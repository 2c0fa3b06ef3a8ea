// The answers of a readout on its control socket before, during and after its run.
#include "readout/run/readout_control.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <string>

#include "readout/recording_components.h"

namespace rodeo::readout {
namespace {

class ReadoutControl : public ::testing::Test {
 protected:
  Json ask(const std::string& request) { return *Json::parse(answer_request(readout_, request)); }
  /// The code of a refusal; empty if the request was obeyed.
  std::string refused(const std::string& request) {
    const Json answer = ask(request);
    return answer.find("ok")->boolean() ? "" : answer.find("code")->string();
  }
  std::string start(const std::string& rest, const std::string& sha = "5ca1e") {
    return refused(R"({"command":"start","configuration_sha256":")" + sha + "\"" + rest + "}");
  }
  Json process() { return *ask(R"({"command":"status"})").find("reply")->find("process"); }
  std::string phase() { return process().find("phase")->string(); }

  testing::Script script_;
  base::ComponentRegistry registry_;
  const bool registered_ = (testing::register_recording(registry_, script_), true);
  Application application_{testing::recording_settings(), registry_};
  ControlledReadout readout_{
      .application = application_,
      .identity = {.kind = "readout", .name = "felix-1", .build = "1.2 abc", .configuration_sha256 = "5ca1e"}};
};

TEST_F(ReadoutControl, AStatusSaysWhichProcessItIs) {
  EXPECT_EQ(phase(), "launching");
  application_.hold();
  const Json said = process();
  EXPECT_EQ(said.find("phase")->string(), "ready");
  EXPECT_EQ(said.find("kind")->string(), "readout");
  EXPECT_EQ(said.find("name")->string(), "felix-1");
  EXPECT_EQ(said.find("build")->string(), "1.2 abc");
  EXPECT_EQ(said.find("configuration_sha256")->string(), "5ca1e");
  EXPECT_EQ(said.find("pid")->number(), static_cast<double>(::getpid()));
  EXPECT_GT(said.find("started_ns")->unsigned_integer(), 1'600'000'000'000'000'000U) << "UTC";
}

TEST_F(ReadoutControl, IsStartedOnceAndForTheConfigurationThatItHas) {
  EXPECT_EQ(start(R"(,"run":7)"), "process.not_ready") << "it is still being launched";
  application_.hold();
  EXPECT_EQ(refused(R"({"command":"start","run":7})"), "process.other_configuration");
  EXPECT_EQ(start(R"(,"run":7)", "0ther"), "process.other_configuration");
  for (const char* run :
       {"", R"(,"run":0)", R"(,"run":-1)", R"(,"run":1.5)", R"(,"run":2147483648)", R"(,"run":"7")", R"(,"run":null)"})
    EXPECT_EQ(start(run), "process.bad_run") << run;
  EXPECT_EQ(start(R"(,"run":7,"run_type":"holiday")"), "process.bad_run");
  EXPECT_EQ(phase(), "ready") << "the refused request has changed nothing";
  EXPECT_EQ(start(R"(,"run":7,"run_type":"cosmics")"), "");
  EXPECT_EQ(phase(), "running");
  EXPECT_EQ(run_info().run_number, 7U);
  EXPECT_EQ(run_info().run_type, 2U);
  EXPECT_EQ(start(R"(,"run":8)"), "process.not_ready");
  EXPECT_EQ(run_info().run_number, 7U);
  EXPECT_EQ(refused(R"({"command":"stop"})"), "");
  EXPECT_FALSE(readout_.left);
}

TEST_F(ReadoutControl, WithoutATypeTheRunHasTheConfigurations) {
  application_.hold();
  EXPECT_EQ(start(R"(,"run":7,"run_type":null)"), "");
  EXPECT_EQ(run_info().run_type, testing::recording_settings().run.run_type);
}

TEST_F(ReadoutControl, ToldToStopBeforeItsRunItLeavesAndStartsNothing) {
  application_.hold();
  EXPECT_EQ(refused(R"({"command":"stop"})"), "");
  EXPECT_TRUE(readout_.left);
  EXPECT_EQ(start(R"(,"run":7)"), "process.not_ready");
  EXPECT_TRUE(script_.noted().empty());
}

TEST_F(ReadoutControl, AStartThatCannotBeIsToldAndEndsTheProcess) {
  script_.refuse_start = true;
  application_.hold();
  EXPECT_EQ(start(R"(,"run":7)"), "readout.start");
  ASSERT_TRUE(readout_.failure);
  EXPECT_EQ(readout_.failure->code, "readout.start");
}

TEST_F(ReadoutControl, WhileItIsBeingMadeItAnswersToo) {
  std::atomic<bool> stop{false};
  const auto ask = [&](const std::string& request) {
    return *Json::parse(answer_while_launching(application_.settings(), readout_.identity, request, stop));
  };
  const Json status = ask(R"({"command":"status"})");
  EXPECT_EQ(status.find("reply")->find("process")->find("phase")->string(), "launching");
  EXPECT_NE(status.find("reply")->find("fragments"), nullptr);
  EXPECT_EQ(ask(R"({"command":"start","run":7})").find("code")->string(), "process.not_ready");
  EXPECT_FALSE(stop);
  EXPECT_TRUE(ask(R"({"command":"stop"})").find("ok")->boolean());
  EXPECT_TRUE(stop);
}

}  // namespace
}  // namespace rodeo::readout
