// FULL-mode builder with the trigger's own list, which comes before the data, after them, or ahead of one worker.
#include <gtest/gtest.h>

#include "readout/full_fixture.h"

namespace rodeo::test {
namespace {

TEST(FullBuilder, TheListMayComeAfterAllTriggersThatACardHolds) {
  constexpr std::uint32_t kHeld = 4096;
  for (const std::uint32_t links : {1U, 3U}) {
    FullFixture fixture(links, 1, {.trigger_list = true});
    fixture.start();
    for (std::uint32_t l1 = 0; l1 < kHeld; ++l1) fixture.input.push({fixture.event(0, L1Id{l1}, 40)});
    fixture.wait_for(kHeld);
    fixture.push_triggers(kHeld);
    fixture.finish();
    fixture.sort_out();
    EXPECT_EQ(fixture.whole, kHeld) << links << " links";
    for (const NamedCounter& counter : fixture.builder->status().lost) EXPECT_EQ(counter.value, 0U) << counter.name;
    EXPECT_EQ(fixture.builder->status().incomplete, 0U) << links << " links";
  }
}

TEST(FullBuilder, TheListMayComeAfterTheEndOfTheRun) {
  for (const std::uint32_t links : {4U, 5U, 8U}) {
    const std::uint32_t events = 22 * links;  // each link has fewer chunks than may overtake a silent link
    FullFixture fixture(links, 1, {.window = 64, .trigger_list = true});
    fixture.start();
    fixture.push_events(0, 0, events);
    fixture.wait_for(events);
    fixture.input.stop_before(FullFixture::triggers(events));
    fixture.finish();
    fixture.sort_out();
    EXPECT_EQ(fixture.whole, events) << links << " links";
    EXPECT_EQ(fixture.builder->status().incomplete, 0U) << links << " links";
  }
}

TEST(FullBuilder, OneDecodedListServesAllWorkersHoweverFarApart) {
  constexpr std::uint32_t kEvents = 20'000;  // more events than two readers of the list may be apart
  FullFixture fixture(2, 2, {.workers = 2, .window = 64, .trigger_list = true});
  EXPECT_EQ(fixture.input.trigger_lists(), 1U);
  fixture.push_triggers(kEvents);
  fixture.start();
  for (std::uint32_t l1 = 0; l1 < kEvents; ++l1) fixture.input.push({fixture.event(0, L1Id{l1}, 32)});
  while (fixture.builder->status().fragments < 5000) std::this_thread::yield();
  for (std::uint32_t l1 = 0; l1 < kEvents; ++l1) fixture.input.push({fixture.event(1, L1Id{l1}, 32)});
  fixture.finish();
  fixture.sort_out();
  EXPECT_EQ(fixture.whole, 2 * kEvents);
  EXPECT_TRUE(fixture.empty.empty());
  EXPECT_EQ(fixture.builder->status().incomplete, 0U);
}

TEST(FullBuilder, AListThatIsAheadOfOneWorkerAtTheEndIsReadToItsEndByBoth) {
  constexpr std::uint32_t kEvents = 20'000;
  FullFixture fixture(2, 2, {.workers = 2, .window = 64, .trigger_list = true});
  fixture.push_triggers(kEvents);
  fixture.start();
  for (std::uint32_t l1 = 0; l1 < kEvents; ++l1) fixture.input.push({fixture.event(0, L1Id{l1}, 32)});
  fixture.finish();
  fixture.sort_out();
  EXPECT_EQ(fixture.whole, kEvents);
  EXPECT_EQ(fixture.builder->status().incomplete, kEvents) << "all events of the other group are empty";
  EXPECT_EQ(fixture.builder->status().fragments, 2 * kEvents);
}

// The list has more entries than the builder keeps: it continues only when events are closed.
constexpr std::uint32_t kMoreThanRemembered = 3000;

TEST(FullBuilder, IdsThatTheListDoesNotHaveCostTheirChunksWhereWhatWaitsBehindThemKeepsAllPages) {
  for (const std::size_t pages : {4U, 40U}) {
    FullFixture fixture(1, 1, {.window = 64, .trigger_list = true});
    fixture.input.set_pages(pages);
    fixture.push_triggers(kMoreThanRemembered);
    fixture.start();
    for (std::uint32_t l1 = 0; l1 < 200; ++l1) {
      ScriptedRun run = fixture.event(0, L1Id{l1}, 40);
      if (l1 == 10 || l1 == 11) run.chunks[0][2] ^= std::byte{0x40} << (l1 % 2);
      fixture.input.push({run});
    }
    fixture.wait_for(200);
    fixture.input.set_pages(1000);
    fixture.finish();
    fixture.sort_out();
    EXPECT_EQ(fixture.whole, 198U) << pages << " pages";
    EXPECT_EQ(fixture.lost("not_listed"), 2U) << pages << " pages";
  }
}

TEST(FullBuilder, TimeGoesOnWhereASilentGroupKeepsTheListAndWhatWaitsKeepsAllPages) {
  constexpr std::uint32_t kEvents = kMoreThanRemembered;
  FullFixture fixture(2, 2, {.timeout = std::chrono::milliseconds{1}, .window = 64, .trigger_list = true});
  fixture.input.set_pages(16);
  fixture.push_triggers(kMoreThanRemembered);
  fixture.start();
  for (std::uint32_t l1 = 0; l1 < 10; ++l1) fixture.input.push({fixture.event(1, L1Id{l1}, 40)});
  for (std::uint32_t l1 = 0; l1 < kEvents; ++l1) fixture.input.push({fixture.event(0, L1Id{l1}, 40)});
  fixture.wait_for(kEvents + 10);
  fixture.input.set_pages(kEvents);
  fixture.finish();
  fixture.sort_out();
  EXPECT_EQ(fixture.whole, kEvents + 10);
  for (const NamedCounter& counter : fixture.builder->status().lost) EXPECT_EQ(counter.value, 0U) << counter.name;
}

TEST(FullBuilder, WhatWaitsIsGivenUpAndCountedWhereItHasToEnd) {
  FullFixture fixture(2, 2, {.workers = 2, .window = 64, .trigger_list = true});
  fixture.start();
  for (std::uint32_t l1 = 0; l1 < 50; ++l1)
    fixture.input.push({fixture.event(0, L1Id{l1}, 40), fixture.event(1, L1Id{l1}, 40)});
  fixture.wait_for(100);  // all events are unknown until the list begins, so their chunks wait
  fixture.builder->give_up();
  while (!fixture.builder->status().workers.empty() && fixture.lost("stop_limit") < 100) std::this_thread::yield();
  fixture.input.push({fixture.event(0, L1Id{50}, 40)});
  fixture.finish();
  fixture.sort_out();
  EXPECT_EQ(fixture.whole, 0U);
  EXPECT_EQ(fixture.lost("stop_limit"), 101U);
}

TEST(FullBuilder, ABcidThatIsNotTheTriggersFlagsTheFragment) {
  FullFixture fixture(2, 1, {.trigger_list = true});
  fixture.push_triggers(100);
  fixture.start();
  for (std::uint32_t l1 = 0; l1 < 100; ++l1) {
    ScriptedRun run = fixture.event(0, L1Id{l1});
    if (l1 == 50) run.chunks[0][4] ^= std::byte{1};
    fixture.input.push({run});
  }
  fixture.finish();
  std::vector<L1Id> flagged;
  for (const SeenFragment& seen : fixture.collector.fragments()) {
    if ((seen.status & fragment_status::kBcidMismatch) != 0) flagged.push_back(seen.l1id);
    EXPECT_EQ(seen.bcid, fixture.provable.trigger(seen.l1id).bcid) << "the BCID of the list";
    EXPECT_EQ(seen.headers.begin()->second.rodeo_status, seen.l1id == L1Id{50} ? chunk_flag::kBcidMismatch : 0);
  }
  EXPECT_EQ(flagged, std::vector{L1Id{50}});
  EXPECT_EQ(fixture.collector.count(), 100U);
}

TEST(FullBuilder, NarrowTriggerCountersAreRightByTheListHoweverFarItIsAhead) {
  constexpr std::uint32_t kEvents = 3000;
  for (const std::uint32_t bits : {8U, 16U}) {
    FullFixture fixture(2, 1, {.trigger_list = true}, bits);
    fixture.push_triggers(kEvents);
    fixture.start();
    fixture.push_events(0, 0, kEvents);
    fixture.finish();
    fixture.sort_out();
    EXPECT_EQ(fixture.whole, kEvents) << bits << " bits";
    EXPECT_EQ(fixture.builder->status().incomplete, 0U) << bits << " bits";
  }
}

}  // namespace
}  // namespace rodeo::test
