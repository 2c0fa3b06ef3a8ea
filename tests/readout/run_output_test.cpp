// The output of a run: JSON report, metrics, and the view on a terminal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "readout/run/prometheus.h"
#include "readout/run/run_report_output.h"
#include "readout/run/run_view.h"

namespace rodeo::readout {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

readout::ReadoutStatus some_status() {
  readout::ReadoutStatus status;
  status.phase = readout::Phase::running;
  status.seconds = 10;
  status.input = {{"sent", 1000}, {"triggers", 100}, {"vetoed", 25}, {"bytes", 40000}};
  status.input_cpu_seconds = 1.5;
  status.fragments = 100;
  status.robs.resize(1);
  status.robs[0].source_id = SourceId{0x610001};
  FragmentBuilder::Status& builder = status.robs[0].builder;
  builder.fragments = 100;
  builder.incomplete = 3;
  builder.chunks_received = 1000;
  builder.chunks_built = 998;
  builder.lost = {{"late", 2}, {"corrupt", 0}};
  builder.incomplete_by_reason = {{"time_out", 3}};
  builder.window_events = 1024;
  builder.pool_fill = 0.5;
  builder.links = {{.fid = Fid::of(0, 1, 0, 0)},
                   {.fid = Fid::of(0, 1, 0, 1), .state = LinkState::removed, .removed_by_policy = true}};
  status.consumers.resize(1);
  status.consumers[0].name = "file \"a\"";
  status.consumers[0].counters = {{"bytes_written", 7}};
  status.consumers[0].files = {{.path = "x.data"}};
  return status;
}

double number(const Json& json, std::string_view group, std::string_view key) {
  return json.find(group)->find(key)->number();
}

TEST(RunReportJson, HasEveryDocumentedKey) {
  readout::ReadoutSettings settings;
  settings.input.type = "generator";
  const Json json = report_json(readout::make_report(settings, some_status(), "builder", false));
  for (const char* key : {"run", "links", "offered_rate_hz", "trigger_rate_hz", "dead_time_fraction", "chunks", "limited_by",
                          "fragments", "bytes", "latency_us", "cpu_seconds", "verified", "files"}) {
    EXPECT_NE(json.find(key), nullptr) << key;
  }
  EXPECT_EQ(json.find("run")->find("condition")->string(), "INCOMPLETE");
  EXPECT_EQ(number(json, "chunks", "sent"), 1000);
  EXPECT_EQ(number(*json.find("chunks"), "lost", "late"), 2);
  EXPECT_DOUBLE_EQ(json.find("dead_time_fraction")->number(), 0.2);
  EXPECT_EQ(number(json, "bytes", "written"), 7);
  EXPECT_EQ(number(json, "cpu_seconds", "emulator"), 1.5);
  EXPECT_EQ(json.find("files")->elements().size(), 1U);
}

TEST(RunReport, DeadTimeThatIsNotKnownIsNowhereZero) {
  readout::ReadoutStatus status = some_status();
  std::erase_if(status.input, [](const NamedCounter& counter) { return counter.name == "vetoed"; });
  const auto report = readout::make_report({}, status, "nothing", false);
  const Json json = report_json(report);
  for (const char* key : {"offered_rate_hz", "dead_time_fraction"}) {
    ASSERT_NE(json.find(key), nullptr) << key;
    EXPECT_TRUE(json.find(key)->is_null()) << key;
  }
  EXPECT_THAT(report_text(report), HasSubstr("accepted; dead time is not known here"));
  EXPECT_THAT(view_line({}, status), HasSubstr("dead time is not known here"));
  EXPECT_THAT(view_lines({}, {}, status, {.color = false, .columns = 200}),
              Contains(HasSubstr("dead time is not known here")));
}

TEST(RunReportJson, EachGroupOfARobHasAFragmentOfAnEvent) {
  readout::ReadoutStatus status = some_status();
  status.robs[0].groups = 4;
  const Json json = status_json(readout::make_report({}, status, "nothing", false), status);
  EXPECT_EQ(number(json, "fragments", "built"), 100);
  EXPECT_EQ(number(json, "fragments", "events"), 25);
  EXPECT_EQ(json.find("robs")->elements().at(0).find("groups")->number(), 4);
}

TEST(RunReportJson, StatusListsEveryLink) {
  const readout::ReadoutStatus status = some_status();
  const Json json = status_json(readout::make_report({}, status, "nothing", false), status);
  const auto& links = json.find("robs")->elements().at(0).find("links")->elements();
  ASSERT_EQ(links.size(), 2U);
  EXPECT_EQ(links[1].find("fid")->string(), "0x1000001000010000");
  EXPECT_EQ(links[1].find("state")->string(), "removed");
  EXPECT_TRUE(links[1].find("removed_by_policy")->boolean());
}

TEST(RunReport, LinksOutOfStepAndChunksInDoubtAreNamed) {
  readout::ReadoutStatus status = some_status();
  status.robs[0].builder.links[1].state = LinkState::active;
  status.robs[0].places = {{}, {.in_doubt = 12, .moved = 1}};
  const auto text = [&] { return report_text(readout::make_report({}, status, "nothing", false)); };
  EXPECT_THAT(text(), HasSubstr("\n  in doubt    1 of 2 links: 0x1000001000010000 12 chunks, moved 1 time\n"));
  EXPECT_THAT(text(), HasSubstr("; 12 chunks of link 0x1000001000010000 in doubt\n"));
  EXPECT_THAT(text(), Not(HasSubstr("out of step")));

  status.robs[0].places[0] = {.in_doubt = 3, .out_of_step = true, .bcid_offset = 5};
  EXPECT_THAT(text(), HasSubstr("2 of 2 links: 0x1000001000000000 out of step (BCIDs too large by 5), 3 chunks; 0x"))
      << "the largest first";
  EXPECT_THAT(text(), HasSubstr("; 15 chunks in doubt: 12 of link 0x1000001000010000, 3 of link 0x1000001000000000; "
                                "link 0x1000001000000000 is out of step (BCIDs too large by 5)\n"));
  EXPECT_THAT(view_lines({}, {}, status, {.color = false, .columns = 200}),
              Contains(HasSubstr("2 active, 1 out of step: 0x1000001000000000")));

  const Json json = status_json(readout::make_report({}, status, "nothing", false), status);
  EXPECT_EQ(number(json, "fragments", "chunks_in_doubt"), 15);
  const Json& doubtful = *json.find("fragments")->find("doubtful_links");
  ASSERT_EQ(doubtful.elements().size(), 2U);
  EXPECT_EQ(doubtful.elements()[0].find("bcid_offset")->number(), 5);
  const Json& links = *json.find("robs")->elements()[0].find("links");
  EXPECT_TRUE(links.elements()[0].find("out_of_step")->boolean());
  EXPECT_EQ(links.elements()[1].find("moved")->number(), 1);
  EXPECT_TRUE(links.elements()[1].find("bcid_offset")->is_null());

  const std::string metrics = prometheus_text({}, status);
  for (const char* const sample :
       {"rodeo_link_out_of_step{readout=\"readout\",rob=\"0x00610001\",fid=\"0x1000001000000000\"} 1\n",
        "rodeo_link_moved_total{readout=\"readout\",rob=\"0x00610001\",fid=\"0x1000001000010000\"} 1\n",
        "rodeo_link_in_doubt_total{readout=\"readout\",rob=\"0x00610001\",fid=\"0x1000001000010000\"} 12\n"})
    EXPECT_THAT(metrics, HasSubstr(sample));
}

TEST(RunReportText, CountsRemovedLinksByThemselves) {
  readout::ReadoutStatus status = some_status();
  status.robs[0].builder.without_removed = 40;
  status.robs[0].builder.links[0].missing = 3;
  status.robs[0].builder.links[1].left_out = 40;
  const auto report = readout::make_report({}, status, "nothing", false);
  const std::string text = report_text(report);
  EXPECT_THAT(text, HasSubstr("40 lack links that were removed"));
  EXPECT_THAT(text, HasSubstr("missing     1 of 2 links in some fragments: 0x1000001000000000 in 3"));
  EXPECT_THAT(text, HasSubstr("removed     1 of 2 links in some fragments: 0x1000001000010000 in 40"));
  const Json json = report_json(report);
  EXPECT_EQ(number(json, "fragments", "without_removed_links"), 40);
  EXPECT_EQ(json.find("fragments")->find("removed_links")->elements().at(0).find("left_out")->number(), 40);
}

TEST(RunReportText, SaysWhenCountsDoNotAddUp) {
  readout::ReadoutStatus status = some_status();
  EXPECT_THAT(report_text(readout::make_report({}, status, "nothing", false)),
              HasSubstr("1000 received = 998 built + 2 lost: late 2"));
  readout::ReadoutSettings generator;
  generator.input.type = "generator";
  EXPECT_THAT(report_text(readout::make_report(generator, status, "nothing", false)),
              HasSubstr("1000 sent = 998 built + 2 lost: late 2"));
  status.robs[0].builder.chunks_built = 0;
  EXPECT_THAT(report_text(readout::make_report({}, status, "nothing", false)), HasSubstr("DOES NOT ADD UP"));
}

TEST(RunReportText, NamesTheFilesAndHasUnitsEverywhere) {
  readout::ReadoutStatus status = some_status();
  status.consumers[0].counters.clear();
  status.consumers[0].files.clear();
  for (int i = 1; i <= 6; ++i)
    status.consumers[0].files.push_back({.path = "/data/" + std::to_string(i), .bytes = 0, .events = 7});
  const std::string text = report_text(readout::make_report({}, status, "nothing", false));
  EXPECT_THAT(text, HasSubstr("\n  file        7 events in /data/1\n"));
  EXPECT_THAT(text, HasSubstr("7 events in /data/4\n              and 2 more\n"));
  EXPECT_THAT(text, HasSubstr("0 B written"));
}

TEST(RunReportText, SaysHowManyEventsWereOpenWhenTheRunWasStopped) {
  readout::ReadoutStatus status = some_status();
  status.phase = readout::Phase::stopped;
  status.stopped = true;
  status.data_seconds = 2;
  status.robs[0].builder.incomplete_by_reason = {{"run_ended", 3}};
  EXPECT_THAT(report_text(readout::make_report({}, status, "nothing", false)),
              HasSubstr("3 of these were open when the run was stopped: not a loss"));
}

TEST(RunReportText, SaysWhatWasNotWrittenAndWhereADamagedRecordingIsLookedInto) {
  readout::ReadoutStatus status = some_status();
  status.input.push_back({"damaged", 3});
  status.consumers[0].name = "writer";
  status.consumers[0].counters = {
      {"unwritten_beyond_fraction", 9}, {"unwritten_disk_full", 70}, {"unwritten_queue_full", 2}, {"work_threw", 5}};
  const std::string text = report_text(readout::make_report({}, status, "nothing", false));
  EXPECT_THAT(text, HasSubstr("not written 72 events for writer: disk_full 70, queue_full 2\n"));
  EXPECT_THAT(text, HasSubstr("failed      writer: work_threw 5\n"));
  EXPECT_THAT(text, HasSubstr("damaged in 3 places; `rodeo data verify` says where"));
}

TEST(Prometheus, EverySampleHasHelpAndType) {
  const std::string text = prometheus_text({}, some_status());
  std::istringstream lines(text);
  std::string described;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# TYPE ")) described = line.substr(7, line.find(' ', 7) - 7);
    if (line.starts_with('#')) continue;
    EXPECT_EQ(line.substr(0, line.find('{')), described);
  }
  EXPECT_THAT(text, HasSubstr("rodeo_chunks_lost_total{readout=\"readout\",rob=\"0x00610001\",reason=\"late\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("rodeo_link_active{readout=\"readout\",rob=\"0x00610001\",fid=\"0x1000001000010000\"} 0\n"));
}

TEST(Prometheus, LabelsAreEscaped) {
  EXPECT_THAT(prometheus_text({}, some_status()), HasSubstr("consumer=\"file \\\"a\\\"\""));
}

TEST(RunView, ShowsRatesBetweenTwoLooks) {
  readout::ReadoutStatus before = some_status();
  before.seconds = 9;
  before.fragments = 50;
  before.robs[0].builder.chunks_built = 498;
  before.input = {{"sent", 500}, {"triggers", 50}, {"vetoed", 25}};
  const auto lines = view_lines({}, before, some_status(), {.color = false, .columns = 200});
  EXPECT_THAT(lines, Contains(HasSubstr("chunks            500/s")));
  EXPECT_THAT(lines, Contains(HasSubstr("incomplete 3 (time_out 3)")));
  EXPECT_THAT(lines, Contains(HasSubstr("lost 2 (late 2)")));
  EXPECT_THAT(lines, Contains(HasSubstr("1 active, 1 removed: 0x1000001000010000 by policy")));
}

TEST(RunView, NoLineIsWiderThanTheTerminal) {
  for (const bool color : {false, true}) {
    for (const std::string& line : view_lines({}, {}, some_status(), {.color = color, .columns = 30})) {
      int visible = 0;
      for (std::size_t i = 0; i < line.size(); ++i) {
        if (line[i] == '\x1b') {
          i = line.find('m', i);
        } else {
          ++visible;
        }
      }
      EXPECT_LE(visible, 30) << line;
    }
  }
}

TEST(RunView, AColourThatDoesNotEndEndsWithTheLine) {
  readout::ReadoutStatus status = some_status();
  status.consumers[0].name = "half\x1b[3";
  EXPECT_THAT(view_lines({}, {}, status, {.color = false, .columns = 40}), Contains(HasSubstr("half")));
}

TEST(RunView, WhatDoesNotFitGoesOnInTheNextLineAndNoNumberIsCut) {
  readout::ReadoutStatus status = some_status();
  status.robs[0].builder.lost = {{"late", 1'234'000}, {"out_of_sequence", 45'600'000}, {"malformed", 7}};
  status.consumers[0].counters = {{"events_written", 1'450'000}, {"bytes_written", 144'000'000}};
  for (const int columns : {60, 80, 100}) {
    std::string all;
    for (const std::string& line : view_lines({}, {}, status, {.color = false, .columns = columns})) {
      EXPECT_LE(line.size(), static_cast<std::size_t>(columns)) << line;
      all += line + "\n";
    }
    for (const char* whole : {"lost 46.8 M", "(out_of_sequence 45.6 M,", "late 1.23 M,", "malformed 7)",
                              "events_written 1.45 M", "bytes_written 144 M"}) {
      EXPECT_THAT(all, HasSubstr(whole)) << columns;
    }
  }
}

TEST(RunReport, AVerdictSaysWhatIsLostAndWhetherThatIsTooMuch) {
  readout::ReadoutStatus status = some_status();
  const auto report = [&](double allowed) {
    readout::ReadoutSettings settings;
    settings.fail_on_loss = allowed;
    return readout::make_report(settings, status, "nothing", false);
  };
  EXPECT_FALSE(report(1).lost_too_much());
  EXPECT_FALSE(report(0.03).lost_too_much());
  EXPECT_TRUE(report(0.029).lost_too_much());  // the report has 3 incomplete fragments of 100
  EXPECT_THAT(report_text(report(0.5)),
              HasSubstr("\n  verdict     2 chunks lost of 1000 (0.2 %), 3 fragments incomplete of 100 (3 "
                        "%); fail_on_loss allows 50 %\n"));
  EXPECT_THAT(report_text(report(0)), HasSubstr("\n  verdict     TOO MUCH IS LOST: "));
  const Json loss = *report_json(report(0)).find("loss");
  EXPECT_DOUBLE_EQ(loss.find("fraction")->number(), 0.03);
  EXPECT_TRUE(loss.find("exceeded")->boolean());
  EXPECT_EQ(loss.find("losses")->elements().size(), 2U);

  status.robs[0].builder.lost = {};
  status.robs[0].builder.incomplete = 0;
  status.robs[0].builder.chunks_built = 1000;
  EXPECT_FALSE(report(0).lost_too_much());
  EXPECT_THAT(report_text(report(0)), HasSubstr("\n  verdict     nothing was lost\n"));
  RunReport cut_short = report(0);
  cut_short.condition = Condition::aborted;
  EXPECT_THAT(report_text(cut_short), Not(HasSubstr("nothing was lost")));
  cut_short.chunks_sent += 1000;
  EXPECT_THAT(report_text(cut_short), HasSubstr("1000 chunks neither built nor counted as lost of"));
  // Losses of a card have no total to compare with.
  status.input.push_back({"card_lost_packets", 5});
  EXPECT_FALSE(report(0.001).lost_too_much());
  EXPECT_TRUE(report(0).lost_too_much());
  EXPECT_TRUE(report_json(report(0)).find("loss")->find("losses")->elements().at(0).find("of")->is_null());
  // Unwritten events count as losses, except those left out by a requested fraction.
  status.input.pop_back();
  status.consumers[0].consumed = 100;
  status.consumers[0].counters = {{"unwritten_beyond_fraction", 9}, {"unwritten_queue_full", 2}};
  EXPECT_TRUE(report(0.01).lost_too_much());
  EXPECT_FALSE(report(0.02).lost_too_much());
  // Fragments at which a consumer threw also count, and fragments that lack removed links.
  status.consumers[0].counters = {{"work_threw", 3}};
  EXPECT_TRUE(report(0.02).lost_too_much());
  EXPECT_THAT(report_text(report(0)), HasSubstr("\n  verdict     TOO MUCH IS LOST: 3 work_threw (file \"a\") of 100 (3 %)"));
  status.consumers[0].counters = {};
  status.robs[0].builder.without_removed = 4;
  EXPECT_TRUE(report(0.03).lost_too_much());
  EXPECT_FALSE(report(0.04).lost_too_much());
}

TEST(RunReport, AVerdictNamesWhatIsWrong) {
  readout::ReadoutStatus status = some_status();
  FragmentBuilder::Status& builder = status.robs[0].builder;
  builder.chunks_built = 1000;
  builder.incomplete = 0;
  builder.lost.clear();
  FragmentConsumer::Status& proof = status.consumers.emplace_back();
  proof.name = "proof";
  proof.counters = {{"verified_chunks", 90}, {"mismatches", 3},     {"flagged_chunks", 7},   {"wrong_chunks", 2},
                    {"duplicate_links", 1},  {"wrong_triggers", 0}, {"first_wrong_l1id", 5}, {"first_wrong_link_id", 0x10}};
  auto report = readout::make_report({}, status, "nothing", false);
  EXPECT_THAT(report_text(report),
              HasSubstr("\n  verdict     data are WRONG; proof: mismatches 3, wrong_chunks 2, duplicate_links 1, first in "
                        "L1 id 0x00000005, link id 0x00000010; nothing was lost\n"));
  status.consumers.pop_back();
  builder.chunks_built = 1001;
  status.phase = Phase::stopped;
  report = readout::make_report({}, status, "nothing", false);
  EXPECT_THAT(report_text(report), HasSubstr("data are WRONG; 1000 chunks were sent, but 1001 built or lost; "));
}

TEST(RunReport, AdviceFitsTheInput) {
  readout::ReadoutStatus status;
  status.phase = Phase::stopped;
  status.input = {{"sent", 0}};
  readout::ReadoutSettings settings;
  const auto text = [&](const char* input) {
    settings.input.type = input;
    return report_text(readout::make_report(settings, status, "nothing", false));
  };
  EXPECT_THAT(text("card"), HasSubstr("rodeo card status"));
  EXPECT_THAT(text("generator"), HasSubstr("fault_"));
  EXPECT_THAT(text("file"), HasSubstr("rodeo data info"));
  for (const char* input : {"generator", "file", "of_a_plugin"}) EXPECT_THAT(text(input), Not(HasSubstr("card"))) << input;
  status.input.push_back({"lost_blocks", 3});
  EXPECT_THAT(text("file"), HasSubstr("lost before they came here, in the recording: lost_blocks 3"));
}

TEST(RunView, WithoutColourThereIsNoEscape) {
  for (const std::string& line : view_lines({}, {}, some_status(), {.color = false, .columns = 80})) {
    EXPECT_EQ(line.find('\x1b'), std::string::npos);
  }
}

}  // namespace
}  // namespace rodeo::readout
