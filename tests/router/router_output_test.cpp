// The output of a router as JSON report, text, metrics, and view on a terminal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "router/run/prometheus.h"
#include "router/run/router_report_output.h"
#include "router/run/router_view.h"
#include "router/some_status.h"

namespace rodeo::router {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

RouterStatus at(double seconds, std::uint64_t chunks) {
  RouterStatus status = some_status();
  status.phase = Phase::running;
  status.seconds = seconds;
  base::counter_named(status.readers[0].counters, "chunks_read") = chunks;
  status.readers[0].subscribers[0].chunks = chunks / 2;
  return status;
}

TEST(RouterReportJson, HasEveryDocumentedKey) {
  const Json json = report_json(make_report({.name = "felix"}, some_status(), false));
  for (const char* key : {"run", "links", "chunks", "bytes", "cpu_seconds", "limited_by", "readers", "subscribers", "input"})
    EXPECT_NE(json.find(key), nullptr) << key;
  EXPECT_EQ(json.find("run")->find("condition")->string(), "GOOD");
  EXPECT_EQ(json.find("chunks")->find("published")->number(), 990);
  EXPECT_EQ(json.find("cpu_seconds")->find("router")->number(), 3.25);
  EXPECT_EQ(json.find("cpu_seconds")->find("emulator")->number(), 0.5);
  const auto& subscribers = json.find("subscribers")->elements();
  ASSERT_EQ(subscribers.size(), 2U);
  EXPECT_EQ(subscribers[0].find("reader")->string(), "felix.0");
  EXPECT_EQ(subscribers[1].find("kind")->string(), "monitor");
  EXPECT_EQ(subscribers[1].find("dropped_chunks")->number(), 3);
}

TEST(RouterReportText, SaysTheSumAndWhoWasWaitedFor) {
  const std::string text = report_text(make_report({.name = "felix"}, some_status(), false));
  EXPECT_THAT(text, HasSubstr("router felix: GOOD after 10.0 s\n"));
  EXPECT_THAT(text, HasSubstr("1000 sent = 990 published + 10 no_subscriber + 0 not_taken\n"));
  EXPECT_THAT(text, HasSubstr("readout (data) at 127.0.0.1:4711, tcp of felix.0: 59 links, 590 chunks"));
  EXPECT_THAT(text, HasSubstr("3 chunks dropped"));
  EXPECT_THAT(text, HasSubstr("limited by  readout\n"));
  EXPECT_THAT(text, HasSubstr("verdict     nothing was lost\n"));
}

TEST(RouterReportText, SaysWhenCountsDoNotAddUpAndWhatWasNotTaken) {
  RouterStatus status = some_status();
  base::counter_named(status.readers[1].counters, "chunks_wanted") = 0;
  EXPECT_THAT(report_text(make_report({}, status, false)), HasSubstr("DOES NOT ADD UP"));
  base::counter_named(status.readers[1].counters, "not_taken") = 400;
  status.readers[0].subscribers[0].pending_chunks = 12;
  const std::string text = report_text(make_report({}, status, false));
  EXPECT_THAT(text, HasSubstr("400 chunks dropped"));
  EXPECT_THAT(text, HasSubstr("12 chunks NOT TAKEN"));
}

TEST(RouterView, ShowsRatesOfReadersAndSubscribers) {
  const auto lines = view_lines({.name = "felix"}, at(1, 1000), at(2, 5000), {.columns = 120});
  EXPECT_THAT(lines, Contains(HasSubstr("rodeo felix  running 0:00:02")));
  EXPECT_THAT(lines, Contains(::testing::AllOf(HasSubstr("felix.0"), HasSubstr("4 k/s"), HasSubstr("60 links"))));
  EXPECT_THAT(lines, Contains(::testing::AllOf(HasSubstr("2 k/s"), HasSubstr("readout (data)"))));
  EXPECT_THAT(lines, Contains(HasSubstr("3 chunks dropped")));
  EXPECT_THAT(lines, Contains(HasSubstr("limited by: readout")));
}

TEST(RouterView, FitsTheTerminal) {
  for (const int columns : {40, 60, 80}) {
    for (const std::string& line : view_lines({}, {}, some_status(), {.columns = columns}))
      EXPECT_LE(static_cast<int>(line.size()), columns) << line;
  }
}

TEST(RouterView, SaysThatItWaits) {
  RouterStatus status = some_status();
  status.waiting = true;
  EXPECT_THAT(view_lines({}, {}, status, {}), Contains(HasSubstr("waits for subscribers")));
  EXPECT_EQ(view_line({}, status), "waits for subscribers");
  status.waiting = false;
  EXPECT_THAT(view_line({}, status), HasSubstr("2 subscriptions"));
}

TEST(RouterPrometheus, EverySampleHasHelpAndType) {
  const std::string text = prometheus_text({.name = "felix"}, some_status());
  std::istringstream lines(text);
  std::string described;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# TYPE ")) described = line.substr(7, line.find(' ', 7) - 7);
    if (!line.starts_with('#')) {
      EXPECT_EQ(line.substr(0, line.find('{')), described);
    }
  }
  EXPECT_THAT(text, HasSubstr("rodeo_router_chunks_wanted_total{router=\"felix\",reader=\"felix.1\"} 400\n"));
  EXPECT_THAT(text, HasSubstr("# HELP rodeo_router_no_subscriber_total Chunks in no page: no subscriber"));
  EXPECT_THAT(text, HasSubstr("# HELP rodeo_router_link_bytes_total Bytes of the chunks of the link. [bytes]\n"));
  EXPECT_THAT(
      text, HasSubstr("rodeo_router_link_errors_total{router=\"felix\",reader=\"felix.0\",fid=\"0x1010000000800000\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("rodeo_router_links{router=\"felix\",reader=\"felix.1\"} 40\n"));
  EXPECT_THAT(text, HasSubstr("rodeo_limited_by{router=\"felix\",stage=\"readout\"} 1\n"));
}

}  // namespace
}  // namespace rodeo::router
