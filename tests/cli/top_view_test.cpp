// The view of `rodeo top` from two observations of processes.
#include "cli/top_view.h"

#include <gtest/gtest.h>

#include <chrono>

namespace rodeo::cli {
namespace {

using namespace std::chrono_literals;
using process::ListedProcess;

ListedProcess seen(const std::string& kind, const std::string& status, double cpu_seconds = 0,
                   std::chrono::seconds at = 0s) {
  ListedProcess one;
  one.name = "one";
  one.kind = kind;
  one.pid = 7;
  one.status = Json::parse(status).value();
  one.cpu_seconds = cpu_seconds;
  one.seen = std::chrono::steady_clock::time_point{} + 100s + at;
  return one;
}

std::string readout(int built, int late, const std::string& condition = "GOOD", const std::string& links = "") {
  return R"({"process": {"phase": "running"}, "run": {"number": 12, "seconds": 10, "condition": ")" + condition +
         R"("}, "fragments": {"built": )" + std::to_string(built) + R"(}, "chunks": {"lost": {"late": )" +
         std::to_string(late) +
         R"(, "corrupt": 0}}, "dead_time_fraction": 0.01, "limited_by_now": "nothing", "robs": [{"links": [)" + links +
         R"(]}, {"links": []}]})";
}

TEST(TopView, TakesRatesAndCpuOfTwoLooksAndMeansOfTheRunOfOne) {
  const auto one = top_view({}, {seen("readout", readout(1000, 0))}, 10);
  ASSERT_EQ(one.rows.size(), 1U);
  EXPECT_DOUBLE_EQ(one.rows[0].rate_hz.value(), 50) << "1000 fragments of two ROBs in 10 s";
  EXPECT_FALSE(one.rows[0].cpu);
  const auto full = top_view(
      {}, {seen("readout", R"({"run": {"seconds": 10}, "fragments": {"built": 3000, "events": 1000}, "robs": [{}]})")}, 10);
  EXPECT_DOUBLE_EQ(full.rows.at(0).rate_hz.value(), 100) << "three groups of a ROB in FULL mode";
  const auto two = top_view({seen("readout", readout(1000, 0), 1.0)}, {seen("readout", readout(1400, 0), 1.5, 2s)}, 10);
  EXPECT_DOUBLE_EQ(two.rows[0].rate_hz.value(), 100);
  EXPECT_DOUBLE_EQ(two.rows[0].cpu.value(), 0.25);
  EXPECT_EQ(two.rows[0].run, 12U);
  EXPECT_EQ(two.rows[0].phase, "running");
}

TEST(TopView, RatesOfAFarmAreWholeEvents) {
  const auto rate = [](const char* kind, const char* counter) {
    const auto at = [&](int count) {
      return R"({"run": {"seconds": 10}, "events": {")" + std::string(counter) + "\": " + std::to_string(count) + "}}";
    };
    return top_view({seen(kind, at(1000))}, {seen(kind, at(1400), 0, 2s)}, 10).rows[0].rate_hz.value_or(0);
  };
  EXPECT_DOUBLE_EQ(rate("supervisor", "in"), 200);
  EXPECT_DOUBLE_EQ(rate("node", "assigned"), 200);
  EXPECT_DOUBLE_EQ(rate("recorder", "recorded"), 200);
}

TEST(TopView, AnotherLifeOfAProcessIsNoOlderOne) {
  auto before = seen("readout", readout(5000, 0), 90);
  before.pid = 6;
  const auto view = top_view({before}, {seen("readout", readout(1000, 0), 1, 2s)}, 10);
  EXPECT_FALSE(view.rows[0].cpu);
  EXPECT_DOUBLE_EQ(view.rows[0].rate_hz.value(), 50);
}

TEST(TopView, LossesAreByReasonTheLargestFirst) {
  const auto view = top_view(
      {},
      {seen("readout", readout(10, 3, "INCOMPLETE")),
       seen("emulator", R"({"seconds": 2, "trigger": {"accepted": 10, "dead_time_fraction": 0.5}, "functions": [
                {"counters": {"chunks_dropped": 4, "chunks_sent": 9}}, {"counters": {"chunks_dropped": 1, "frames_lost": 7}}]})"),
       seen(
           "router",
           R"({"phase": "running", "links": 4, "run": {"seconds": 1, "condition": "GOOD"}, "chunks": {"sent": 400, "not_taken": 0}})")},
      10);
  using Lost = std::vector<std::pair<std::string, double>>;
  EXPECT_EQ(view.rows[0].lost, (Lost{{"late", 3}}));
  EXPECT_EQ(view.rows[0].verdict, "INCOMPLETE");
  EXPECT_EQ(view.rows[1].lost, (Lost{{"frames_lost", 7}, {"chunks_dropped", 5}}));
  EXPECT_EQ(view.rows[1].verdict, "INCOMPLETE") << "a card that has lost data";
  EXPECT_DOUBLE_EQ(view.rows[1].rate_hz.value(), 5);
  EXPECT_DOUBLE_EQ(view.rows[1].dead_time_fraction.value(), 0.5);
  EXPECT_TRUE(view.rows[2].lost.empty());
  EXPECT_DOUBLE_EQ(view.rows[2].rate_hz.value(), 100);
}

TEST(TopView, OneThatDoesNotAnswerIsSilentAndNothingElseIsSaidOfIt) {
  ListedProcess silent;
  silent.name = "two";
  silent.kind = "readout";
  silent.pid = 8;
  silent.silent = "no answer";
  const auto view = top_view({}, {silent}, 10);
  EXPECT_EQ(view.rows[0].verdict, "SILENT");
  EXPECT_FALSE(view.rows[0].rate_hz);
  const std::string text = top_table(view).text(false);
  EXPECT_NE(text.find("no answer"), std::string::npos) << text;
  EXPECT_TRUE(member(top_json(view, {}), "processes").elements()[0].find("rate_hz")->is_null());
}

TEST(TopView, TheWorstLinksComeFirstAndTheOthersAreCounted) {
  std::string links;
  for (int i = 0; i < 20; ++i)
    links += std::string(i == 0 ? "" : ",") + R"({"fid": "0x)" + std::to_string(i) + R"(", "state": ")" +
             (i == 3 ? "removed" : "active") + R"(", "missing": )" + std::to_string(i < 10 ? 0 : i) + R"(, "bad": 0})";
  const auto view = top_view({}, {seen("readout", readout(1, 0, "INCOMPLETE", links))}, 3);
  ASSERT_EQ(view.links.size(), 3U);
  EXPECT_EQ(view.links[0].fid, "0x19");
  EXPECT_EQ(view.more_links, 8U) << "ten are missing, one is removed";
  EXPECT_EQ(member(top_json(view, {"lab"}), "worst_links").elements().size(), 3U);
  EXPECT_EQ(member(top_json(view, {"lab"}), "control_rooms").elements()[0].string(), "lab");
}

TEST(TopView, AStatusOfAnyShapeIsShown) {
  for (const char* status :
       {"{}", R"({"run": 5, "robs": 7, "chunks": [], "functions": {"a": 1}, "fragments": {"built": "x"}})", "null"}) {
    const auto view = top_view({seen("readout", status)}, {seen("readout", status, 0, 1s)}, 10);
    EXPECT_EQ(view.rows.size(), 1U);
    EXPECT_FALSE(top_table(view).text(false).empty());
  }
}

}  // namespace
}  // namespace rodeo::cli
