// The arithmetic of the end-of-run report, and the stage that it names as the cause of back-pressure.
#include "readout/run_report.h"

#include <gtest/gtest.h>

#include "readout/back_pressure.h"

namespace rodeo::readout {
namespace {

ReadoutStatus status_of(std::uint64_t sent, std::uint64_t built, std::vector<NamedCounter> lost) {
  ReadoutStatus status;
  status.seconds = 2;
  status.input = {{"sent", sent}, {"triggers", 100}, {"vetoed", 25}, {"bytes", 4000}};
  status.robs.resize(1);
  status.robs[0].builder.chunks_built = built;
  status.robs[0].builder.lost = std::move(lost);
  return status;
}

TEST(RunReport, ARunWithoutLossIsGood) {
  const RunReport report = make_report({}, status_of(100, 100, {{"late", 0}}), "nothing", false);
  EXPECT_EQ(report.condition, Condition::good);
  EXPECT_TRUE(report.adds_up());
  EXPECT_TRUE(report.chunks_lost.empty());
}

TEST(RunReport, RatesAndDeadTimeComeFromAcceptedAndVetoedTriggers) {
  const RunReport report = make_report({}, status_of(100, 100, {}), "nothing", false);
  EXPECT_DOUBLE_EQ(report.trigger_rate_hz, 50);
  EXPECT_DOUBLE_EQ(report.offered_rate_hz.value(), 62.5);
  EXPECT_DOUBLE_EQ(report.dead_time_fraction.value(), 0.2);
}

TEST(RunReport, WhereNobodyCountsVetoesDeadTimeIsNotKnown) {
  ReadoutStatus status = status_of(100, 100, {});
  std::erase_if(status.input, [](const NamedCounter& counter) { return counter.name == "vetoed"; });
  const RunReport report = make_report({}, status, "nothing", false);
  EXPECT_DOUBLE_EQ(report.trigger_rate_hz, 50);
  EXPECT_FALSE(report.offered_rate_hz);
  EXPECT_FALSE(report.dead_time_fraction);
}

TEST(RunReport, ARunWithoutDataIsNotGoodOnceItIsOver) {
  ReadoutStatus status;
  status.input = {{"sent", 0}};
  EXPECT_EQ(make_report({}, status, "nothing", false).condition, Condition::good) << "they may still come";
  status.phase = Phase::stopped;
  const RunReport report = make_report({}, status, "nothing", false);
  EXPECT_EQ(report.condition, Condition::incomplete);
  EXPECT_EQ(report.limited_by, "input");
  EXPECT_FALSE(report.lost_too_much()) << "without a limit";
  ReadoutSettings limited;
  limited.fail_on_loss = 0.5;
  EXPECT_TRUE(make_report(limited, status, "nothing", false).lost_too_much());
}

TEST(RunReport, AnInputThatTakesNoTimeOfThisProcessIsNotShownToHaveTakenNone) {
  ReadoutStatus status = status_of(1, 1, {});
  EXPECT_EQ(make_report({}, status, "nothing", false).cpu_seconds.front().first, "readout");
  status.input_cpu_seconds = 0.5;
  ReadoutSettings settings;
  settings.input.type = "generator";
  EXPECT_EQ(make_report(settings, status, "nothing", false).cpu_seconds.front().first, "emulator");
}

TEST(RunReport, TheInputOfAPluginIsNoEmulator) {
  ReadoutStatus status = status_of(1, 1, {});
  status.input_cpu_seconds = 0.5;
  ReadoutSettings settings;
  settings.input.type = "udp";
  EXPECT_EQ(make_report(settings, status, "nothing", false).cpu_seconds.front().first, "input");
}

TEST(RunReport, ARateWithoutVetoesLeavesOutTheTimeWithoutData) {
  ReadoutStatus status = status_of(100, 100, {});
  status.data_seconds = 0.5;
  EXPECT_DOUBLE_EQ(make_report({}, status, "nothing", false).trigger_rate_hz, 50) << "dead time is in this rate";
  std::erase_if(status.input, [](const NamedCounter& counter) { return counter.name == "vetoed"; });
  EXPECT_DOUBLE_EQ(make_report({}, status, "nothing", false).trigger_rate_hz, 200);
}

TEST(RunReport, EventsThatWereOpenWhenACommandEndedTheRunAreNoLoss) {
  ReadoutStatus status = status_of(100, 100, {});
  status.phase = Phase::stopped;
  status.data_seconds = 0.5;
  status.robs[0].builder.fragments = 50;
  status.robs[0].builder.incomplete = 8;
  status.robs[0].builder.incomplete_by_reason = {{"run_ended", 8}};
  EXPECT_EQ(make_report({}, status, "nothing", false).condition, Condition::incomplete) << "the input ended";
  status.stopped = true;
  const RunReport report = make_report({}, status, "nothing", false);
  EXPECT_EQ(report.condition, Condition::good);
  EXPECT_EQ(report.incomplete, 8U);
  EXPECT_EQ(report.open_at_stop, 8U);
  status.robs[0].builder.incomplete = 9;
  status.robs[0].builder.incomplete_by_reason = {{"run_ended", 8}, {"timeout", 1}};
  EXPECT_EQ(make_report({}, status, "nothing", false).losses().front().lost, 1U);
  status.robs[0].builder.incomplete_by_reason = {{"run_ended", 11}};
  EXPECT_EQ(make_report({}, status, "nothing", false).open_at_stop, 0U) << "a tenth of a second has 10 fragments";
}

TEST(RunReport, ALostChunkMakesTheRunIncomplete) {
  const RunReport report = make_report({}, status_of(100, 97, {{"late", 2}, {"corrupt", 1}}), "nothing", false);
  EXPECT_EQ(report.condition, Condition::incomplete);
  EXPECT_EQ(report.lost(), 3U);
  EXPECT_TRUE(report.adds_up());
}

TEST(RunReport, RobsThatHaveFewerEventsThanOthersHaveLostThem) {
  const auto skipped = [](std::uint64_t first, std::uint64_t events, std::uint64_t other_first, std::uint64_t other_events,
                          std::uint32_t channels = 1) {
    ReadoutStatus status = status_of(100, 100, {});
    status.phase = Phase::stopped;
    status.robs.resize(2);
    for (RobStatus& rob : status.robs) {
      rob.builder.links.resize(1);
      rob.groups = channels;
    }
    status.robs[0].builder.first_event = first;
    status.robs[0].builder.events = events;
    status.robs[1].builder.first_event = other_first;
    status.robs[1].builder.events = other_events;
    const RunReport report = make_report({}, status, "nothing", false);
    EXPECT_EQ(report.condition, report.skipped == 0 ? Condition::good : Condition::incomplete);
    EXPECT_EQ(report.losses().empty() ? "events in no fragment" : report.losses().front().what, "events in no fragment");
    return std::pair(report.skipped, report.events);
  };
  constexpr std::uint64_t kUnknown = ~std::uint64_t{0};
  EXPECT_EQ(skipped(0, 1000, 0, 1000), std::pair(0UL, 2000UL));
  EXPECT_EQ(skipped(0, 1000, 0, 990), std::pair(10UL, 2000UL));
  EXPECT_EQ(skipped(0, 1000, kUnknown, 0), std::pair(1000UL, 2000UL)) << "the other ROB never had an event";
  EXPECT_EQ(skipped(0, 990, 10, 990), std::pair(20UL, 2000UL)) << "one ROB lacks the first events, the other the last";
  EXPECT_EQ(skipped(10, 990, 0, 1000), std::pair(10UL, 2000UL));
  EXPECT_EQ(skipped(0, 1000, 0, 990, 3), std::pair(30UL, 6000UL)) << "in each of its channels";
  EXPECT_EQ(skipped(kUnknown, 1000, kUnknown, 990), std::pair(10UL, 2000UL)) << "a builder that does not report its events";
  EXPECT_EQ(skipped(5, 1000, L1Id::of(1, 0).value, 900), std::pair(100UL, 2000UL));
}

TEST(RunReport, ADamagedRecordingIsNoGoodRun) {
  ReadoutStatus status = status_of(100, 100, {});
  status.input.push_back({"damaged", 2});
  EXPECT_EQ(make_report({}, status, "nothing", false).condition, Condition::incomplete);
}

TEST(RunReport, ARunWhoseConsumersLostOrCouldNotDoTheirWorkIsNotGood) {
  for (const auto& [counter, condition] : std::initializer_list<std::pair<const char*, Condition>>{
           {"exceptions", Condition::incomplete},
           {"work_threw", Condition::incomplete},
           {"unwritten_queue_full", Condition::incomplete},
           {"unwritten_disk_full", Condition::incomplete},
           {"unwritten_directory_gone", Condition::incomplete},
           {"unwritten_beyond_fraction", Condition::good},  // as configured
           {"undelivered", Condition::incomplete},
           {"not_taken", Condition::incomplete},
           {"no_subscriber", Condition::good},
           {"monitor_chunks_dropped", Condition::good},
           {"unpublished_beyond_rate", Condition::good},
           {"unpublished_queue_full", Condition::good},
           {"waited_for_copy", Condition::good}}) {
    ReadoutStatus status = status_of(100, 100, {});
    status.consumers.resize(1);
    status.consumers[0].counters = {{counter, 1}};
    EXPECT_EQ(make_report({}, status, "nothing", false).condition, condition) << counter;
  }
}

TEST(RunReport, OfAnAbortedRunEveryFragmentIsWrittenOrCounted) {
  ReadoutStatus status = status_of(100, 100, {});
  status.robs[0].builder.fragments = 1000;
  status.consumers.resize(4);
  status.consumers[3].name = "publish";
  status.consumers[3].consumed = 500;
  status.consumers[3].counters = {{"exceptions", 0}, {"unpublished_beyond_fraction", 450}};
  status.consumers[0].name = "processor";
  status.consumers[0].consumed = 900;
  status.consumers[0].counters = {{"exceptions", 0}};
  status.consumers[1].name = "event_sampler";
  status.consumers[1].consumed = 3;  // the sampler gets copies of a few fragments
  status.consumers[2].name = "file_writer";
  status.consumers[2].consumed = 800;
  status.consumers[2].counters = {
      {"exceptions", 0}, {"events_written", 790}, {"unwritten_beyond_fraction", 50}, {"unwritten_disk_full", 10}};
  status.consumers[2].files = {{.path = "a.data", .events = 600}};  // closed
  const RunReport report = make_report({}, status, "nothing", true);
  const auto count = [&](std::size_t consumer, std::string_view name) {
    return counter_value(report.consumers[consumer].counters, name);
  };
  EXPECT_EQ(count(0, "unprocessed_aborted"), 100U);
  EXPECT_EQ(count(1, "unprocessed_aborted"), 0U);
  EXPECT_EQ(count(2, "events_written"), 600U);
  EXPECT_EQ(count(2, "unwritten_aborted"), 340U);
  EXPECT_EQ(count(3, "unprocessed_aborted"), 50U);
  std::vector<std::string> losses;
  for (const Loss& loss : report.losses())
    losses.push_back(loss.what + " " + std::to_string(loss.lost) + " of " + std::to_string(loss.of));
  EXPECT_EQ(losses, (std::vector<std::string>{"unprocessed_aborted (processor) 100 of 1000",
                                              "events not written by file_writer 350 of 950",
                                              "unprocessed_aborted (publish) 50 of 550"}));
  const RunReport drained = make_report({}, status, "nothing", false);
  EXPECT_EQ(counter_value(drained.consumers[2].counters, "events_written"), 790U);
  EXPECT_EQ(find_counter(drained.consumers[2].counters, "unwritten_aborted"), nullptr);
}

TEST(RunReport, AMismatchMakesTheRunWrongHoweverWholeItIs) {
  ReadoutStatus status = status_of(100, 100, {});
  status.consumers.resize(1);
  status.consumers[0].counters = {{"verified_chunks", 99}, {"mismatches", 1}};
  const RunReport report = make_report({}, status, "nothing", false);
  EXPECT_EQ(report.condition, Condition::wrong);
  EXPECT_STREQ(name_of(report.condition), "WRONG");
  EXPECT_EQ(make_report({}, status, "nothing", true).condition, Condition::aborted);
}

TEST(RunReport, AFailureIsOneLineWithoutTheCodeOfAnError) {
  ReadoutStatus status = status_of(100, 100, {});
  status.failure = "file_writer: error[readout.disk_full]: /data: no space\n  free space there\n";
  EXPECT_EQ(make_report({}, status, "nothing", false).failure, "file_writer: /data: no space; free space there");
}

TEST(RunReport, AChunkThatNobodyCountsIsNoticed) {
  ReadoutStatus status = status_of(100, 99, {});
  EXPECT_FALSE(make_report({}, status, "nothing", false).adds_up());
  EXPECT_EQ(make_report({}, status, "nothing", false).condition, Condition::good) << "the chunk may be under way";
  status.phase = Phase::stopped;
  EXPECT_EQ(make_report({}, status, "nothing", false).condition, Condition::wrong);
}

TEST(RunReport, AnInputThatWasCutOffIsNoGoodRun) {
  for (const char* counter :
       {"chunks_cut_off", "triggers_cut_off", "triggers_missed", "cards_cut_off", "card_lost_packets", "card_links_down",
        "sequence_gaps", "lost_blocks", "bad_marker", "page_gaps", "packet_gaps", "lost_pages", "bad_rdh", "oversize"}) {
    ReadoutStatus status = status_of(100, 100, {});
    status.input.push_back({counter, 1});
    EXPECT_EQ(make_report({}, status, "nothing", false).condition, Condition::incomplete) << counter;
  }
}

TEST(RunReport, BytesThatTheInputCutOffAreInAndLost) {
  ReadoutStatus status = status_of(100, 100, {});
  status.robs[0].chunk_bytes = ChunkBytes{.received = 900, .built = 880, .lost = {{"cut", 20}}};
  status.input = {{"sent", 100}, {"sent_bytes", 900}, {"cut_bytes", 70}, {"network_cut_bytes", 30}};
  status.phase = Phase::stopped;
  RunReport report = make_report({}, status, "nothing", false);
  EXPECT_EQ(report.bytes_in, 1000U);
  EXPECT_EQ(counter_value(report.bytes_lost, "cut"), 120U);
  EXPECT_TRUE(report.adds_up());
  status.input = {{"sent", 100}, {"cut_bytes", 70}};
  report = make_report({}, status, "nothing", false);
  EXPECT_EQ(report.bytes_in, 970U) << "an input that counts no bytes sent those that the builders received";
  EXPECT_TRUE(report.adds_up());
}

TEST(RunReport, OfferedAndAcceptedAreOfTheTimeInWhichTriggersWereOffered) {
  ReadoutStatus status = status_of(100, 100, {});
  status.trigger_seconds = 2.5;
  const RunReport report = make_report({}, status, "nothing", false);
  EXPECT_DOUBLE_EQ(report.offered_rate_hz.value(), 50);
  EXPECT_DOUBLE_EQ(report.trigger_rate_hz, 40);
}

TEST(RunReport, DeadTimeWithoutBackPressureIsTheInputs) {
  ReadoutStatus status = status_of(100, 100, {});
  EXPECT_EQ(make_report({}, status, "nothing", false).limited_by, "input");
  EXPECT_EQ(make_report({}, status, "builder", false).limited_by, "builder");
  status.input = {{"sent", 100}, {"triggers", 100}, {"vetoed", 1}};
  EXPECT_EQ(make_report({}, status, "nothing", false).limited_by, "nothing") << "less than a hundredth";
}

TEST(RunReport, LossesOfSeveralRobsAreAddedByReason) {
  ReadoutStatus status = status_of(10, 4, {{"late", 1}});
  status.robs.push_back(status.robs[0]);
  const RunReport report = make_report({}, status, "nothing", false);
  ASSERT_EQ(report.chunks_lost.size(), 1U);
  EXPECT_EQ(report.chunks_lost[0].value, 2U);
  EXPECT_TRUE(report.adds_up());
}

TEST(RunReport, ATriggerThatWasNeverVetoedWasNotHeldBack) {
  ReadoutSettings paced;
  paced.input.parameters.set("rate", 100e3);
  ReadoutStatus status = status_of(1, 1, {});
  EXPECT_EQ(make_report(paced, status, "processor", false).limited_by, "processor");
  status.input = {{"sent", 1}, {"triggers", 1}, {"vetoed", 0}};
  EXPECT_EQ(make_report(paced, status, "processor", false).limited_by, "nothing");
  EXPECT_EQ(make_report({}, status, "processor", false).limited_by, "processor");
}

TEST(RunReport, AConsumerThatSkipsLimitsThoughNoTriggerWaits) {
  ReadoutSettings paced;
  paced.input.parameters.set("rate", 100e3);
  ReadoutStatus status = status_of(1, 1, {});
  status.input = {{"sent", 1}, {"triggers", 1}, {"vetoed", 0}};
  status.consumers.resize(1);
  status.consumers[0].name = "disk";
  const ReadoutStatus before = status;
  status.consumers[0].counters = {{"unwritten_queue_full", 5}};
  EXPECT_EQ(first_cause(before, status), "disk");
  EXPECT_EQ(make_report(paced, status, "disk", false).limited_by, "disk");
}

TEST(RunReport, AFailureAborts) {
  ReadoutStatus status = status_of(1, 1, {});
  status.failure = "file writer: no space left on device";
  EXPECT_EQ(make_report({}, status, "nothing", false).condition, Condition::aborted);
}

TEST(RunReport, WhatNobodyClearedIsLost) {
  ReadoutStatus status = status_of(1, 1, {});
  status.consumers.resize(1);
  status.consumers[0].name = "hlt";
  status.consumers[0].consumed = 10;
  status.consumers[0].counters = {{"uncleared", 4}, {"garbage", 0}, {"cleared", 6}};
  const RunReport report = make_report({}, status, "nothing", false);
  EXPECT_EQ(report.condition, Condition::incomplete);
  ASSERT_EQ(report.losses().size(), 1u);
  EXPECT_EQ(report.losses()[0].what, "uncleared (hlt)");
  EXPECT_EQ(report.losses()[0].fraction(), 0.4);
}

TEST(RunReport, FragmentsWithoutRemovedLinksAreNotAllThatThereShouldBe) {
  ReadoutStatus status = status_of(1, 1, {});
  EXPECT_EQ(make_report({}, status, "nothing", false).condition, Condition::good);
  status.robs[0].builder.without_removed = 5;
  status.robs[0].builder.links.assign(3, {});
  status.robs[0].builder.links[0].left_out = 3;
  status.robs[0].builder.links[1].missing = 1;
  status.robs[0].builder.links[2].left_out = 5;
  const RunReport report = make_report({}, status, "nothing", false);
  EXPECT_EQ(report.condition, Condition::incomplete);
  EXPECT_EQ(report.without_removed, 5U);
  ASSERT_EQ(report.left_out.size(), 2U);
  EXPECT_EQ(report.left_out[0].left_out, 5U) << "the largest first";
  EXPECT_EQ(report.missing.size(), 1U);
}

TEST(RunReport, VerifiedChunksAndBytesAreTakenFromConsumers) {
  ReadoutStatus status = status_of(1, 1, {});
  status.consumers.resize(2);
  status.consumers[0].counters = {{"verified_chunks", 7}, {"mismatches", 1}};
  status.consumers[1].counters = {{"bytes_written", 99}};
  status.consumers[1].files = {{.path = "a.data"}};
  const RunReport report = make_report({}, status, "nothing", false);
  EXPECT_EQ(report.verified_chunks, 7U);
  EXPECT_EQ(report.mismatches, 1U);
  EXPECT_EQ(report.bytes_written, 99U);
  EXPECT_EQ(report.files.size(), 1U);
}

ReadoutStatus chain(std::uint64_t vetoed, std::uint64_t processor_stalls, std::uint64_t writer_stalls,
                    double writer_fill = 0) {
  ReadoutStatus status;
  status.input = {{"vetoed", vetoed}};
  status.consumers.resize(2);
  status.consumers[0].name = "processor";
  status.consumers[0].stalls = processor_stalls;
  status.consumers[1].name = "file_writer";
  status.consumers[1].stalls = writer_stalls;
  status.consumers[1].queue_fill = writer_fill;
  return status;
}

TEST(BackPressure, TheLastFullStageIsTheFirstCause) {
  EXPECT_EQ(first_cause(chain(0, 0, 0), chain(5, 3, 1)), "file_writer");
  EXPECT_EQ(first_cause(chain(0, 0, 1), chain(5, 3, 1)), "processor");
  EXPECT_EQ(first_cause(chain(0, 3, 1), chain(5, 3, 1)), "builder");
  EXPECT_EQ(first_cause(chain(5, 3, 1), chain(5, 3, 1)), "nothing");
  EXPECT_EQ(first_cause(chain(5, 3, 1), chain(5, 3, 1, 1.0)), "file_writer");
}

TEST(BackPressure, BuffersThatAConsumerKeepsAreItsOwnDoing) {
  ReadoutStatus status = chain(0, 0, 0);
  status.robs.emplace_back().builder.pool_fill = 1;
  EXPECT_EQ(first_cause(status, status), "builder");
  status.consumers[0].counters = {{"kept", 49}, {"kept_limit", 100}};
  EXPECT_EQ(first_cause(status, status), "builder") << "it keeps less than half of its limit";
  status.consumers[0].counters = {{"kept", 50}, {"kept_limit", 100}};
  EXPECT_EQ(first_cause(status, status), status.consumers[0].name);
}

TEST(BackPressure, ARunIsLimitedByItsMostFrequentCause) {
  BackPressureHistory history;
  EXPECT_EQ(history.worst(), "nothing");
  history.add("nothing");
  history.add("builder");
  history.add("file_writer");
  history.add("file_writer");
  EXPECT_EQ(history.worst(), "file_writer");
}

}  // namespace
}  // namespace rodeo::readout
