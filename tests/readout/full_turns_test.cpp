// FULL-mode builder: links whose turns change, links without turns, and links that permanently send wrong events.
#include <gtest/gtest.h>

#include "readout/full_fixture.h"

namespace rodeo::test {
namespace {

// The turns restart at every seam, as in a looped recording whose number of events is not a multiple of the links.
TEST(FullBuilder, ATurnThatChangesLosesNoChunk) {
  FullFixture fixture(3, 1);
  fixture.start();
  for (std::uint32_t l1 = 0; l1 < 3005; ++l1) {
    ScriptedRun run = fixture.event(0, L1Id{l1});
    run.fid = fixture.fids[l1 % 601 % 3];
    fixture.provable.write(run.chunks[0], run.fid.default_link_id(), L1Id{l1});
    fixture.input.push({run});
  }
  fixture.finish();
  fixture.sort_out();
  EXPECT_EQ(fixture.builder->status().chunks_built, 3005U);
  EXPECT_TRUE(fixture.empty.empty());
}

// Of each 400 events, `in_turn` go to the links in turn, and the others to random links. Returns the number of whole events.
std::size_t whole_of(std::uint32_t in_turn, std::uint32_t events) {
  FullFixture fixture(4, 1);
  fixture.start();
  std::uint64_t random = 1;
  const auto draw = [&] { return (random = random * 6364136223846793005U + 1442695040888963407U) >> 33; };
  for (std::uint32_t l1 = 0; l1 < events; ++l1) {
    ScriptedRun run = fixture.event(0, L1Id{l1});
    run.fid = fixture.fids[l1 % 400 < in_turn ? l1 % 4 : draw() % 4];
    fixture.provable.write(run.chunks[0], run.fid.default_link_id(), L1Id{l1});
    fixture.input.push({run});
  }
  fixture.finish();
  fixture.sort_out();
  EXPECT_EQ(fixture.builder->status().chunks_built, fixture.whole);
  EXPECT_EQ(fixture.lost("out_of_sequence"), events - fixture.whole);
  return fixture.whole;
}

TEST(FullBuilder, MissingEventsAreChargedToTheLinkThatIsSilentAndNotToItsNeighbour) {
  // One link is silent from the start, or after a reset at which the turns change.
  for (const std::uint32_t before : {0U, 101U}) {
    FullFixture fixture(2, 1);
    fixture.start();
    fixture.push_events(0, 0, before);
    for (std::uint32_t l1 = 0; l1 < 400; l1 += 2) fixture.input.push({fixture.event(0, L1Id::of(before == 0 ? 0 : 1, l1))});
    fixture.finish();
    fixture.sort_out();
    const std::vector<FragmentBuilder::Link> links = fixture.builder->status().links;
    EXPECT_EQ(links[0].missing, 0U) << before;
    EXPECT_EQ(links[1].missing, fixture.empty.size()) << before;
    EXPECT_GT(fixture.empty.size(), 190U) << before;
  }
}

TEST(FullBuilder, LinksThatTakeNoTurnsLoseNothing) { EXPECT_EQ(whole_of(0, 2000), 2000U); }

TEST(FullBuilder, WhenTurnsEndAFewChunksPassForStrays) {
  // Five times the turns become regular and irregular: the builder trusts a turn only when most links have passed it.
  EXPECT_GE(whole_of(200, 2000), 2000U - 5 * 8);
}

TEST(FullBuilder, ALinkThatJumpsIntoTheTurnsOfOthersLosesItsOwnChunksAlone) {
  for (const std::uint32_t jump : {1U, 5U, 40U, 41U, 64U, 65U, 200U}) {
    SCOPED_TRACE(jump);
    FullFixture fixture(3, 1);
    fixture.start();
    std::uint32_t others = 0;
    for (std::uint32_t l1 = 0; l1 < 1500; ++l1) {
      const bool astray = l1 % 3 == 1 && l1 >= 600;
      const L1Id id{astray ? l1 + jump : l1};
      ScriptedRun run = fixture.event(0, id);
      run.fid = fixture.fids[l1 % 3];
      fixture.provable.write(run.chunks[0], run.fid.default_link_id(), id);
      fixture.input.push({run});
      others += astray ? 0 : 1;
    }
    fixture.finish();
    fixture.sort_out();
    EXPECT_GE(fixture.whole, others);
    EXPECT_LE(fixture.lost("late") + fixture.lost("duplicate") + fixture.lost("out_of_sequence"), 1500 - others);
  }
}

// The ids of one link stay wrong: its chunks wait, or are stray. They must not hold all pages of the input.
TEST(FullBuilder, ALinkThatLiesForGoodDoesNotKeepAllPages) {
  constexpr std::uint32_t kEvents = 3000;
  for (const std::uint32_t links : {2U, 4U}) {
    for (const std::uint32_t jump : {65U, 201U, 100'000U, 100'001U}) {
      for (const std::size_t pages : {9U, 64U}) {
        SCOPED_TRACE(testing::Message() << links << " links, off by " << jump << ", " << pages << " pages");
        FullFixture fixture(links, 1);
        fixture.input.set_pages(pages);
        fixture.start();
        std::uint32_t others = 0;
        for (std::uint32_t l1 = 0; l1 < kEvents; ++l1) {
          const bool astray = l1 % links == 1 && l1 >= 600;
          const L1Id id{astray ? l1 + jump : l1};
          ScriptedRun run = fixture.event(0, id);
          run.fid = fixture.fids[l1 % links];
          fixture.provable.write(run.chunks[0], run.fid.default_link_id(), id);
          fixture.input.push({run});
          others += astray ? 0 : 1;
        }
        fixture.wait_for(kEvents);
        fixture.input.set_pages(kEvents);
        fixture.finish();
        fixture.sort_out();
        EXPECT_GE(fixture.whole, others);
        EXPECT_LE(fixture.lost("late") + fixture.lost("duplicate") + fixture.lost("out_of_sequence"), kEvents - others);
      }
    }
  }
}

TEST(FullBuilder, WhatWaitsIsLetGoWhereTheInputsMemoryIsUsedUpAndNothingComes) {
  constexpr std::uint32_t kEvents = 1000;
  FullFixture fixture(4, 1);
  fixture.start();
  for (std::uint32_t l1 = 0; l1 < kEvents; ++l1) {
    ScriptedRun run = fixture.event(0, L1Id{l1});
    run.fid = fixture.fids[l1 % 4];
    const L1Id id{l1 % 4 == 1 && l1 >= 600 ? l1 + 100'000 : l1};
    fixture.provable.write(run.chunks[0], run.fid.default_link_id(), id);
    fixture.input.push({run});
  }
  std::uint64_t now = 1;
  const auto time_passes_until = [&](const auto& happened) {
    const auto deadline = std::chrono::steady_clock::now() + patience();
    while (!happened() && std::chrono::steady_clock::now() < deadline) {
      fixture.input.set_clock(now += 1'000'000);
      std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
  };
  time_passes_until([&] { return fixture.collector.count() == kEvents; });  // the gaps have timed out
  EXPECT_FALSE(fixture.input.idle()) << "the link's chunks wait";
  fixture.input.set_memory_fill(0.9);
  time_passes_until([&] { return fixture.input.idle(); });
  EXPECT_TRUE(fixture.input.idle());
  EXPECT_EQ(fixture.lost("out_of_sequence"), 100U);
  fixture.finish();
  fixture.sort_out();
  EXPECT_EQ(fixture.whole, kEvents - 100);
  EXPECT_EQ(fixture.empty.size(), 100U);
}

}  // namespace
}  // namespace rodeo::test
