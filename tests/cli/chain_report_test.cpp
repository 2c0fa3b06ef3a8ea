// The report of a chain's processes: sums over all of them, and messages if a process is missing or a sum is wrong.
#include "cli/chain_report.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "cli/chain_parts.h"
#include "cli/output.h"
#include "formats/temporary_directory.h"

namespace rodeo::cli {
namespace {

Json parsed(std::string_view text) { return *Json::parse(text); }

Json readout(std::uint64_t chunks) {
  Json report =
      parsed(R"({"run": {"condition": "GOOD", "seconds": 2.0}, "links": 4, "fragments": {"built": 10, "incomplete": 0},
                           "latency_us": {"p50": null}, "cpu_seconds": {"readout": 0.5, "hlt": 0.25}, "verified": {"mismatches": 0},
                           "limited_by": "nothing", "loss": {"fraction": 0, "allowed": 1, "exceeded": false, "losses": []}})");
  report["chunks"] = Json::object({{"sent", chunks}, {"built", chunks}, {"lost", Json::object()}});
  report["verified"]["chunks"] = chunks;
  return report;
}

ChainRun good_run() {
  return {
      .name = "demo",
      .processes =
          {{"card", "emulator",
            parsed(R"({"cpu_seconds": 0.5, "trigger": {"offered": 20, "accepted": 10, "offering_seconds": 2.0},
                                    "functions": [{"chunks": 80, "counters": {"chunks_dropped": 0}}]})")},
           {"router", "router",
            parsed(R"({"run": {"condition": "GOOD"}, "chunks": {"sent": 80, "published": 80, "not_taken": 0}})")},
           {"readout-1", "readout", readout(40)},
           {"readout-2", "readout", readout(40)},
           {"supervisor", "supervisor",
            parsed(R"({"run": {"condition": "GOOD", "number": 7}, "events": {"in": 10, "partial": 0, "reassigned": 2}})")},
           {"node-1", "node", parsed(R"({"run": {"condition": "GOOD"}, "latency_us": {"building_p50": 12.5}})")},
           {"recorder", "recorder",
            parsed(R"({"run": {"condition": "GOOD"}, "events": {"recorded": 4}, "bytes": {"files": 1000},
                                    "files": [{"path": "a.data"}]})")}},
      .decided = farm::Decided{.accepted = 3, .rejected = 6, .debug = 1, .lost = 0},
      .failure = ""};
}

std::uint64_t count(const Json& report, std::string_view group, std::string_view key) {
  return static_cast<std::uint64_t>(member(member(report, group), key).number());
}

std::string condition(const Json& report) { return member(member(report, "run"), "condition").string(); }

TEST(ChainReport, SumsAllReadoutsAndSaysWhereEachTriggerIs) {
  const Json report = chain_report(good_run());
  EXPECT_EQ(condition(report), "GOOD");
  EXPECT_EQ(count(report, "chunks", "sent"), 80U);
  EXPECT_EQ(count(report, "chunks", "built"), 80U);
  EXPECT_EQ(count(report, "fragments", "built"), 20U);
  EXPECT_EQ(count(report, "farm", "triggers"), 10U);
  EXPECT_EQ(count(report, "farm", "undecided"), 0U);
  EXPECT_EQ(member(report, "dead_time_fraction").number(), 0.5);
  EXPECT_EQ(member(report, "links").unsigned_integer(), 8U);
  EXPECT_EQ(member(member(report, "cpu_seconds"), "hlt").number(), 0.5);
  EXPECT_EQ(member(member(report, "cpu_seconds"), "emulator").number(), 0.5);
  EXPECT_TRUE(chain_sum_holds(report, 4));
  EXPECT_FALSE(chain_sum_holds(report, 3));
  EXPECT_NE(chain_sum_text(report, 3).find("DOES NOT HOLD"), std::string::npos);
}

TEST(ChainReport, ATriggerThatIsNowhereIsUndecidedAndOneTooManyIsWrong) {
  ChainRun run = good_run();
  run.decided->rejected = 5;
  EXPECT_EQ(count(chain_report(run), "farm", "undecided"), 1U);
  EXPECT_EQ(condition(chain_report(run)), "INCOMPLETE");
  run.decided->rejected = 7;
  EXPECT_EQ(condition(chain_report(run)), "WRONG");
}

TEST(ChainReport, ChunksThatNobodyHasAreWrongUnlessAProcessLeftNoReport) {
  ChainRun run = good_run();
  run.processes[3].report = readout(39);
  EXPECT_EQ(condition(chain_report(run)), "WRONG");
  run.processes[3].report = Json();
  const Json report = chain_report(run);
  EXPECT_EQ(condition(report), "INCOMPLETE");
  EXPECT_EQ(count(member(report, "chunks"), "lost", "not_reported"), 40U);
}

TEST(ChainReport, BytesOfChunksAddUpFromRoutersToFragments) {
  ChainRun run = good_run();
  run.processes[1].report["bytes"] = parsed(R"({"in": 900, "published": 900})");
  for (const std::size_t readout : {2U, 3U})
    run.processes[readout].report["bytes"] = parsed(R"({"in": 450, "built": 440, "lost": {"late": 6, "cut": 4}})");
  const Json report = chain_report(run);
  EXPECT_EQ(condition(report), "GOOD");
  EXPECT_EQ(count(report, "bytes", "in"), 900U);
  EXPECT_EQ(count(member(report, "bytes"), "lost", "cut"), 8U);
  run.processes[3].report["bytes"]["built"] = 439U;
  EXPECT_EQ(condition(chain_report(run)), "WRONG") << "a byte is in no count";
  run.processes[3].report["bytes"]["built"] = Json();
  EXPECT_EQ(condition(chain_report(run)), "GOOD") << "a plug-in's builder does not count them";
  run.processes[1].report["bytes"]["published"] = 901U;
  EXPECT_EQ(condition(chain_report(run)), "WRONG") << "a byte was lost, but no chunk";
  run.processes[3].report["input"] = parsed(R"({"network_lost": 1})");
  EXPECT_NE(condition(chain_report(run)), "GOOD");
  EXPECT_TRUE(member(member(chain_report(run), "bytes"), "adds_up").boolean());
}

TEST(ChainReport, WhatCardsAndRoutersLostIsNamed) {
  ChainRun run = good_run();
  run.processes[0].report["functions"] = parsed(R"([{"chunks": 83, "counters": {"chunks_dropped": 2}}])");
  run.processes[1].report = parsed(R"({"run": {"condition": "INCOMPLETE"}, "chunks": {"not_taken": 3}})");
  const Json report = chain_report(run);
  EXPECT_EQ(count(report, "chunks", "sent"), 85U);
  EXPECT_EQ(count(member(report, "chunks"), "lost", "card_dropped"), 2U);
  EXPECT_EQ(count(member(report, "chunks"), "lost", "router_not_taken"), 3U);
  EXPECT_EQ(condition(report), "INCOMPLETE");
}

TEST(ChainReport, WhatNoReadoutSaidToHaveIsUndeliveredAndNoMoreThanIsMissing) {
  ChainRun run = good_run();
  run.processes[1].report = parsed(R"({"run": {"condition": "INCOMPLETE"}, "chunks": {"pending": 5}})");
  run.processes[3].report = readout(37);
  const Json report = chain_report(run);
  EXPECT_EQ(count(member(report, "chunks"), "lost", "router_undelivered"), 3U);
  EXPECT_EQ(condition(report), "INCOMPLETE");
}

TEST(ChainReport, WhatIsLeftHasTheTermsOfTheControlRoomsBooks) {
  const auto lost = [](std::string_view router, std::string_view input, std::uint64_t built) {
    ChainRun run = good_run();
    run.processes[0].report["functions"] = parsed(R"([{"chunks": 80, "triggers": 10, "counters": {}}])");
    run.processes[1].report = parsed(router);
    run.processes[3].report = readout(built);
    run.processes[3].report["input"] = parsed(input);
    const Json report = chain_report(run);
    return std::pair(member(member(report, "chunks"), "lost").dump(0), condition(report));
  };
  using Lost = std::pair<std::string, std::string>;
  EXPECT_EQ(lost(R"({"links_unread": 2})", "{}", 20), (Lost{R"({"router_left_out":20})", "INCOMPLETE"}));
  EXPECT_EQ(lost(R"({"links_unread": 2})", "{}", 15).second, "WRONG") << "two links had at most 20 chunks";
  EXPECT_EQ(lost(R"({"links_unread": 1, "chunks": {"pending": 4}})", "{}", 26),
            (Lost{R"({"router_undelivered":4,"router_left_out":10})", "INCOMPLETE"}));
  EXPECT_EQ(lost("{}", R"({"sequence_gaps": 1})", 38), (Lost{R"({"damaged":2})", "INCOMPLETE"}));
  EXPECT_EQ(lost("{}", R"({"sequence_gaps": 0})", 38).second, "WRONG");
}

TEST(ChainReport, DamageExplainsWhatItsPlacesCanHoldAndNoMore) {  // the same cases as in tests/control/test_books.py
  const auto verdict = [](std::string_view input, std::uint64_t missing) {
    ChainRun run = good_run();
    run.processes[0].report["functions"] = parsed(R"([{"chunks": 100080, "triggers": 25020, "counters": {}}])");
    run.processes[2].report = readout(40 + 100'000 - missing);
    run.processes[3].report["input"] = parsed(input);
    const Json report = chain_report(run);
    return std::pair(count(member(report, "chunks"), "lost", "damaged"), condition(report));
  };
  using Verdict = std::pair<std::uint64_t, std::string>;
  EXPECT_EQ(verdict(R"({"sequence_gaps": 1})", 5), (Verdict{5, "INCOMPLETE"}));
  EXPECT_EQ(verdict(R"({"sequence_gaps": 1})", 10'000), (Verdict{8192, "WRONG"}));
  EXPECT_EQ(verdict(R"({"sequence_gaps": 1, "lost_blocks": 1})", 10'000), (Verdict{10'000, "INCOMPLETE"}));
  EXPECT_EQ(verdict(R"({"oversize": 1})", 1), (Verdict{1, "INCOMPLETE"}));
  EXPECT_EQ(verdict(R"({"oversize": 1})", 100'000), (Verdict{1, "WRONG"}));
  EXPECT_EQ(verdict(R"({"skipped_bytes": 64})", 100), (Verdict{64, "WRONG"}));
}

TEST(ChainReport, WhatEachReadoutWasToldOfARouterCountsOnce) {
  ChainRun run = good_run();
  for (const std::size_t readout : {2U, 3U})
    run.processes[readout].report["input"] = parsed(R"({"upstream_felix_sequence_gaps": 3, "network_lost_pages": 2})");
  const Json report = chain_report(run);
  EXPECT_EQ(count(report, "input", "upstream_felix_sequence_gaps"), 3U);
  EXPECT_EQ(count(report, "input", "network_lost_pages"), 4U);
}

TEST(ChainReport, ARunThatWasCutShortIsNotWrongForItsSums) {
  ChainRun run = good_run();
  run.processes[3].report = readout(37);
  run.failure = "recorder ended before the run";
  EXPECT_EQ(condition(chain_report(run)), "ABORTED");
}

TEST(ChainReport, WithoutTheCardsReportTheSumIsHeldAgainstWhatRoutersTook) {
  ChainRun run = good_run();
  run.processes[0].report = Json();
  EXPECT_EQ(condition(chain_report(run)), "INCOMPLETE");
  EXPECT_EQ(count(chain_report(run), "chunks", "sent"), 80U);
  EXPECT_TRUE(chain_sum_holds(chain_report(run), 4));
  run.processes[3].report = readout(39);
  EXPECT_EQ(condition(chain_report(run)), "WRONG");
  run.processes[3].report = readout(41);
  EXPECT_EQ(condition(chain_report(run)), "WRONG");
  run.failure = "card ended before the run";
  EXPECT_EQ(condition(chain_report(run)), "ABORTED");
}

TEST(ChainReport, WithoutCardsAndRoutersTheSumIsHeldAgainstWhatReadoutsReceived) {
  ChainRun run = good_run();
  run.processes[0].report = run.processes[1].report = Json();
  run.processes[3].report["input"] = parsed(R"({"network_lost": 4})");
  Json report = chain_report(run);
  EXPECT_EQ(count(report, "chunks", "sent"), 84U);
  EXPECT_EQ(count(member(report, "chunks"), "lost", "network_lost"), 4U);
  EXPECT_EQ(condition(report), "INCOMPLETE");
  run.processes[3].report["chunks"] = parsed(R"({"sent": 40, "built": 38, "lost": {"late": 1}})");
  EXPECT_EQ(condition(chain_report(run)), "WRONG");
}

TEST(ChainReport, OnlyARouterOrReadoutWithoutAReportTakesChunksWithIt) {
  ChainRun run = good_run();
  run.processes[3].report = readout(39);
  run.processes[5].report = Json();  // a node has no chunks
  EXPECT_EQ(condition(chain_report(run)), "WRONG");
  run.processes[1].report = Json();
  const Json report = chain_report(run);
  EXPECT_EQ(count(member(report, "chunks"), "lost", "not_reported"), 1U);
  EXPECT_EQ(condition(report), "INCOMPLETE");
}

TEST(ChainReport, WithoutTheCardsReportTriggersAreThoseThatCameToTheSupervisor) {
  ChainRun run = good_run();
  run.processes[0].report = Json();
  run.decided->rejected = 5;
  EXPECT_EQ(count(chain_report(run), "farm", "undecided"), 1U);
  run.decided->rejected = 7;
  EXPECT_EQ(condition(chain_report(run)), "WRONG");
}

TEST(ChainReport, TriggersThatNoProcessCountedAreNotKnown) {
  ChainRun run = good_run();
  run.processes[0].report = Json();
  const auto in_two_lives = [&](bool reported) {
    ChainRun two = run;
    two.processes.push_back({"supervisor#2", "supervisor", reported ? two.processes[4].report : Json()});
    return two;
  };
  for (ChainRun two : {in_two_lives(true), in_two_lives(false)}) {
    two.decided->rejected = 5;  // one event too few
    const Json report = chain_report(two);
    for (const char* const key : {"triggers", "undecided", "adds_up"})
      EXPECT_TRUE(member(member(report, "farm"), key).is_null()) << key;
    EXPECT_EQ(condition(report), "INCOMPLETE");
    EXPECT_NE(chain_report_text(report).find("cannot be checked"), std::string::npos);
    EXPECT_NE(chain_sum_text(report, 4).find("cannot be checked"), std::string::npos);
    EXPECT_TRUE(chain_sum_holds(report, 4));
    EXPECT_FALSE(chain_sum_holds(report, 3)) << "an accepted event is in no file";
  }
}

TEST(ChainParts, ReadoutsShareTheLinksAlsoOfOneFibre) {
  const test::TemporaryDirectory cache;
  ::setenv("XDG_CACHE_HOME", cache.path().c_str(), 1);
  DemoOptions options;
  options.chain = true;
  const DemoDirectory directory(false);
  const auto links_of = [&](std::uint64_t links) {
    std::vector<std::string> found;
    for (const ChainPart& part : chain_parts(options, DemoCard(links), directory)) {
      for (const std::string& one : part.overrides) {
        if (one.starts_with("readout.input.links=")) found.push_back(one.substr(one.find('=') + 1));
      }
    }
    return found;
  };
  EXPECT_EQ(links_of(1), std::vector<std::string>{"0x1000000000000000+1"});
  EXPECT_EQ(links_of(5), (std::vector<std::string>{"0x1000000000000000+2", "0x1000000000020000+3"}));
  EXPECT_EQ(links_of(18), (std::vector<std::string>{"0x1000000000000000+8,0x1000000000400000+1",
                                                    "0x1000000000410000+7,0x1000000000800000+2"}));
  ::unsetenv("XDG_CACHE_HOME");
}

}  // namespace
}  // namespace rodeo::cli
