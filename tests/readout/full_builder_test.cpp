// FULL-mode builder, case by case: one stream over links that take turns, in order and in many kinds of disorder.
#include <gtest/gtest.h>

#include <random>

#include "readout/full_fixture.h"

namespace rodeo::test {
namespace {

TEST(FullBuilder, EveryChunkIsAFragmentWhereItLies) {
  FullFixture fixture(12, 1);
  fixture.start();
  fixture.push_events(0, 0, 1000);
  fixture.finish();
  fixture.sort_out();
  EXPECT_EQ(fixture.whole, 1000U);
  EXPECT_TRUE(fixture.empty.empty());
}

TEST(FullBuilder, GroupsAreStreamsOfTheirOwnOverAnyNumberOfWorkers) {
  for (const std::uint32_t workers : {1U, 2U, 3U}) {
    FullFixture fixture(12, 4, {.workers = workers});
    fixture.start();
    for (std::uint32_t group = 0; group < 4; ++group) fixture.push_events(group, 0, 100 * (group + 1));
    fixture.finish();
    fixture.sort_out();
    EXPECT_EQ(fixture.whole, 1000U);
    EXPECT_TRUE(fixture.empty.empty());
  }
}

TEST(FullBuilder, ChunksOfAnySizeKeepTheirBytesAndPadding) {
  FullFixture fixture(3, 1);
  fixture.start();
  for (std::uint32_t l1 = 0; l1 < 60; ++l1) fixture.input.push({fixture.event(0, L1Id{l1}, l1 < 50 ? 8 + l1 : 65'500 + l1)});
  fixture.finish();
  fixture.sort_out();
  EXPECT_EQ(fixture.whole, 60U);
  for (const SeenFragment& seen : fixture.collector.fragments()) {
    EXPECT_EQ(seen.data.begin()->second.size(), seen.l1id.value < 50 ? 8 + seen.l1id.value : 65'500 + seen.l1id.value);
  }
}

TEST(FullBuilder, DisorderBetweenLinksIsNoLoss) {
  FullFixture fixture(4, 1);
  fixture.start();
  fixture.push_events(0, 0, 8);
  // Each link sends eight of its events before the next link continues.
  for (std::uint32_t link = 0; link < 4; ++link) {
    for (std::uint32_t l1 = 8 + link; l1 < 40; l1 += 4) fixture.input.push({fixture.event(0, L1Id{l1})});
  }
  fixture.push_events(0, 40, 48);
  fixture.finish();
  fixture.sort_out();
  EXPECT_EQ(fixture.whole, 48U);
  EXPECT_TRUE(fixture.empty.empty());
}

TEST(FullBuilder, LinksMayBeApartByAllTriggersThatACardHolds) {
  constexpr std::uint32_t kHeld = 4096;
  for (std::uint32_t links = 1; links <= 6; ++links) {
    SCOPED_TRACE(links);
    FullFixture fixture(links, 1);
    fixture.start();
    for (std::uint32_t first = 0; first < 4 * kHeld; first += kHeld) {
      for (std::uint32_t link = 0; link < links; ++link) {
        for (std::uint32_t l1 = first; l1 < first + kHeld; ++l1) {
          if (l1 % links == link) fixture.input.push({fixture.event(0, L1Id{l1}, 40)});
        }
      }
    }
    fixture.finish();
    fixture.sort_out();
    EXPECT_EQ(fixture.whole, 4 * kHeld);
    EXPECT_EQ(fixture.builder->status().incomplete, 0U);
  }
}

TEST(FullBuilder, WhatWaitsAtTheEndOfTheRunComesInOrder) {
  FullFixture fixture(2, 1, {.window = 64});
  fixture.start();
  fixture.push_events(0, 0, 100);
  // One link leaves out an event, and its next chunk is its last. The other link continues beyond the window.
  fixture.input.push({fixture.event(0, L1Id{103})});
  for (std::uint32_t l1 = 100; l1 < 200; l1 += 2) fixture.input.push({fixture.event(0, L1Id{l1})});
  fixture.wait_for(151);
  fixture.finish();
  fixture.sort_out();
  EXPECT_EQ(fixture.whole, 151U);
  for (const NamedCounter& counter : fixture.builder->status().lost) EXPECT_EQ(counter.value, 0U) << counter.name;
}

TEST(FullBuilder, AnEventThatEveryLinkHasPassedIsBuiltEmptyAndNamesTheLink) {
  FullFixture fixture(4, 1);
  fixture.start();
  fixture.push_events(0, 0, 21);
  fixture.push_events(0, 22, 40);
  fixture.finish();
  fixture.sort_out();
  EXPECT_EQ(fixture.whole, 39U);
  EXPECT_EQ(fixture.empty, std::set{L1Id{21}});
  for (const SeenFragment& seen : fixture.collector.fragments()) {
    if (seen.chunks == 0) {
      EXPECT_EQ(seen.missing_links, std::vector{fixture.fids[1].default_link_id()});
    }
  }
}

TEST(FullBuilder, ASilentLinksEventsTimeOutOnTheInputsClock) {
  FullFixture fixture(2, 1);
  fixture.start();
  fixture.push_events(0, 0, 10);
  for (std::uint32_t l1 = 10; l1 < 30; l1 += 2) fixture.input.push({fixture.event(0, L1Id{l1})});
  const auto deadline = std::chrono::steady_clock::now() + patience();
  std::uint64_t now = 1;
  while (fixture.collector.count() < 29 && std::chrono::steady_clock::now() < deadline) {
    fixture.input.set_clock(now += 1'000'000);
    std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
  fixture.input.push({fixture.event(0, L1Id{11})});
  fixture.finish();
  fixture.sort_out();
  EXPECT_EQ(fixture.whole, 20U);
  EXPECT_EQ(fixture.empty.size(), 9U);
  EXPECT_EQ(fixture.lost("late"), 1U);
}

TEST(FullBuilder, DuplicatesAreCountedAndDropped) {
  FullFixture fixture(2, 1);
  fixture.start();
  fixture.push_events(0, 0, 10);
  fixture.input.push({fixture.event(0, L1Id{7})});
  fixture.push_events(0, 10, 12);
  fixture.finish();
  fixture.sort_out();
  EXPECT_EQ(fixture.whole, 12U);
  EXPECT_EQ(fixture.lost("duplicate"), 1U);
}

TEST(FullBuilder, AFlippedBitInOneL1IdCostsOneChunk) {
  for (std::uint32_t bit = 7; bit < 32; ++bit) {
    FullFixture fixture(2, 1);
    fixture.start();
    fixture.push_events(0, 200, 220, 3);
    ScriptedRun hurt = fixture.event(0, L1Id::of(3, 220));
    hurt.chunks[0][bit / 8] ^= std::byte{1} << (bit % 8);
    fixture.input.push({hurt});
    fixture.push_events(0, 221, 240, 3);
    fixture.finish();
    fixture.sort_out();
    EXPECT_EQ(fixture.whole, 39U) << "bit " << bit;
    EXPECT_EQ(fixture.empty.size(), 1U) << "bit " << bit;
  }
}

TEST(FullBuilder, AStreamOfOneEventIsBuiltWhereverItsIdIs) {
  for (const std::uint32_t ecr : {0U, 5U}) {
    for (const std::uint32_t l1 : {0U, 1000U}) {
      FullFixture fixture(2, 1);
      fixture.start();
      fixture.push_events(0, l1, l1 + 1, ecr);
      fixture.finish();
      fixture.sort_out();
      EXPECT_EQ(fixture.whole, 1U) << ecr << ", " << l1;
    }
  }
}

TEST(FullBuilder, AWrongFirstL1IdCostsOneChunk) {
  for (std::uint32_t bit = 7; bit < 32; ++bit) {
    FullFixture fixture(2, 1);
    fixture.start();
    ScriptedRun hurt = fixture.event(0, L1Id{0});
    hurt.chunks[0][bit / 8] ^= std::byte{1} << (bit % 8);
    fixture.input.push({hurt});
    fixture.push_events(0, 1, 200);
    fixture.finish();
    fixture.sort_out();
    EXPECT_EQ(fixture.whole, 199U) << "bit " << bit;
    EXPECT_EQ(fixture.lost("out_of_sequence"), 1U) << "bit " << bit;
  }
}

TEST(FullBuilder, AStormPassesWithoutALastingLoss) {
  constexpr std::uint32_t kLinks = 4;
  constexpr std::uint32_t kStorm = 4000;
  constexpr std::uint32_t kCalm = 1000;
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    std::mt19937 engine(seed);
    const auto random = [&](std::uint32_t below) { return static_cast<std::uint32_t>(engine() % below); };
    FullFixture fixture(kLinks, 1);
    fixture.start();
    std::vector<std::uint32_t> down(kLinks);  // each link is silent until this event
    for (std::uint32_t& until : down) until = random(3) == 0 ? 0 : random(kStorm);
    std::uint64_t now = 1;
    for (std::uint32_t l1 = 0; l1 < kStorm + kCalm; ++l1) {
      const bool all_go = random(1000) == 0;
      const std::uint32_t all_for = random(900);
      for (std::uint32_t& until : down) {
        if (all_go || random(400) == 0) until = std::max(until, l1 + (all_go ? all_for : random(900)));
      }
      if (l1 < kStorm && l1 < down[l1 % kLinks]) continue;
      ScriptedRun run = fixture.event(0, L1Id{l1});
      if (const std::uint32_t bit = random(32); l1 < kStorm && random(300) == 0)
        run.chunks[0][bit / 8] ^= std::byte{1} << (bit % 8);
      fixture.input.push({run});
      fixture.input.set_clock(now += random(100) == 0 ? 20'000'000 : 10'000);
      if (random(50) == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    fixture.finish();
    std::uint32_t whole = 0;
    for (const SeenFragment& seen : fixture.collector.fragments())
      whole += seen.chunks == 1 && seen.l1id.value >= kStorm + kCalm / 2 && seen.l1id.value < kStorm + kCalm ? 1 : 0;
    EXPECT_EQ(whole, kCalm / 2) << "seed " << seed << ", out of sequence " << fixture.lost("out_of_sequence");
  }
}

TEST(FullBuilder, AJumpTooLongToBeBuiltEmptyIsCounted) {
  FullFixture fixture(2, 1);
  fixture.start();
  fixture.push_events(0, 0, 100);
  fixture.push_events(0, 4'000'000, 4'000'100);
  fixture.finish();
  fixture.sort_out();
  EXPECT_EQ(fixture.whole, 200U);
  EXPECT_LE(fixture.empty.size(), 256U);
  EXPECT_EQ(fixture.builder->status().skipped + fixture.empty.size(), 3'999'900U);
}

TEST(FullBuilder, EventsThatAllLinksSkipAreBuiltEmpty) {
  for (const std::uint32_t links : {1U, 3U}) {
    for (const std::uint32_t skipped : {1U, 64U, 65U, 1500U}) {
      FullFixture fixture(links, 1);
      fixture.start();
      fixture.push_events(0, 0, 600);
      fixture.push_events(0, 600 + skipped, 1200 + skipped);
      fixture.finish();
      fixture.sort_out();
      EXPECT_EQ(fixture.whole, 1200U) << links << " links, " << skipped;
      EXPECT_EQ(fixture.empty.size(), skipped) << links << " links, " << skipped;
      EXPECT_EQ(fixture.builder->status().skipped, 0U);
    }
  }
}

TEST(FullBuilder, AGroupThatDiesHasSkippedWhatTheOthersBring) {
  FullFixture fixture(2, 2);
  fixture.start();
  fixture.push_events(0, 0, 500);
  fixture.push_events(1, 0, 400);
  fixture.finish();
  fixture.sort_out();
  EXPECT_EQ(fixture.whole, 900U);
  EXPECT_EQ(fixture.builder->status().events, 500U);
  EXPECT_EQ(fixture.builder->status().skipped, 100U);
}

TEST(FullBuilder, AGroupThatNeverComesHasSkippedWhatTheOthersBring) {
  FullFixture fixture(2, 2);
  fixture.start();
  fixture.push_events(0, 0, 500);
  fixture.finish();
  fixture.sort_out();
  EXPECT_EQ(fixture.whole, 500U);
  EXPECT_EQ(fixture.builder->status().first_event, 0U);
  EXPECT_EQ(fixture.builder->status().events, 500U);
  EXPECT_EQ(fixture.builder->status().skipped, 500U);
}

TEST(FullBuilder, GroupsThatLackEventsAtOtherEndsOfTheRunDoNotMakeUpForEachOther) {
  FullFixture fixture(2, 2);
  fixture.start();
  fixture.push_events(0, 0, 400);
  fixture.push_events(1, 100, 500);
  fixture.finish();
  fixture.sort_out();
  EXPECT_EQ(fixture.whole, 800U);
  EXPECT_EQ(fixture.builder->status().first_event, 0U);
  EXPECT_EQ(fixture.builder->status().events, 500U);
  EXPECT_EQ(fixture.builder->status().skipped, 200U);
}

TEST(FullBuilder, L1IdsWrapWithoutAReset) {
  FullFixture fixture(3, 1);
  fixture.start();
  for (std::uint32_t i = 0; i < 1500; ++i) {
    const L1Id l1id = L1Id::of(0, 0xffff00 + i);
    ScriptedRun run = fixture.event(0, l1id);
    run.fid = fixture.fids[(0xffff00 + i) % 3];
    fixture.provable.write(run.chunks[0], run.fid.default_link_id(), l1id);
    fixture.input.push({run});
  }
  fixture.finish();
  fixture.sort_out();
  EXPECT_EQ(fixture.whole, 1500U);
  EXPECT_EQ(fixture.builder->status().incomplete, 0U);
  EXPECT_TRUE(fixture.empty.empty());
}

TEST(FullBuilder, AGroupWhoseLinksAreRemovedHasSkippedNothing) {
  FullFixture fixture(2, 2);
  fixture.start();
  ASSERT_TRUE(fixture.builder->set_link(fixture.fids[1], LinkState::removed));
  const auto deadline = std::chrono::steady_clock::now() + patience();
  while (fixture.builder->status().links[1].state != LinkState::removed && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  fixture.push_events(0, 0, 500);
  fixture.finish();
  EXPECT_EQ(fixture.builder->status().events, 500U);
  EXPECT_EQ(fixture.builder->status().skipped, 0U);
}

TEST(FullBuilder, AWrongL1IdNearByIsFoundByTheLinksNextChunk) {
  for (const std::uint32_t links : {1U, 4U}) {
    for (std::uint32_t bit = 0; bit < 7; ++bit) {
      FullFixture fixture(links, 1);
      fixture.start();
      fixture.push_events(0, 0, 200);
      ScriptedRun hurt = fixture.event(0, L1Id{200});
      hurt.chunks[0][bit / 8] ^= std::byte{1} << (bit % 8);
      fixture.input.push({hurt});
      fixture.push_events(0, 201, 400);
      fixture.finish();
      fixture.sort_out();
      EXPECT_EQ(fixture.whole, 399U) << links << " links, bit " << bit;
      EXPECT_EQ(fixture.empty, std::set{L1Id{200}}) << links << " links, bit " << bit;
      // 200 has bits 3 and 6 set: a flip of one of them gives the id of a much earlier event.
      EXPECT_EQ(fixture.lost("out_of_sequence") + fixture.lost("duplicate"), 1U) << links << " links, bit " << bit;
    }
  }
}

TEST(FullBuilder, AChunkAfterAGapIsBuiltWhenTheInputsTimeRunsOn) {
  FullFixture fixture(1, 1);
  fixture.start();
  fixture.push_events(0, 0, 100);
  fixture.push_events(0, 101, 102);
  const auto deadline = std::chrono::steady_clock::now() + patience();
  std::uint64_t now = 1;
  while (fixture.collector.count() < 102 && std::chrono::steady_clock::now() < deadline) {
    fixture.input.set_clock(now += 1'000'000);
    std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
  EXPECT_EQ(fixture.collector.count(), 102U);
  fixture.finish();
  fixture.sort_out();
  EXPECT_EQ(fixture.empty, std::set{L1Id{100}});
}

TEST(FullBuilder, AnEventCounterResetMayOvertakeOldEventsOfOtherLinks) {
  FullFixture fixture(2, 1);
  fixture.start();
  fixture.push_events(0, 0, 1001, 255);  // the last event is on link 0
  fixture.input.push({fixture.event(0, L1Id::of(0, 0))});
  fixture.input.push({fixture.event(0, L1Id::of(255, 1001))});
  fixture.push_events(0, 1, 20, 0);
  fixture.finish();
  fixture.sort_out();
  EXPECT_EQ(fixture.whole, 1022U);
  EXPECT_TRUE(fixture.empty.empty());
}

TEST(FullBuilder, NarrowTriggerCountersWrap) {
  for (const std::uint32_t bits : {8U, 16U}) {
    FullFixture fixture(2, 1, {.window = 64, .step_limit = 16}, bits);
    fixture.start();
    const std::uint32_t events = bits == 8 ? 1000 : 66'000;
    for (std::uint32_t l1 = 0; l1 < events; ++l1) fixture.input.push({fixture.event(0, L1Id{l1}, 64)});
    fixture.finish();
    fixture.sort_out();
    EXPECT_EQ(fixture.whole, events);
    EXPECT_TRUE(fixture.empty.empty());
  }
}

TEST(FullBuilder, ARemovedLinkIsNotWaitedFor) {
  FullFixture fixture(2, 1);
  fixture.start();
  fixture.push_events(0, 0, 10);
  const auto deadline = std::chrono::steady_clock::now() + patience();
  while (fixture.collector.count() < 10 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  ASSERT_TRUE(fixture.builder->set_link(fixture.fids[1], LinkState::removed));
  while (fixture.builder->status().links[1].state != LinkState::removed) std::this_thread::yield();
  fixture.push_events(0, 10, 20);
  fixture.finish();
  fixture.sort_out();
  EXPECT_EQ(fixture.whole, 15U);
  EXPECT_EQ(fixture.lost("link_removed"), 5U);
  std::uint64_t without = 0;
  for (const SeenFragment& seen : fixture.collector.fragments()) {
    if (seen.chunks != 0) continue;
    ++without;
    EXPECT_EQ(seen.missing, 0U);
    EXPECT_EQ(seen.removed_links, std::vector{fixture.fids[1].default_link_id()});
    EXPECT_EQ(seen.status, fragment_status::kDummy | fragment_status::kLinksRemoved);
  }
  EXPECT_GT(without, 0U);
  EXPECT_EQ(fixture.builder->status().links[1].left_out, without);
  EXPECT_EQ(fixture.builder->status().without_removed, without);
}

}  // namespace
}  // namespace rodeo::test
