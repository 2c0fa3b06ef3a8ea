// The life of a process around a service that does as little as possible: requests on its socket, its end in time.
#include "process/service_run.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>

namespace rodeo::process {
namespace {

/// Settings of the stub, and the calls that it got.
struct Noted {
  bool ends_when_it_gives_up = true;
  int steps_to_the_end = 1000;
  bool refuses_start = false;
  std::uint32_t run = 0;
  bool gave_up = false;
  std::string failed;
};

class Stub final : public Service {
 public:
  Stub(ServiceFacts facts, Noted& noted) : Service(std::move(facts)), noted_(noted) {}

  void prepare() override {}
  void hold() override { phase_ = Phase::ready; }
  Result<void> set_run(std::uint32_t number, const Json&) override {
    noted_.run = number;
    return {};
  }
  void start() override {
    if (noted_.refuses_start) throw SetupError({"stub.start", "it cannot"});
    phase_ = Phase::running;
  }
  void step() override {
    if (--noted_.steps_to_the_end <= 0) phase_ = Phase::stopped;
  }
  void stop() override {}
  void give_up() override {
    noted_.gave_up = true;
    if (noted_.ends_when_it_gives_up) phase_ = Phase::stopped;
  }
  void fail(const std::string& why) override { noted_.failed = why; }
  Phase phase() const override { return phase_; }
  Report conclude(bool) override { return {}; }
  Json status(const Json&) override { return Json::object({{"run", noted_.run}}); }
  std::string_view commands() const override { return ", dance"; }
  std::optional<Result<Json>> command(const std::string& command, const Json&) override {
    if (command != "dance") return std::nullopt;
    return Json::object({{"danced", true}});
  }
  std::vector<WatchedPart> watched() override { return {}; }
  std::vector<std::string> view_lines(double, ViewStyle) override { return {}; }
  std::string view_line(double) override { return {}; }

 private:
  Noted& noted_;
  Phase phase_ = Phase::prepared;
};

class AServiceRun : public ::testing::Test {
 protected:
  void make(bool hold) {
    ServiceFacts facts{.kind = kRecorder, .name = "felix-1", .configuration_sha256 = "5ca1e", .ending = "nothing"};
    facts.stop_limit = std::chrono::milliseconds{200};
    facts.long_prepare = true;
    run_ = std::make_unique<ServiceRun>(std::make_unique<Stub>(std::move(facts), noted_),
                                        ServiceRun::Options{.hold = hold, .build = "1.2 abc", .write = {}});
  }
  Json ask(const std::string& request) { return *Json::parse(run_->answer(request)); }
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

  Noted noted_;
  std::unique_ptr<ServiceRun> run_;
};

TEST_F(AServiceRun, ItsStatusNamesTheProcess) {
  make(true);
  const Json said = process();
  EXPECT_EQ(said.find("phase")->string(), "launching");
  EXPECT_EQ(said.find("kind")->string(), "recorder");
  EXPECT_EQ(said.find("name")->string(), "felix-1");
  EXPECT_EQ(said.find("build")->string(), "1.2 abc");
  EXPECT_EQ(said.find("configuration_sha256")->string(), "5ca1e");
  EXPECT_EQ(said.find("pid")->number(), static_cast<double>(::getpid()));
  EXPECT_GT(said.find("started_ns")->unsigned_integer(), 1'600'000'000'000'000'000U) << "UTC";
}

TEST_F(AServiceRun, AnswersWhileItPrepares) {
  make(true);
  EXPECT_EQ(start(R"(,"run":7)"), "process.not_ready");
  EXPECT_EQ(refused(R"({"command":"dance"})"), "process.not_ready");
  EXPECT_FALSE(run_->ended_without_run());
  EXPECT_EQ(refused(R"({"command":"stop"})"), "");
  EXPECT_TRUE(run_->ended_without_run());
}

TEST_F(AServiceRun, StartsOnceAndOnlyWithItsOwnConfiguration) {
  make(true);
  run_->prepare(nullptr);
  EXPECT_EQ(refused(R"({"command":"start","run":7})"), "process.other_configuration");
  EXPECT_EQ(start(R"(,"run":7)", "0ther"), "process.other_configuration");
  for (const char* run :
       {"", R"(,"run":0)", R"(,"run":-1)", R"(,"run":1.5)", R"(,"run":2147483648)", R"(,"run":"7")", R"(,"run":null)"})
    EXPECT_EQ(start(run), "process.bad_run") << run;
  EXPECT_EQ(noted_.run, 0U) << "the refused request has changed nothing";
  EXPECT_EQ(start(R"(,"run":7)"), "");
  EXPECT_EQ(phase(), "running");
  EXPECT_EQ(start(R"(,"run":8)"), "process.not_ready");
  EXPECT_EQ(noted_.run, 7U);
  EXPECT_EQ(refused(R"({"command":"stop"})"), "");
  EXPECT_FALSE(run_->ended_without_run());
}

TEST_F(AServiceRun, AStopWhileItIsHeldStartsNoRun) {
  make(true);
  run_->prepare(nullptr);
  EXPECT_EQ(refused(R"({"command":"stop"})"), "");
  EXPECT_TRUE(run_->ended_without_run());
  EXPECT_EQ(start(R"(,"run":7)"), "process.not_ready");
  EXPECT_EQ(noted_.run, 0U);
}

TEST_F(AServiceRun, AFailedStartIsRefusedAndEndsTheProcess) {
  noted_.refuses_start = true;
  make(true);
  run_->prepare(nullptr);
  EXPECT_EQ(start(R"(,"run":7)"), "stub.start");
  ASSERT_TRUE(run_->failure());
  EXPECT_EQ(run_->failure()->code, "stub.start");
}

TEST_F(AServiceRun, AnswersCommandsOfTheService) {
  make(false);
  run_->prepare(nullptr);
  EXPECT_EQ(refused(R"({"command":"dance"})"), "");
  const Json answer = ask(R"({"command":"sing"})");
  EXPECT_EQ(answer.find("code")->string(), "process.unknown_command");
  EXPECT_EQ(answer.find("next")->string(), "the commands are status, stop, start, dance");
}

TEST_F(AServiceRun, AServiceThatGivesUpEndsInOrder) {
  make(false);
  run_->prepare(nullptr);
  EXPECT_EQ(refused(R"({"command":"stop"})"), "");
  EXPECT_EQ(run_->run_in_order(nullptr), ServiceRun::Ended::in_order);
  EXPECT_TRUE(noted_.gave_up);
}

TEST_F(AServiceRun, AServiceThatDoesNotGiveUpIsLeftWhenTheLimitIsOver) {
  noted_.ends_when_it_gives_up = false;
  make(false);
  run_->prepare(nullptr);
  EXPECT_EQ(refused(R"({"command":"stop"})"), "");
  EXPECT_EQ(run_->run_in_order(nullptr), ServiceRun::Ended::by_limit);
  EXPECT_TRUE(noted_.gave_up);
  EXPECT_EQ(noted_.failed, "the run did not end within stop_limit = 0.2 s");
}

TEST_F(AServiceRun, ARunWithoutAnOrderToStopHasNoLimit) {
  noted_.steps_to_the_end = 6;
  make(false);
  run_->prepare(nullptr);
  EXPECT_EQ(run_->run_in_order(nullptr), ServiceRun::Ended::in_order);
  EXPECT_FALSE(noted_.gave_up);
}

}  // namespace
}  // namespace rodeo::process
