// The readout as a process: the type of a run, links, the status before the application exists.
#include "readout/service.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "process/service_run.h"
#include "readout/recording_components.h"

namespace rodeo::readout {
namespace {

class AReadoutService : public ::testing::Test {
 protected:
  AReadoutService() {
    configuration_.library = std::make_unique<Library>();
    testing::register_recording(configuration_.library->registry(), script_);
    configuration_.settings = testing::recording_settings();
    configuration_.configuration_sha256 = "5ca1e";
    run_ =
        std::make_unique<process::ServiceRun>(std::make_unique<ReadoutService>(configuration_, ReadoutService::Options{}),
                                              process::ServiceRun::Options{.hold = true, .build = "1.2 abc", .write = {}});
  }
  Json ask(const std::string& request) { return *Json::parse(run_->answer(request)); }
  std::string refused(const std::string& request) {
    const Json answer = ask(request);
    return answer.find("ok")->boolean() ? "" : answer.find("code")->string();
  }
  std::string start(const std::string& rest) {
    return refused(R"({"command":"start","configuration_sha256":"5ca1e")" + rest + "}");
  }
  std::string phase() { return ask(R"({"command":"status"})").find("reply")->find("process")->find("phase")->string(); }

  testing::Script script_;
  ReadoutConfiguration configuration_;
  std::unique_ptr<process::ServiceRun> run_;
};

TEST_F(AReadoutService, TakesARunWithItsType) {
  run_->prepare(nullptr);
  EXPECT_EQ(start(R"(,"run":7,"run_type":"holiday")"), "process.bad_run");
  EXPECT_EQ(start(R"(,"run":7,"run_type":"cosmics")"), "") << "the refused request has changed nothing";
  EXPECT_EQ(phase(), "running");
  EXPECT_EQ(run_info().run_number, 7U);
  EXPECT_EQ(run_info().run_type, 2U);
  EXPECT_EQ(start(R"(,"run":8)"), "process.not_ready");
  EXPECT_EQ(run_info().run_number, 7U);
}

TEST_F(AReadoutService, WithoutATypeTheRunHasTheConfigurations) {
  run_->prepare(nullptr);
  EXPECT_EQ(start(R"(,"run":7,"run_type":null)"), "");
  EXPECT_EQ(run_info().run_type, testing::recording_settings().run.run_type);
}

TEST_F(AReadoutService, AStopBeforeTheRunStartsNothing) {
  run_->prepare(nullptr);
  EXPECT_EQ(refused(R"({"command":"stop"})"), "");
  EXPECT_EQ(start(R"(,"run":7)"), "process.not_ready");
  EXPECT_TRUE(script_.noted().empty());
}

TEST_F(AReadoutService, AFailedStartIsRefused) {
  script_.refuse_start = true;
  run_->prepare(nullptr);
  EXPECT_EQ(start(R"(,"run":7)"), "readout.start");
  EXPECT_EQ(run_->failure()->code, "readout.start");
}

TEST_F(AReadoutService, ItsStatusIsWholeBeforeItHasAnApplication) {
  const Json status = ask(R"({"command":"status"})");
  EXPECT_EQ(status.find("reply")->find("process")->find("phase")->string(), "launching");
  EXPECT_NE(status.find("reply")->find("fragments"), nullptr);
}

TEST_F(AReadoutService, AnUnknownLinkIsRefused) {
  run_->prepare(nullptr);
  EXPECT_EQ(start(R"(,"run":7)"), "");
  EXPECT_EQ(refused(R"({"command":"link_remove","fid":"0x1000000000990000"})"), "readout.no_such_link");
  EXPECT_EQ(refused(R"({"command":"slow_disk"})"), "process.unknown_command");
}

}  // namespace
}  // namespace rodeo::readout
