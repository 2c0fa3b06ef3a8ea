// GBT builder: links that jump or run ahead, alone and together, and their effect on the others.
#include <gtest/gtest.h>

#include <fmt/core.h>

#include "readout/gbt_fixture.h"

namespace rodeo::test {
namespace {

using readout::GbtSettings;

class GbtJumps : public GbtWithWorkers {};

TEST_P(GbtJumps, AJumpIsBelievedOnceConfirmedAndTheLinkFindsItsPlaceAgain) {
  GbtFixture fixture(3, settings());
  fixture.start();
  fixture.push_all(L1Id{0}, 100);
  // Link 2 loses 200 events and comes back one chunk at a time. Its first chunk waits until the second confirms it.
  for (std::uint32_t l1 = 100; l1 < 400; ++l1) {
    std::vector<ScriptedRun> runs{fixture.run(0, L1Id{l1}, 1), fixture.run(1, L1Id{l1}, 1)};
    if (l1 >= 300) runs.push_back(fixture.run(2, L1Id{l1}, 1));
    fixture.input.push(runs);
  }
  fixture.finish();
  fixture.check_invariants();
  EXPECT_EQ(fixture.lost("out_of_sequence"), 0U) << "a held chunk is not lost";
  for (const SeenFragment& fragment : fixture.collector.fragments()) {
    EXPECT_EQ(fragment.missing, fragment.l1id.value >= 100 && fragment.l1id.value < 300 ? 1U : 0U) << fragment.l1id.value;
    EXPECT_TRUE(fixture.proves(fragment));
  }
}

TEST_P(GbtJumps, ALinkThatLeavesTheWindowDoesNotDragItAlong) {
  GbtFixture fixture(3, settings());
  fixture.start();
  fixture.push_all(L1Id{0}, 100);
  for (std::uint32_t l1 = 100; l1 < 300; ++l1) {
    fixture.input.push({fixture.run(0, L1Id{l1}, 1), fixture.run(1, L1Id{l1}, 1), fixture.run(2, L1Id{l1 + 500'000}, 1)});
  }
  // The link is right again after the next event counter reset.
  for (std::uint32_t l1 = 0; l1 < 50; ++l1) fixture.push_all(L1Id::of(1, l1), 1);
  fixture.finish();
  fixture.check_invariants();
  std::size_t complete = 0;
  for (const SeenFragment& fragment : fixture.collector.fragments()) complete += fragment.missing == 0;
  EXPECT_EQ(fixture.collector.count(), 350U);
  EXPECT_GE(complete, 100U + (GetParam() == 1 ? 49U : 48U));
}

TEST_P(GbtJumps, ALoneLinkThatJumpsAheadCostsTheOthersNothing) {
  for (const bool listed : {false, true}) {
    GbtSettings mine = settings();
    mine.window = 8192;
    mine.trigger_list = listed;
    GbtFixture fixture(5, mine);
    fixture.start();
    if (listed) fixture.push_triggers(L1Id{0}, 400);
    fixture.push_all(L1Id{0}, 100);
    for (std::uint32_t l1 = 100; l1 < 400; l1 += 10) {
      std::vector<ScriptedRun> runs{fixture.run(0, L1Id{l1 + 1000}, 10)};
      for (std::size_t link = 1; link < 5; ++link) runs.push_back(fixture.run(link, L1Id{l1}, 10));
      fixture.input.push(runs);
    }
    fixture.finish();
    fixture.check_invariants();
    const auto seen = fixture.collector.fragments();
    ASSERT_EQ(seen.size(), 400U) << "the jump makes no events";
    for (const SeenFragment& fragment : seen) {
      EXPECT_EQ(fragment.missing, fragment.l1id.value >= 100 ? 1U : 0U) << fragment.l1id.value;
      EXPECT_TRUE(fixture.proves(fragment));
    }
    EXPECT_EQ(fixture.lost(listed ? "not_listed" : "out_of_sequence"), 300U);
    EXPECT_EQ(fixture.lost("late"), 0U);
  }
}

void expect_that_a_leader_makes_nobody_late(const GbtSettings& settings, std::uint32_t links, bool last_is_silent) {
  SCOPED_TRACE(fmt::format("{} links, {} workers{}", links, settings.workers, last_is_silent ? ", one silent" : ""));
  GbtFixture fixture(links, settings);
  fixture.start();
  fixture.push_all(L1Id{0}, 100);
  fixture.wait_for_fragments(100);
  std::uint64_t now = 1;
  for (std::uint32_t l1 = 100; l1 < 400; ++l1) {
    std::vector<ScriptedRun> runs{fixture.run(0, L1Id{l1 + 100}, 1)};
    for (std::size_t link = 1; link < links - (last_is_silent ? 1 : 0); ++link)
      runs.push_back(fixture.run(link, L1Id{l1}, 1));
    fixture.input.push(runs);
    fixture.input.set_clock(now += 500'000);
    std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
  fixture.finish();
  fixture.check_invariants();
  EXPECT_EQ(fixture.lost("late"), 0U);
  EXPECT_EQ(fixture.lost("out_of_sequence"), 0U);
  const auto seen = fixture.collector.fragments();
  ASSERT_EQ(seen.size(), 500U);
  for (const SeenFragment& fragment : seen) {
    const std::uint32_t l1 = fragment.l1id.value;
    const std::uint32_t leader = l1 < 100 || l1 >= 200 ? 1 : 0;
    const std::uint32_t others = l1 >= 400 ? 0 : links - 1 - (last_is_silent && l1 >= 100 ? 1 : 0);
    EXPECT_EQ(fragment.chunks, leader + others) << l1;
  }
}

TEST_P(GbtJumps, ALinkThatRunsAheadMakesNobodyLate) {
  expect_that_a_leader_makes_nobody_late(settings(), 2, false);
  expect_that_a_leader_makes_nobody_late(settings(), 6, false);
  expect_that_a_leader_makes_nobody_late(settings(), 6, true);
}

TEST(GbtJumpsOfLinksAlone, ALinkThatRunsAheadMakesNobodyLate) {
  for (const std::uint32_t links : {2U, 4U}) {
    GbtSettings one_each;
    one_each.workers = links;
    one_each.window = 1024;
    expect_that_a_leader_makes_nobody_late(one_each, links, false);
  }
}

TEST_P(GbtJumps, LinksThatJumpTogetherAreFollowed) {
  GbtFixture fixture(5, settings());
  fixture.start();
  fixture.push_all(L1Id{0}, 100);
  for (std::uint32_t l1 = 100; l1 < 400; l1 += 10) fixture.push_all(L1Id{l1 + 500}, 10);
  fixture.finish();
  fixture.check_invariants();
  EXPECT_EQ(fixture.lost("late"), 0U);
  EXPECT_LE(fixture.lost("out_of_sequence"), 100U) << "half of the links must have come before the builder believes one";
  std::size_t complete = 0;
  for (const SeenFragment& fragment : fixture.collector.fragments()) complete += fragment.missing == 0;
  EXPECT_GE(complete, 350U);
}

TEST_P(GbtJumps, LinksThatHaveNotComeYetJumpWithTheOthers) {
  GbtFixture fixture(4, settings());
  fixture.start();
  std::uint64_t now = 1;
  fixture.input.push({fixture.run(0, L1Id{0}, 20), fixture.run(1, L1Id{0}, 20)});
  for (std::uint32_t l1 = 1000; l1 < 1400; l1 += 10) {
    fixture.let_workers_catch_up(now);
    fixture.push_all(L1Id{l1}, 10);
  }
  fixture.finish();
  fixture.check_invariants();
  EXPECT_LE(fixture.lost("out_of_sequence") + fixture.lost("late"), 80U)
      << "half of the links must have come before the builder believes one";
  std::size_t complete = 0;
  for (const SeenFragment& fragment : fixture.collector.fragments()) complete += fragment.missing == 0;
  EXPECT_GE(complete, 380U);
}

TEST_P(GbtJumps, SilentLinksDoNotKeepTheOthersFromJumping) {
  for (const std::uint32_t delivered : {0U, 50U}) {
    SCOPED_TRACE(delivered);
    GbtFixture fixture(4, settings());
    fixture.start();
    std::uint64_t now = 1;
    const auto push = [&](std::uint32_t l1) {
      std::vector<ScriptedRun> runs;
      for (std::size_t link = 0; link < (l1 < delivered ? 4 : 2); ++link) runs.push_back(fixture.run(link, L1Id{l1}, 10));
      fixture.input.push(runs);
      fixture.let_workers_catch_up(now);
    };
    for (std::uint32_t l1 = 0; l1 < 100; l1 += 10) push(l1);
    fixture.let_time_pass(100, now);
    for (std::uint32_t l1 = 1000; l1 < 1400; l1 += 10) push(l1);
    fixture.finish();
    fixture.check_invariants();
    EXPECT_LE(fixture.lost("out_of_sequence") + fixture.lost("late"), 40U);
    EXPECT_GE(fixture.collector.count(), 480U);
  }
}

TEST_P(GbtJumps, ALoneLinkIsFollowedWhenTheOthersHaveLongBeenSilent) {
  GbtFixture fixture(2, settings());
  fixture.start();
  fixture.push_all(L1Id{0}, 100);
  fixture.input.push({fixture.run(0, L1Id{900}, 10)});
  fixture.wait_for_fragments(100);
  const auto deadline = std::chrono::steady_clock::now() + patience();
  std::uint64_t now = 1;
  std::uint32_t l1 = 910;
  while (fixture.collector.count() == 100 && std::chrono::steady_clock::now() < deadline) {
    for (int i = 0; i < 200; ++i) {
      fixture.input.set_clock(now += 1'000'000);
      std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
    fixture.input.push({fixture.run(0, L1Id{l1}, 10)});
    l1 += 10;
  }
  fixture.finish();
  fixture.check_invariants();
  EXPECT_GT(fixture.collector.count(), 100U) << "the link's chunks are built, without the silent link";
  EXPECT_EQ(fixture.lost("out_of_sequence"), 0U) << "the chunks waited";
}

TEST(GbtJumpsOfLinksAlone, WhatTheOnlyLinkOfARobSkipsIsKnown) {
  constexpr std::uint32_t kFirst = 500;
  for (const std::uint32_t jump : {1U, 64U, 65U, 4'000'000U}) {
    SCOPED_TRACE(jump);
    GbtFixture fixture(1);
    fixture.start();
    fixture.push_all(L1Id{kFirst}, 1000);
    fixture.push_all(L1Id{kFirst + 1000 + jump}, 1000);
    fixture.finish();
    fixture.check_invariants();
    const FragmentBuilder::Status status = fixture.builder->status();
    EXPECT_EQ(status.chunks_built, 2000U);
    EXPECT_EQ(status.incomplete + status.skipped, jump) << "each event is an empty fragment, or counted as skipped";
    EXPECT_EQ(status.skipped != 0, jump == 4'000'000) << status.skipped;
    EXPECT_EQ(status.first_event, kFirst);
    EXPECT_EQ(status.events, 2000 + jump);
  }
}

TEST(GbtJumpsOfLinksAlone, TheOnlyLinkOfARobThatNeverComesHasNoEvents) {
  GbtFixture fixture(1);
  fixture.start();
  fixture.finish();
  EXPECT_EQ(fixture.builder->status().first_event, ~std::uint64_t{0});
  EXPECT_EQ(fixture.builder->status().events, 0U);
}

INSTANTIATE_TEST_SUITE_P(Workers, GbtJumps, ::testing::Values(1U, 2U),
                         [](const auto& param) { return std::string("W").append(std::to_string(param.param)); });

}  // namespace
}  // namespace rodeo::test
