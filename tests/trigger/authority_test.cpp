#include "trigger/authority.h"

#include <gtest/gtest.h>

#include <cmath>

namespace {

using namespace rodeo::trigger;
using namespace std::chrono_literals;

constexpr std::uint64_t kStart = 1'000'000;

std::vector<TriggerRange> take_all(TriggerAuthority& authority, TriggerAuthority::Follower follower, std::uint64_t now) {
  std::vector<TriggerRange> ranges;
  while (const auto count = authority.take(follower, 1000, now, ranges)) authority.done(follower, count);
  return ranges;
}

std::vector<std::uint32_t> ids_of(const std::vector<TriggerRange>& ranges) {
  std::vector<std::uint32_t> ids;
  for (const TriggerRange& range : ranges) {
    for (std::uint32_t i = 0; i < range.count; ++i) ids.push_back(range.l1id_of(i));
  }
  return ids;
}

TEST(TriggerAuthority, PeriodicTriggersComeAtTheirRateWithConsecutiveIds) {
  TriggerAuthority authority({.rate_hz = 1e6, .spacing = TriggerSettings::Spacing::periodic});
  const auto follower = authority.join("card", 100'000);
  authority.set_ready(follower, true, kStart);
  const auto ids = ids_of(take_all(authority, follower, kStart + 10'000'000));
  ASSERT_EQ(ids.size(), 10'000U);
  for (std::uint32_t i = 0; i < ids.size(); ++i) ASSERT_EQ(ids[i], i);
  EXPECT_EQ(authority.report().dead_time_fraction(), 0);
}

TEST(TriggerAuthority, RandomTriggersHaveTheRateAndTheSpreadOfAPoissonProcess) {
  TriggerAuthority authority({.rate_hz = 1e5});
  const auto follower = authority.join("card", 1'000'000);
  authority.set_ready(follower, true, kStart);
  double sum = 0, squares = 0;
  constexpr int kIntervals = 1000;
  for (int i = 1; i <= kIntervals; ++i) {
    const auto count = static_cast<double>(ids_of(take_all(authority, follower, kStart + i * 1'000'000ULL)).size());
    sum += count;
    squares += count * count;
  }
  const double mean = sum / kIntervals;
  EXPECT_NEAR(mean, 100, 2);
  EXPECT_NEAR(squares / kIntervals - mean * mean, 100, 20) << "variance equals mean";
}

TEST(TriggerAuthority, AFullFollowerIsBusyAndItsNameIsKnown) {
  TriggerAuthority authority({.rate_hz = 1e6, .spacing = TriggerSettings::Spacing::periodic, .wait_for = 2});
  const auto quick = authority.join("quick", 100'000);
  const auto slow = authority.join("slow", 10);
  authority.set_ready(quick, true, kStart);
  authority.set_ready(slow, true, kStart);
  std::vector<TriggerRange> ranges;
  EXPECT_EQ(authority.take(quick, 1000, kStart + 1'000'000, ranges), 10U) << "as much as the slow card can hold";
  EXPECT_EQ(authority.take(slow, 1000, kStart + 1'000'000, ranges), 10U);
  auto report = authority.report();
  EXPECT_EQ(report.offered, 1000U);
  EXPECT_EQ(report.vetoed_busy, 990U);
  EXPECT_EQ(report.busy_follower, "slow");
  authority.done(slow, 4);
  ranges.clear();
  EXPECT_EQ(authority.take(quick, 1000, kStart + 2'000'000, ranges), 4U);
  EXPECT_EQ(ids_of(ranges), (std::vector<std::uint32_t>{10, 11, 12, 13})) << "ids are assigned after the busy";
}

TEST(TriggerAuthority, EverybodyWhoIsBusyIsNamedWithItsTriggersAndItsTime) {
  TriggerAuthority authority({.rate_hz = 1e6, .spacing = TriggerSettings::Spacing::periodic, .wait_for = 3});
  authority.set_ready(authority.join("idle", 100'000), true, kStart);
  const auto one = authority.join("one", 100);
  const auto two = authority.join("two", 150);
  EXPECT_EQ(authority.report().awaited, 2U);
  authority.set_ready(one, true, kStart);
  EXPECT_EQ(authority.report().awaited, 1U);
  authority.set_ready(two, true, kStart);
  EXPECT_EQ(authority.report().awaited, 0U);
  const auto of = [&](std::size_t follower) { return authority.report().followers.at(follower); };
  authority.advance(kStart + 1'000'000);  // "one" is full after 100 triggers
  EXPECT_EQ(of(1).held_up, 900U);
  EXPECT_EQ(of(1).held_up_alone, 900U);
  EXPECT_NEAR(of(1).busy_seconds, 900e-6, 2e-6);
  EXPECT_DOUBLE_EQ(of(1).dead_time, 0.9);
  authority.set_busy(two, true);
  authority.advance(kStart + 1'400'000);
  EXPECT_EQ(of(1).held_up, 1300U);
  EXPECT_EQ(of(1).held_up_alone, 900U);
  EXPECT_EQ(of(2).held_up, 400U) << "both had no room";
  EXPECT_EQ(of(2).held_up_alone, 0U);
  std::vector<TriggerRange> ranges;
  EXPECT_EQ(authority.take(one, 1000, kStart + 1'400'000, ranges), 100U);
  authority.done(one, 100);
  authority.advance(kStart + 2'000'000);
  EXPECT_EQ(of(1).held_up, 1300U);
  EXPECT_EQ(of(2).held_up, 1000U);
  EXPECT_EQ(of(2).held_up_alone, 600U);
  EXPECT_NEAR(of(1).busy_seconds, 1300e-6, 2e-6);
  EXPECT_NEAR(of(2).busy_seconds, 1000e-6, 2e-6);
  EXPECT_EQ(of(0).held_up, 0U);
  EXPECT_EQ(of(0).busy_seconds, 0);
  EXPECT_EQ(authority.report().vetoed_busy, 1900U) << "each trigger counts once";
  EXPECT_EQ(authority.report().busy_follower, "one");
}

TEST(TriggerAuthority, SimpleDeadTimeVetoesWhatComesTooSoon) {
  TriggerAuthority authority({.rate_hz = 1e6, .spacing = TriggerSettings::Spacing::periodic, .simple_dead_time = 2500ns});
  const auto follower = authority.join("card", 100'000);
  authority.set_ready(follower, true, kStart);
  EXPECT_EQ(ids_of(take_all(authority, follower, kStart + 3'000'000)).size(), 1000U) << "one of three";
  EXPECT_EQ(authority.report().vetoed_simple, 2000U);
  EXPECT_NEAR(authority.report().dead_time_fraction(), 2.0 / 3, 1e-9);
}

TEST(TriggerAuthority, ALeakyBucketLetsABurstThroughAndThenItsRate) {
  TriggerAuthority authority(
      {.rate_hz = 1e6, .spacing = TriggerSettings::Spacing::periodic, .bucket_triggers = 15, .bucket_period = 10us});
  const auto follower = authority.join("card", 100'000);
  authority.set_ready(follower, true, kStart);
  const std::size_t first = ids_of(take_all(authority, follower, kStart + 16'000)).size();
  EXPECT_EQ(first, 16U) << "15 plus what has leaked";
  const std::size_t later = ids_of(take_all(authority, follower, kStart + 10'016'000)).size();
  EXPECT_NEAR(static_cast<double>(later), 1000, 2);
}

TEST(TriggerAuthority, EventCounterResetsRestartTheIds) {
  TriggerAuthority authority({.ecr_triggers = 3, .limit = 8});
  const auto follower = authority.join("card", 100);
  authority.set_ready(follower, true, kStart);
  const auto ids = ids_of(take_all(authority, follower, kStart));
  EXPECT_EQ(ids, (std::vector<std::uint32_t>{0, 1, 2, 0x01000000, 0x01000001, 0x01000002, 0x02000000, 0x02000001}));
  EXPECT_TRUE(authority.ended());
}

TEST(TriggerAuthority, FollowersGetTheSameTriggers) {
  TriggerAuthority authority({.rate_hz = 1e6, .ecr_period = 300us, .wait_for = 2});
  const auto one = authority.join("one", 5000), two = authority.join("two", 5000);
  authority.set_ready(one, true, kStart);
  std::vector<TriggerRange> early;
  EXPECT_EQ(authority.take(one, 10, kStart + 1'000'000, early), 0U) << "no trigger before all followers are connected";
  authority.set_ready(two, true, kStart);
  std::vector<std::uint32_t> ids_one, ids_two;
  for (std::uint64_t now = kStart; now < kStart + 2'000'000; now += 10'000) {
    std::vector<TriggerRange> ranges;
    authority.done(one, authority.take(one, 7, now, ranges));
    for (const auto id : ids_of(ranges)) ids_one.push_back(id);
    if (now % 50'000 != 0) continue;
    for (const auto id : ids_of(take_all(authority, two, now))) ids_two.push_back(id);
  }
  for (const auto id : ids_of(take_all(authority, one, kStart + 2'000'000))) ids_one.push_back(id);
  for (const auto id : ids_of(take_all(authority, two, kStart + 2'000'000))) ids_two.push_back(id);
  EXPECT_GT(ids_one.size(), 1000U);
  EXPECT_EQ(ids_one, ids_two);
}

TEST(TriggerAuthority, WhoIsNotReadyHoldsNobodyUp) {
  TriggerAuthority authority({.rate_hz = 1e6, .spacing = TriggerSettings::Spacing::periodic});
  const auto one = authority.join("one", 100'000), two = authority.join("two", 5);
  authority.set_ready(one, true, kStart);
  authority.set_ready(two, true, kStart + 1000);
  authority.advance(kStart + 1'000'000);
  EXPECT_GT(authority.report().vetoed_busy, 900U);
  authority.set_ready(two, false, kStart + 1'000'000);
  const auto before = authority.report().accepted;
  authority.advance(kStart + 2'000'000);
  EXPECT_EQ(authority.report().accepted, before + 1000);
}

TEST(TriggerAuthority, WithNobodyReadyNothingIsOffered) {
  TriggerAuthority authority({.rate_hz = 1e5, .spacing = TriggerSettings::Spacing::periodic});
  const auto follower = authority.join("card", 1000);
  authority.set_ready(follower, true, kStart);
  (void)take_all(authority, follower, kStart + 1'000'000);
  const auto offered = authority.report().offered;
  EXPECT_GT(offered, 0U);
  authority.set_ready(follower, false, kStart + 1'000'000);
  std::vector<TriggerRange> ranges;
  EXPECT_EQ(authority.take(follower, 1000, kStart + 500'000'000, ranges), 0U);
  authority.set_ready(follower, true, kStart + 600'000'000);
  EXPECT_EQ(authority.report().offered, offered);
  EXPECT_EQ(authority.report().dead_time_fraction(), 0);
  EXPECT_EQ(ids_of(take_all(authority, follower, kStart + 601'000'000)).size(), 100U);
}

TEST(TriggerAuthority, EndpointsThatAreSwitchedOffOneAfterTheOtherEndWithTheSameTrigger) {
  TriggerAuthority authority({.rate_hz = 1e5, .spacing = TriggerSettings::Spacing::periodic});
  const auto first = authority.join("first", 10'000);
  const auto second = authority.join("second", 10'000);
  authority.set_ready(first, true, kStart);
  authority.set_ready(second, true, kStart);
  auto ids_of_first = ids_of(take_all(authority, first, kStart + 10'000'000));
  EXPECT_TRUE(authority.hold(kStart + 10'000'000));
  EXPECT_TRUE(ids_of(take_all(authority, first, kStart + 11'000'000)).empty());
  authority.set_ready(first, false, kStart + 11'000'000);
  const auto ids_of_second = ids_of(take_all(authority, second, kStart + 60'000'000));
  EXPECT_EQ(ids_of_first, ids_of_second);
  EXPECT_EQ(authority.report().dead_time_fraction(), 0);
  EXPECT_FALSE(ids_of(take_all(authority, second, kStart + 200'000'000)).empty()) << "the pause ends by itself";
  const auto report = authority.report();
  EXPECT_NEAR(static_cast<double>(report.offered) / report.offering_seconds, 1e5, 1e3)
      << "time without offered triggers does not count";
  EXPECT_LT(report.offering_seconds, report.seconds);
}

TEST(TriggerAuthority, WithFewerReadyThanAreWaitedForNothingIsOffered) {
  TriggerAuthority authority({.rate_hz = 1e5, .spacing = TriggerSettings::Spacing::periodic, .wait_for = 2});
  const auto first = authority.join("first", 10'000);
  const auto second = authority.join("second", 10'000);
  authority.set_ready(first, true, kStart);
  EXPECT_TRUE(take_all(authority, first, kStart + 10'000'000).empty());
  authority.set_ready(second, true, kStart + 10'000'000);
  const auto ids_of_first = ids_of(take_all(authority, first, kStart + 20'000'000));
  EXPECT_EQ(ids_of_first.size(), 1000U);
  authority.set_ready(first, false, kStart + 30'000'000);
  EXPECT_EQ(ids_of(take_all(authority, second, kStart + 40'000'000)), ids_of_first) << "exactly the triggers of the first";
  authority.set_ready(second, false, kStart + 40'000'000);
  EXPECT_EQ(authority.report().offered, 1000U);
  for (const auto& follower : authority.report().followers) EXPECT_EQ(follower.missed, 0U) << follower.name;
  // In the next run, too, all followers begin with the same trigger.
  authority.set_ready(second, true, kStart + 900'000'000);
  EXPECT_TRUE(take_all(authority, second, kStart + 950'000'000).empty());
  authority.set_ready(first, true, kStart + 950'000'000);
  const auto again = ids_of(take_all(authority, second, kStart + 960'000'000));
  EXPECT_EQ(again, ids_of(take_all(authority, first, kStart + 960'000'000)));
  EXPECT_EQ(again.size(), 1000U);
  EXPECT_EQ(again.front(), 1000U);
}

constexpr TriggerSettings kHundredKilohertz{.rate_hz = 1e5, .spacing = TriggerSettings::Spacing::periodic};

TEST(TriggerAuthority, OneThatBeginsHeldOffersNothingUntilItIsReleased) {
  TriggerSettings settings = kHundredKilohertz;
  settings.hold = true;
  TriggerAuthority authority(settings);
  const auto follower = authority.join("card", 10'000);
  authority.set_ready(follower, true, kStart);
  EXPECT_TRUE(take_all(authority, follower, kStart + 500'000'000).empty());
  EXPECT_TRUE(authority.report().held);
  EXPECT_EQ(authority.report().offered, 0U);
  authority.release({}, kStart + 500'000'000);
  EXPECT_FALSE(authority.report().held);
  EXPECT_EQ(ids_of(take_all(authority, follower, kStart + 510'000'000)).size(), 1000U) << "triggers of the 10 ms since";
  EXPECT_DOUBLE_EQ(authority.report().seconds, 0.01) << "time begins with the first possible trigger";
}

TEST(TriggerAuthority, HeldTimeIsNoDeadTimeAndIdsGoOn) {
  TriggerAuthority authority(kHundredKilohertz);
  const auto follower = authority.join("card", 10'000);
  authority.set_ready(follower, true, kStart);
  EXPECT_EQ(authority.hold_run(kStart + 10'000'000), 1000U) << "the triggers due until then";
  EXPECT_EQ(authority.hold_run(kStart + 20'000'000), 1000U) << "a second call changes nothing";
  EXPECT_EQ(ids_of(take_all(authority, follower, kStart + 900'000'000)).size(), 1000U)
      << "accepted before the hold, and taken after it";
  authority.release({}, kStart + 900'000'000);
  authority.release({}, kStart + 900'000'000);
  const auto ids = ids_of(take_all(authority, follower, kStart + 905'000'000));
  ASSERT_EQ(ids.size(), 500U);
  EXPECT_EQ(ids.front(), 1000U);
  const TriggerReport report = authority.report();
  EXPECT_EQ(report.offered, 1500U);
  EXPECT_EQ(report.dead_time_fraction(), 0);
  EXPECT_DOUBLE_EQ(report.offering_seconds, 0.015);
}

TEST(TriggerAuthority, WithoutARateAHeldOneOffersNothingEither) {
  TriggerAuthority authority({.rate_hz = 0});
  const auto follower = authority.join("card", 100);
  authority.set_ready(follower, true, kStart);
  std::vector<TriggerRange> ranges;
  EXPECT_EQ(authority.take(follower, 10, kStart + 1, ranges), 10U);
  const std::uint64_t accepted = authority.hold_run(kStart + 2);
  EXPECT_EQ(authority.take(follower, 1000, kStart + 3, ranges), accepted - 10) << "the triggers accepted before";
  authority.done(follower, accepted);
  EXPECT_EQ(authority.take(follower, 1000, kStart + 4, ranges), 0U);
  EXPECT_EQ(authority.report().accepted, accepted);
  authority.release({}, kStart + 5);
  EXPECT_EQ(authority.take(follower, 1, kStart + 6, ranges), 1U);
}

TEST(TriggerAuthority, AReleaseChangesForHowManyFunctionsTriggersWait) {
  TriggerSettings settings = kHundredKilohertz;
  settings.wait_for = 2;
  settings.hold = true;
  TriggerAuthority authority(settings);
  const auto here = authority.join("here", 10'000);
  const auto elsewhere = authority.join_peer("elsewhere", "a socket");
  ASSERT_TRUE(elsewhere);
  authority.set_ready(here, true, kStart);
  authority.release({}, kStart);
  EXPECT_EQ(authority.report().awaited, 1U);
  EXPECT_TRUE(take_all(authority, here, kStart + 10'000'000).empty());
  authority.release(1, kStart + 10'000'000);
  EXPECT_EQ(authority.report().wait_for, 1U);
  EXPECT_EQ(ids_of(take_all(authority, here, kStart + 20'000'000)).size(), 1000U) << "triggers go on without the lost one";
  (void)authority.hold_run(kStart + 20'000'000);
  authority.release(2, kStart + 20'000'000);
  EXPECT_TRUE(take_all(authority, here, kStart + 30'000'000).empty());
  authority.set_peer(*elsewhere, 1, false, 10'000, kStart + 30'000'000);
  const auto ids = ids_of(take_all(authority, here, kStart + 40'000'000));
  EXPECT_EQ(ids.size(), 1000U);
  EXPECT_EQ(ids_of(take_all(authority, *elsewhere, kStart + 40'000'000)), ids) << "both begin with the same trigger";
  EXPECT_EQ(authority.hold_run(kStart + 40'000'000), 2000U);
  EXPECT_TRUE(take_all(authority, *elsewhere, kStart + 90'000'000).empty());
}

TEST(TriggerAuthority, WhatAFollowerHasNotTakenWhenItLeavesIsCounted) {
  TriggerAuthority authority({.rate_hz = 1e5, .spacing = TriggerSettings::Spacing::periodic});
  const auto follower = authority.join("card", 10'000);
  authority.set_ready(follower, true, kStart);
  std::vector<TriggerRange> ranges;
  EXPECT_EQ(authority.take(follower, 10, kStart + 1'000'000, ranges), 10U);
  authority.set_ready(follower, false, kStart + 2'000'000);
  EXPECT_EQ(authority.report().followers.at(0).missed, 90U);
}

TEST(TriggerAuthority, AnIdOf24BitsGoesRoundWithoutTouchingTheEcrCounter) {
  const TriggerRange range{.l1id = 0x05fffffe, .count = 4};
  EXPECT_EQ(ids_of({range}), (std::vector<std::uint32_t>{0x05fffffe, 0x05ffffff, 0x05000000, 0x05000001}));
  EXPECT_EQ(range.id_of(1), 0x05ffffffU);
  EXPECT_EQ(range.id_of(2), 0x06000000U) << "its global id continues";
}

/// Luminosity block and scan step of each trigger.
std::vector<std::pair<unsigned, unsigned>> marks_of(const std::vector<TriggerRange>& ranges) {
  std::vector<std::pair<unsigned, unsigned>> marks;
  for (const TriggerRange& range : ranges) marks.insert(marks.end(), range.count, {range.lumi_block, range.scan_step});
  return marks;
}

TEST(TriggerAuthority, BlocksAndStepsGoOnByTimeWithTheNextTrigger) {
  TriggerAuthority authority({.rate_hz = 1e6,
                              .spacing = TriggerSettings::Spacing::periodic,
                              .lumi_block = 5,
                              .lumi_block_period = 10us,
                              .scan_step_period = 20us});
  const auto follower = authority.join("card", 1000);
  authority.set_ready(follower, true, kStart);
  const auto ranges = take_all(authority, follower, kStart + 30'000);
  const auto marks = marks_of(ranges);
  ASSERT_EQ(marks.size(), 30U);
  for (unsigned i = 0; i < 30; ++i)  // trigger i comes i + 1 us after the start
    EXPECT_EQ(marks[i], std::pair(5 + (i + 1) / 10, (i + 1) / 20)) << i;
  EXPECT_EQ(authority.marks(), (std::vector<TriggerMark>{{0, 5, 0, 0}, {9, 6, 0, 9}, {19, 7, 1, 19}, {29, 8, 1, 29}}));
}

TEST(TriggerAuthority, ABlockThatIsAskedForBeginsWithTheNextTriggerAndItsTimeBeginsAnew) {
  TriggerAuthority authority({.rate_hz = 1e6, .spacing = TriggerSettings::Spacing::periodic, .lumi_block_period = 10us});
  const auto follower = authority.join("card", 1000);
  authority.set_ready(follower, true, kStart);
  take_all(authority, follower, kStart + 5'000);
  const auto next = authority.advance_marks({.next_lumi_block = true, .scan_step = 9}, kStart + 5'000);
  EXPECT_EQ(next.sequence, 5U);
  EXPECT_EQ(next.lumi_block, 2U);
  EXPECT_EQ(next.scan_step, 9U);
  const auto marks = marks_of(take_all(authority, follower, kStart + 16'000));
  ASSERT_EQ(marks.size(), 11U);
  EXPECT_EQ(marks.front(), std::pair(2U, 9U));
  EXPECT_EQ(marks[8], std::pair(2U, 9U));
  EXPECT_EQ(marks[9], std::pair(3U, 9U));
}

TEST(TriggerAuthority, ABlockThatIsAskedForIsAMarkAlsoIfItsNumberStays) {
  TriggerAuthority authority({.rate_hz = 1e6, .spacing = TriggerSettings::Spacing::periodic});
  const auto follower = authority.join("card", 1000);
  authority.set_ready(follower, true, kStart);
  take_all(authority, follower, kStart + 4'000);
  authority.advance_marks({.lumi_block = 1}, kStart + 4'000);
  take_all(authority, follower, kStart + 6'000);
  EXPECT_EQ(authority.marks(), (std::vector<TriggerMark>{{0, 1, 0, 0}, {4, 1, 0, 4}}));
}

TEST(TriggerAuthority, WhatIsAskedForTwiceBetweenTwoTriggersIsOneMark) {
  TriggerAuthority authority({.rate_hz = 1e6, .spacing = TriggerSettings::Spacing::periodic});
  const auto follower = authority.join("card", 1000);
  authority.set_ready(follower, true, kStart);
  authority.advance_marks({.lumi_block = 7}, kStart);
  authority.advance_marks({.next_lumi_block = true}, kStart);
  take_all(authority, follower, kStart + 3'000);
  EXPECT_EQ(authority.marks(), (std::vector<TriggerMark>{{0, 8, 0}}));
}

TEST(TriggerAuthority, AnIdIsNeverGivenAgainWhenTheEcrCounterGoesRound) {
  TriggerAuthority authority({.ecr_triggers = 2, .limit = 1100});
  const auto follower = authority.join("card", 1'000'000);
  authority.set_ready(follower, true, kStart);
  std::uint64_t last = 0;
  std::uint64_t count = 0;
  for (const TriggerRange& range : take_all(authority, follower, kStart + 1)) {
    for (std::uint32_t i = 0; i < range.count; ++i, ++count) {
      EXPECT_TRUE(count == 0 || range.id_of(i) > last);
      last = range.id_of(i);
    }
  }
  EXPECT_EQ(count, 1100U);
  EXPECT_EQ(last >> 32, (1100 / 2 - 1) / 256);
}

}  // namespace
