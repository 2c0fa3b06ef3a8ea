// The report of a run: its sums, its condition, and what limited it.
#include "router/router_report.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "router/some_status.h"
#include "router/watched_parts.h"

namespace rodeo::router {
namespace {

RouterReport report_of(const RouterStatus& status) { return make_report({}, status, false); }

std::uint64_t& counter(RouterStatus& status, std::size_t reader, std::string_view name) {
  return base::counter_named(status.readers[reader].counters, name);
}

TEST(RouterReport, ChunksOfLinksAddUpAndTheListIsApart) {
  const RouterReport report = report_of(some_status());
  EXPECT_EQ(report.sent, 1000U);
  EXPECT_EQ(report.published, 990U);
  EXPECT_EQ(report.no_subscriber, 10U);
  EXPECT_TRUE(report.adds_up());
  EXPECT_EQ(report.links, 100U);
  EXPECT_EQ(report.bytes_in, 40000U);
  EXPECT_EQ(report.bytes_sent, 42000U);
  EXPECT_DOUBLE_EQ(report.router_cpu_seconds, 3.25);
}

TEST(RouterReport, BytesThatTheInputCutOffAreInAndCut) {
  RouterStatus status = some_status();
  status.input.push_back({"cut_bytes", 500});
  const RouterReport report = report_of(status);
  EXPECT_EQ(report.bytes_in, 40500U);
  EXPECT_EQ(report.bytes_cut, 500U);
  EXPECT_TRUE(report.adds_up());
}

TEST(RouterReport, WhatNobodyWantedAndWhatAMonitorLostIsNoLoss) {
  EXPECT_EQ(report_of(some_status()).condition, Condition::good);
}

TEST(RouterReport, ChunksInNoCounterAreWrongOnceTheRunIsOver) {
  RouterStatus status = some_status();
  counter(status, 1, "chunks_wanted") -= 1;
  EXPECT_EQ(report_of(status).condition, Condition::wrong);
  status.phase = Phase::draining;
  EXPECT_EQ(report_of(status).condition, Condition::good) << "the chunk may be in flight";
}

TEST(RouterReport, WhatASubscriberDidNotTakeIsIncomplete) {
  RouterStatus status = some_status();
  counter(status, 1, "chunks_wanted") -= 5;
  counter(status, 1, "not_taken") += 5;
  EXPECT_EQ(report_of(status).condition, Condition::incomplete);
  EXPECT_TRUE(report_of(status).adds_up());
}

TEST(RouterReport, PagesThatASubscriberOfDataLeftAreIncompleteThoseOfAMonitorAreNot) {
  RouterStatus status = some_status();
  status.readers[0].subscribers[1].pending_chunks = 9;
  EXPECT_EQ(report_of(status).condition, Condition::good);
  status.readers[0].subscribers[0].pending_chunks = 9;
  EXPECT_EQ(report_of(status).condition, Condition::incomplete);
  EXPECT_EQ(report_of(status).pending, 9U);
  status.phase = Phase::running;
  EXPECT_EQ(report_of(status).condition, Condition::good) << "the chunks are in flight";
}

TEST(RouterReport, PacketsOfTheListThatWereNotTakenAreIncompleteAndInNoSumOfChunks) {
  RouterStatus status = some_status();
  const auto list = std::ranges::find_if(status.readers, &ReaderStatus::trigger_list);
  ASSERT_NE(list, status.readers.end());
  const auto number = static_cast<std::size_t>(list - status.readers.begin());
  list->subscribers = {status.readers[0].subscribers[0]};
  list->subscribers[0].pending_chunks = 4;
  EXPECT_EQ(report_of(status).condition, Condition::incomplete);
  EXPECT_EQ(report_of(status).list_not_delivered, 4U);
  EXPECT_EQ(report_of(status).pending, 0U);
  counter(status, number, "undelivered") += 2;
  counter(status, number, "not_taken") += 1;
  EXPECT_EQ(report_of(status).list_not_delivered, 7U);
  EXPECT_EQ(report_of(status).pending, 0U);
  EXPECT_TRUE(report_of(status).adds_up());
}

TEST(RouterReport, LossesOfTheInputAreIncompleteByName) {
  RouterStatus status = some_status();
  status.input.push_back({"card_lost_packets", 2});
  EXPECT_EQ(report_of(status).condition, Condition::incomplete);
  ASSERT_EQ(report_of(status).input_losses().size(), 1U);
  EXPECT_EQ(report_of(status).input_losses()[0].name, "card_lost_packets");
}

TEST(RouterReport, AnInputThatBroughtNothingIsIncomplete) {
  EXPECT_EQ(report_of({.phase = Phase::stopped}).condition, Condition::incomplete);
  EXPECT_EQ(report_of({.phase = Phase::running}).condition, Condition::good);
}

TEST(RouterReport, AFailureOrAnImpatientUserAborts) {
  EXPECT_EQ(make_report({}, some_status(), true).condition, Condition::aborted);
  RouterStatus status = some_status();
  status.failure = "The card is gone.";
  EXPECT_EQ(report_of(status).condition, Condition::aborted);
}

TEST(RouterReport, AnInputThatCountsNothingIsBelievedToHaveSentWhatCame) {
  RouterStatus status = some_status();
  status.input.clear();
  EXPECT_EQ(report_of(status).sent, 1000U);
}

transport::Publisher::Subscriber slow(std::uint64_t waits) {
  transport::Publisher::Subscriber out;
  out.name = "slow";
  out.waits = waits;
  return out;
}

TEST(RouterReport, IsLimitedByTheSubscriberThatWasWaitedForMostOften) {
  RouterStatus status = some_status();
  EXPECT_EQ(limited_by(status), "readout");
  status.readers[1].subscribers = {slow(3)};
  EXPECT_EQ(limited_by(status), "readout");
  status.readers[2].subscribers = {slow(2)};
  EXPECT_EQ(limited_by(status), "slow") << "all its subscriptions count together";
  for (ReaderStatus& reader : status.readers) reader.subscribers.clear();
  EXPECT_EQ(limited_by(status), "nothing");
}

TEST(RouterReport, WatchesWhatSubscribersHaveNotTaken) {
  RouterStatus status = some_status();
  EXPECT_TRUE(watched_parts(status).empty());
  status.readers[0].subscribers[0].pending_chunks = 90;
  status.readers[0].subscribers[1].pending_chunks = 5;  // a monitor
  const auto parts = watched_parts(status);
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].name, "pages of felix.0 for readout");
  EXPECT_EQ(parts[0].progress, 500U);
  status.waiting = true;
  EXPECT_EQ(watched_parts(status).front().waits_for, "a subscriber of each link");
}

}  // namespace
}  // namespace rodeo::router
