// GBT builder, case by case: what it makes of orderly links, and of every way in which links go wrong.
#include <gtest/gtest.h>

#include <random>

#include <fmt/core.h>

#include "readout/gbt_fixture.h"

namespace rodeo::test {
namespace {

using readout::GbtSettings;

class GbtBuilder : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  GbtSettings settings() const {
    GbtSettings made;
    made.workers = GetParam();
    made.window = 1024;
    return made;
  }
};

void expect_complete(GbtFixture& fixture, std::size_t fragments) {
  const auto seen = fixture.collector.fragments();
  ASSERT_EQ(seen.size(), fragments);
  for (const SeenFragment& fragment : seen) {
    EXPECT_EQ(fragment.status, 0U);
    EXPECT_EQ(fragment.chunks, fixture.fids.size());
    EXPECT_TRUE(fixture.proves(fragment)) << "L1 id " << fragment.l1id.value;
  }
}

TEST_P(GbtBuilder, BuildsEveryEventOfOrderlyLinks) {
  GbtFixture fixture(12, settings());
  fixture.start();
  for (std::uint32_t first = 0; first < 4800; first += 24) fixture.push_all(L1Id{first}, 24);
  fixture.finish();
  expect_complete(fixture, 4800);
  fixture.check_invariants();
}

TEST_P(GbtBuilder, TakesRunsOfAnyLengthAtAnyPhase) {
  GbtFixture fixture(6, settings());
  fixture.start();
  std::mt19937 random(3);
  std::vector<std::uint32_t> next(6, 0);
  while (*std::min_element(next.begin(), next.end()) < 2000) {
    for (std::size_t link = 0; link < 6; ++link) {
      const std::uint32_t lead = next[link] - *std::min_element(next.begin(), next.end());
      const std::uint32_t count = std::min<std::uint32_t>(lead < 100 ? static_cast<std::uint32_t>(1 + random() % 90) : 0,
                                                          2000 - std::min(next[link], 2000U));
      if (count == 0) continue;
      fixture.input.push({fixture.run(link, L1Id{next[link]}, count)});
      next[link] += count;
    }
  }
  fixture.finish();
  expect_complete(fixture, 2000);
}

TEST_P(GbtBuilder, MixesChunkSizesAndPadsThem) {
  GbtFixture fixture(4, settings());
  fixture.start();
  std::mt19937 random(4);
  for (std::uint32_t l1 = 0; l1 < 500; ++l1) {
    std::vector<ScriptedRun> runs;
    for (std::size_t link = 0; link < 4; ++link) runs.push_back(fixture.run(link, L1Id{l1}, 1, 8 + random() % 120));
    fixture.input.push(runs);
  }
  fixture.finish();
  expect_complete(fixture, 500);
}

TEST_P(GbtBuilder, SkippedChunksAreMissingAtOnceAndListed) {
  GbtFixture fixture(4, settings());
  fixture.start();
  fixture.push_all(L1Id{0}, 10);
  fixture.input.push({fixture.run(0, L1Id{10}, 10), fixture.run(1, L1Id{10}, 10), fixture.run(2, L1Id{10}, 10),
                      fixture.run(3, L1Id{13}, 7)});
  fixture.finish();
  const auto seen = fixture.collector.fragments();
  ASSERT_EQ(seen.size(), 20U);
  for (const SeenFragment& fragment : seen) {
    const bool hit = fragment.l1id.value >= 10 && fragment.l1id.value < 13;
    EXPECT_EQ(fragment.missing, hit ? 1U : 0U);
    EXPECT_EQ(fragment.status, hit ? fragment_status::kTimeout : 0U);
    if (hit) {
      EXPECT_EQ(fragment.missing_links, std::vector{fixture.link_id(3)});
    }
  }
  fixture.check_invariants();
}

TEST_P(GbtBuilder, ASilentLinkTimesOutOnTheInputsClockAlone) {
  GbtFixture fixture(4, settings());
  fixture.start();
  fixture.push_all(L1Id{0}, 10);
  fixture.wait_for_fragments(10);
  fixture.input.push({fixture.run(0, L1Id{10}, 5), fixture.run(1, L1Id{10}, 5), fixture.run(2, L1Id{10}, 5)});
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(fixture.collector.count(), 10U) << "the input's clock stands: nothing may time out";
  fixture.let_time_pass(15);
  // What comes now is late, and counted.
  fixture.input.push({fixture.run(3, L1Id{10}, 5)});
  fixture.push_all(L1Id{15}, 5);
  fixture.wait_for_fragments(20);
  fixture.finish();
  EXPECT_EQ(fixture.lost("late"), 5U);
  const auto seen = fixture.collector.fragments();
  for (const SeenFragment& fragment : seen) {
    EXPECT_EQ(fragment.missing, fragment.l1id.value >= 10 && fragment.l1id.value < 15 ? 1U : 0U) << fragment.l1id.value;
  }
  fixture.check_invariants();
}

TEST_P(GbtBuilder, AFullWindowClosesItsOldestInsteadOfWaiting) {
  // One link is silent while the others flood: the clock does not run, the ring does.
  GbtFixture fixture(4, settings());
  fixture.start();
  for (std::uint32_t first = 0; first < 5000; first += 50) {
    fixture.input.push({fixture.run(0, L1Id{first}, 50), fixture.run(1, L1Id{first}, 50), fixture.run(2, L1Id{first}, 50)});
  }
  fixture.finish();
  const auto seen = fixture.collector.fragments();
  ASSERT_EQ(seen.size(), 5000U);
  for (const SeenFragment& fragment : seen) {
    EXPECT_EQ(fragment.chunks, 3U);
    EXPECT_EQ(fragment.missing, 1U);
    EXPECT_TRUE(fixture.proves(fragment));
  }
  fixture.check_invariants();
}

TEST_P(GbtBuilder, DuplicatesAreCountedAndDropped) {
  GbtFixture fixture(3, settings());
  fixture.start();
  fixture.push_all(L1Id{0}, 20);
  fixture.input.push({fixture.run(1, L1Id{19}, 1), fixture.run(1, L1Id{18}, 1)});
  fixture.push_all(L1Id{20}, 5);
  fixture.finish();
  expect_complete(fixture, 25);
  EXPECT_EQ(fixture.lost("duplicate"), 2U);
  fixture.check_invariants();
}

TEST_P(GbtBuilder, AFlippedBitInOneL1IdClosesNoWindow) {
  for (std::uint32_t bit = 0; bit < 32; ++bit) {
    for (const std::uint32_t run_length : {1U, 10U}) {
      GbtFixture fixture(3, settings());
      fixture.start();
      fixture.push_all(L1Id::of(7, 100), 20);
      for (std::uint32_t at = 120; at < 160; at += run_length) {
        std::vector<ScriptedRun> runs;
        for (std::size_t link = 0; link < 3; ++link) runs.push_back(fixture.run(link, L1Id::of(7, at), run_length));
        if (at <= 133 && 133 < at + run_length) {
          auto& hurt = runs[1].chunks[133 - at];
          hurt[bit / 8] ^= std::byte{1} << (bit % 8);
        }
        fixture.input.push(runs);
      }
      fixture.finish();
      fixture.check_invariants();
      std::size_t incomplete = 0;
      std::string where;
      for (const SeenFragment& fragment : fixture.collector.fragments()) {
        incomplete += fragment.missing != 0;
        if (fragment.missing != 0)
          where += fmt::format(" {}/{}", fragment.l1id.l1(), fragment.missing_links[0] - fixture.link_id(0));
      }
      // The event itself misses the chunk. A lone chunk whose id is a small step on is believed, which costs the events between.
      EXPECT_LE(incomplete, run_length == 1 && bit < 4 ? 9U : 1U)
          << "bit " << bit << ", runs of " << run_length << ", incomplete:" << where;
      EXPECT_EQ(fixture.collector.count(), 60U) << "bit " << bit;
    }
  }
}

TEST_P(GbtBuilder, AJumpIsBelievedOnceConfirmedAndTheLinkFindsItsPlaceAgain) {
  GbtFixture fixture(3, settings());
  fixture.start();
  fixture.push_all(L1Id{0}, 100);
  // Link 2 loses 200 events and comes back one chunk at a time: the first is held until the second confirms it.
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

TEST_P(GbtBuilder, ChunksTooLargeToBeHeldStillConfirmEachOther) {
  GbtSettings mine = settings();
  mine.chunk_bytes = 40;
  GbtFixture fixture(2, mine);
  fixture.start();
  // A run that begins at a high id, one large chunk at a time.
  for (std::uint32_t l1 = 5000; l1 < 5100; ++l1)
    fixture.input.push({fixture.run(0, L1Id{l1}, 1, 9000), fixture.run(1, L1Id{l1}, 1, 9000)});
  fixture.finish();
  fixture.check_invariants();
  EXPECT_LE(fixture.lost("out_of_sequence"), 2U) << "the first of each link at most";
  EXPECT_GE(fixture.collector.count(), 99U);
}

TEST_P(GbtBuilder, ALinkThatLeavesTheWindowDoesNotDragItAlong) {
  GbtFixture fixture(3, settings());
  fixture.start();
  fixture.push_all(L1Id{0}, 100);
  for (std::uint32_t l1 = 100; l1 < 300; ++l1) {
    fixture.input.push({fixture.run(0, L1Id{l1}, 1), fixture.run(1, L1Id{l1}, 1), fixture.run(2, L1Id{l1 + 500'000}, 1)});
  }
  // The next event counter reset brings it back.
  for (std::uint32_t l1 = 0; l1 < 50; ++l1) fixture.push_all(L1Id::of(1, l1), 1);
  fixture.finish();
  fixture.check_invariants();
  std::size_t complete = 0;
  for (const SeenFragment& fragment : fixture.collector.fragments()) complete += fragment.missing == 0;
  EXPECT_EQ(fixture.collector.count(), 350U);
  EXPECT_GE(complete, 100U + (GetParam() == 1 ? 49U : 48U));
}

TEST_P(GbtBuilder, ALoneLinkThatJumpsAheadCostsTheOthersNothing) {
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
    ASSERT_EQ(seen.size(), 400U) << "no event is made of the jump";
    for (const SeenFragment& fragment : seen) {
      EXPECT_EQ(fragment.missing, fragment.l1id.value >= 100 ? 1U : 0U) << fragment.l1id.value;
      EXPECT_TRUE(fixture.proves(fragment));
    }
    EXPECT_EQ(fixture.lost("out_of_sequence"), 300U);
    EXPECT_EQ(fixture.lost("late"), 0U);
  }
}

TEST_P(GbtBuilder, LinksThatJumpTogetherAreFollowed) {
  GbtFixture fixture(5, settings());
  fixture.start();
  fixture.push_all(L1Id{0}, 100);
  for (std::uint32_t l1 = 100; l1 < 400; l1 += 10) fixture.push_all(L1Id{l1 + 500}, 10);
  fixture.finish();
  fixture.check_invariants();
  EXPECT_EQ(fixture.lost("late"), 0U);
  EXPECT_LE(fixture.lost("out_of_sequence"), 100U) << "half of the links must be there before one is believed";
  std::size_t complete = 0;
  for (const SeenFragment& fragment : fixture.collector.fragments()) complete += fragment.missing == 0;
  EXPECT_GE(complete, 350U);
}

TEST_P(GbtBuilder, ALoneLinkIsFollowedWhenTheOthersHaveLongBeenSilent) {
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
  EXPECT_GT(fixture.collector.count(), 100U) << "what the link brings is built, without the silent one";
  EXPECT_GE(fixture.lost("out_of_sequence"), 10U) << "but not at once";
}

TEST_P(GbtBuilder, ALinkThatWasSilentDuringAResetFindsItsEpochByItsNeighbours) {
  for (const std::uint32_t bits : {16U, 24U, 32U}) {
    GbtFixture fixture(3, settings(), bits);
    fixture.start();
    fixture.push_all(L1Id{0}, 350);
    for (std::uint32_t l1 = 350; l1 < 400; l1 += 10) {
      fixture.input.push({fixture.run(1, L1Id{l1}, 10), fixture.run(2, L1Id{l1}, 10)});
    }
    const auto after = [&](std::uint32_t l1) { return L1Id::of(1, l1); };
    for (std::uint32_t l1 = 0; l1 < 100; l1 += 10) {
      fixture.input.push({fixture.run(1, after(l1), 10), fixture.run(2, after(l1), 10)});
    }
    for (std::uint32_t l1 = 100; l1 < 300; l1 += 10) {
      fixture.input.push({fixture.run(1, after(l1), 10), fixture.run(2, after(l1), 10), fixture.run(0, after(l1), 10)});
    }
    fixture.finish();
    fixture.check_invariants();
    const auto seen = fixture.collector.fragments();
    EXPECT_EQ(seen.size(), 700U) << bits << " bits";
    std::size_t complete = 0;
    for (const SeenFragment& fragment : seen) {
      complete += fragment.missing == 0;
      EXPECT_TRUE(fixture.proves(fragment)) << bits << " bits, L1 id " << fragment.l1id.value;
    }
    EXPECT_EQ(complete, 550U) << bits << " bits";
  }
}

TEST_P(GbtBuilder, LateChunksOfLowIdsAreNoReset) {
  for (const std::uint32_t bits : {16U, 24U}) {
    GbtFixture fixture(2, settings(), bits);
    fixture.start();
    // Link 0 lacks 3 and 4 at first, and brings them 600 events later, one after the other.
    fixture.input.push({fixture.run(0, L1Id{0}, 3), fixture.run(1, L1Id{0}, 3)});
    fixture.input.push({fixture.run(0, L1Id{5}, 595), fixture.run(1, L1Id{3}, 597)});
    fixture.input.push({fixture.run(0, L1Id{3}, 2)});
    fixture.push_all(L1Id{600}, 400);
    fixture.finish();
    fixture.check_invariants();
    const auto seen = fixture.collector.fragments();
    EXPECT_EQ(seen.size(), 1000U) << bits << " bits";
    for (const SeenFragment& fragment : seen) EXPECT_TRUE(fixture.proves(fragment)) << "L1 id " << fragment.l1id.value;
    EXPECT_EQ(fixture.lost("late") + fixture.lost("out_of_sequence"), 2U);
  }
}

TEST_P(GbtBuilder, OfTwoChunksWithOneIdTheLaterIsBelieved) {
  GbtFixture fixture(2, settings());
  fixture.start();
  fixture.push_all(L1Id{0}, 100);
  // A flipped bit makes 101 of link 0's 100, and its true 101 follows.
  ScriptedRun hurt = fixture.run(0, L1Id{100}, 24);
  hurt.chunks[0][0] ^= std::byte{1};
  fixture.input.push({hurt, fixture.run(1, L1Id{100}, 24)});
  fixture.finish();
  fixture.check_invariants();
  EXPECT_EQ(fixture.lost("duplicate"), 1U);
  for (const SeenFragment& fragment : fixture.collector.fragments()) {
    EXPECT_EQ(fragment.missing, fragment.l1id.value == 100 ? 1U : 0U) << fragment.l1id.value;
    EXPECT_TRUE(fixture.proves(fragment)) << fragment.l1id.value;
  }
}

TEST_P(GbtBuilder, AnEventCounterResetMayCatchEventsStillOpen) {
  GbtFixture fixture(3, settings());
  fixture.start();
  fixture.push_all(L1Id::of(255, 0), 1000);
  // Links cross the reset (255 -> 0, the counter wraps) one after the other, with old events open behind them.
  fixture.input.push({fixture.run(0, L1Id::of(255, 1000), 30), fixture.run(0, L1Id::of(0, 0), 40)});
  fixture.input.push({fixture.run(1, L1Id::of(255, 1000), 30), fixture.run(1, L1Id::of(0, 0), 10)});
  fixture.input.push({fixture.run(2, L1Id::of(255, 1000), 10)});
  fixture.input.push({fixture.run(2, L1Id::of(255, 1010), 20), fixture.run(1, L1Id::of(0, 10), 30)});
  fixture.input.push({fixture.run(2, L1Id::of(0, 0), 40)});
  fixture.push_all(L1Id::of(0, 40), 24);
  fixture.finish();
  expect_complete(fixture, 1094);
  fixture.check_invariants();
}

TEST_P(GbtBuilder, AResetWithLostChunksOnTheFirstLinkCostsOnlyThose) {
  GbtFixture fixture(2, settings());
  fixture.start();
  fixture.push_all(L1Id::of(3, 0), 500);
  fixture.input.push({fixture.run(0, L1Id::of(4, 2), 18)});  // lost 500..519 of epoch 3 and 0, 1 of epoch 4
  fixture.input.push({fixture.run(1, L1Id::of(3, 500), 20), fixture.run(1, L1Id::of(4, 0), 20)});
  fixture.finish();
  fixture.check_invariants();
  const auto seen = fixture.collector.fragments();
  ASSERT_EQ(seen.size(), 540U);
  for (const SeenFragment& fragment : seen) {
    const bool hit =
        (fragment.l1id.ecr() == 3 && fragment.l1id.l1() >= 500) || (fragment.l1id.ecr() == 4 && fragment.l1id.l1() < 2);
    EXPECT_EQ(fragment.missing, hit ? 1U : 0U) << fragment.l1id.ecr() << "/" << fragment.l1id.l1();
    EXPECT_TRUE(fixture.proves(fragment));
  }
}

TEST_P(GbtBuilder, NarrowTriggerCountersWrap) {
  for (const std::uint32_t bits : {8U, 16U, 24U}) {
    GbtFixture fixture(3, settings(), bits);
    fixture.start();
    const std::uint32_t start = bits == 24 ? 0xffff80 : 0;
    const std::uint32_t events = bits == 16 ? 70'000 : 1000;
    for (std::uint32_t at = 0; at < events; at += 50) {
      std::vector<ScriptedRun> runs;
      for (std::size_t link = 0; link < 3; ++link) runs.push_back(fixture.run(link, L1Id{start + at}, 50));
      fixture.input.push(runs);
    }
    fixture.finish();
    fixture.check_invariants();
    ASSERT_EQ(fixture.collector.count(), events) << bits << " bits";
    for (const SeenFragment& fragment : fixture.collector.fragments()) {
      ASSERT_EQ(fragment.status, 0U) << bits << " bits, L1 id " << fragment.l1id.value;
    }
  }
}

TEST_P(GbtBuilder, AConsumerThatKeepsOneFragmentForEverBlocksNothing) {
  GbtSettings small = settings();
  small.buffers = 300;
  small.window = 256;
  GbtFixture fixture(4, small);
  fixture.collector.keep_first = true;
  fixture.start();
  for (std::uint32_t first = 0; first < 20'000; first += 100) fixture.push_all(L1Id{first}, 100);
  fixture.finish();
  expect_complete(fixture, 20'000);
}

TEST_P(GbtBuilder, ASliceThatOutgrowsItsBufferIsExtendedThenCut) {
  GbtSettings small = settings();
  small.chunk_bytes = 40;
  small.max_extensions = 1;
  GbtFixture fixture(4, small);
  fixture.start();
  fixture.push_all(L1Id{0}, 10);
  std::vector<ScriptedRun> runs;
  for (std::size_t link = 0; link < 4; ++link) runs.push_back(fixture.run(link, L1Id{10}, 3, 700));
  fixture.input.push(runs);
  fixture.push_all(L1Id{13}, 10);
  fixture.finish();
  fixture.check_invariants();
  for (const SeenFragment& fragment : fixture.collector.fragments()) {
    const bool large = fragment.l1id.value >= 10 && fragment.l1id.value < 13;
    EXPECT_EQ((fragment.status & fragment_status::kOverflow) != 0, large && GetParam() == 1) << fragment.l1id.value;
    for (const auto& [link, header] : fragment.headers) {
      const std::size_t whole = large ? 700 : 40;
      EXPECT_EQ((header.rodeo_status & chunk_flag::kTruncated) != 0, fragment.data.at(link).size() < whole);
    }
  }
}

TEST_P(GbtBuilder, CorruptChunksStayInTheirFragmentAndFlagIt) {
  GbtFixture fixture(3, settings(), 32, true);
  fixture.start();
  fixture.push_all(L1Id{0}, 30);
  ScriptedRun hurt = fixture.run(1, L1Id{30}, 10);
  hurt.chunks[4][20] ^= std::byte{0x10};
  ScriptedRun marked = fixture.run(2, L1Id{30}, 10);
  marked.statuses.assign(10, 0);
  marked.statuses[7] = chunk_status::kFirmwareTruncated;
  fixture.input.push({fixture.run(0, L1Id{30}, 10), hurt, marked});
  fixture.finish();
  fixture.check_invariants();
  const auto seen = fixture.collector.fragments();
  ASSERT_EQ(seen.size(), 40U);
  for (const SeenFragment& fragment : seen) {
    const bool flagged = fragment.l1id.value == 34 || fragment.l1id.value == 37;
    EXPECT_EQ(fragment.status, flagged ? fragment_status::kDataCorruption : 0U) << fragment.l1id.value;
    EXPECT_EQ(fragment.chunks, 3U);
  }
}

TEST_P(GbtBuilder, ABcidThatDiffersFlagsTheEvent) {
  GbtFixture fixture(3, settings());
  fixture.start();
  fixture.push_all(L1Id{0}, 10);
  ScriptedRun odd = fixture.run(2, L1Id{10}, 10);
  odd.chunks[3][4] ^= std::byte{1};
  fixture.input.push({fixture.run(0, L1Id{10}, 10), fixture.run(1, L1Id{10}, 10), odd});
  fixture.finish();
  for (const SeenFragment& fragment : fixture.collector.fragments()) {
    EXPECT_EQ(fragment.status, fragment.l1id.value == 13 ? fragment_status::kBcidMismatch : 0U) << fragment.l1id.value;
  }
}

TEST_P(GbtBuilder, ChunksTooShortForTheirIdAreMalformed) {
  GbtFixture fixture(2, settings());
  fixture.start();
  fixture.push_all(L1Id{0}, 10);
  ScriptedRun broken = fixture.run(1, L1Id{10}, 5);
  broken.chunks[2].resize(3);
  fixture.input.push({fixture.run(0, L1Id{10}, 5), broken});
  fixture.finish();
  fixture.check_invariants();
  EXPECT_EQ(fixture.lost("malformed"), 1U);
  EXPECT_EQ(fixture.collector.count(), 15U);
}

TEST_P(GbtBuilder, ALinkCanBeRemovedAndTakenBackWhileRunning) {
  GbtFixture fixture(3, settings());
  fixture.start();
  fixture.push_all(L1Id{0}, 20);
  fixture.wait_for_fragments(20);
  EXPECT_FALSE(fixture.builder->set_link(Fid{42}, LinkState::removed));
  ASSERT_TRUE(fixture.builder->set_link(fixture.fids[1], LinkState::removed));
  while (fixture.builder->status().links[1].state != LinkState::removed) std::this_thread::yield();
  fixture.push_all(L1Id{20}, 20);  // its chunks are counted, the events complete without it
  fixture.wait_for_fragments(40);
  ASSERT_TRUE(fixture.builder->set_link(fixture.fids[1], LinkState::active));
  while (fixture.builder->status().links[1].state != LinkState::active) std::this_thread::yield();
  fixture.push_all(L1Id{40}, 20);
  fixture.wait_for_fragments(60);
  fixture.finish();
  fixture.check_invariants();
  EXPECT_EQ(fixture.lost("link_removed"), 20U);
  for (const SeenFragment& fragment : fixture.collector.fragments()) {
    const bool without = fragment.l1id.value >= 20 && fragment.l1id.value < 40;
    EXPECT_EQ(fragment.chunks, without ? 2U : 3U) << fragment.l1id.value;
    EXPECT_EQ(fragment.missing, 0U);
  }
}

TEST_P(GbtBuilder, AnEventThatNoLinkDeliveredIsBuiltEmptyIfTheTriggerListsIt) {
  GbtSettings aligned = settings();
  aligned.trigger_list = true;
  GbtFixture fixture(3, aligned);
  fixture.start();
  fixture.push_triggers(L1Id{0}, 30);
  fixture.push_all(L1Id{0}, 10);
  fixture.push_all(L1Id{13}, 17);
  fixture.finish();
  fixture.check_invariants();
  const auto seen = fixture.collector.fragments();
  ASSERT_EQ(seen.size(), 30U);
  for (std::uint32_t i = 0; i < 30; ++i) {
    const bool empty = i >= 10 && i < 13;
    EXPECT_EQ(seen[i].l1id.value, i);
    EXPECT_EQ(seen[i].bcid, fixture.provable.trigger(L1Id{i}).bcid) << "the list knows the BCID of an event without data";
    EXPECT_EQ(seen[i].status, empty ? fragment_status::kTimeout | fragment_status::kDummy : 0U) << i;
    EXPECT_EQ(seen[i].missing, empty ? 3U : 0U);
  }
}

TEST_P(GbtBuilder, AnEventThatTheTriggerDoesNotListIsFlagged) {
  GbtSettings aligned = settings();
  aligned.trigger_list = true;
  GbtFixture fixture(3, aligned);
  fixture.start();
  fixture.push_triggers(L1Id{0}, 20);
  fixture.push_triggers(L1Id{21}, 19);
  fixture.push_all(L1Id{0}, 40);
  fixture.finish();
  fixture.check_invariants();
  for (const SeenFragment& fragment : fixture.collector.fragments()) {
    EXPECT_EQ(fragment.status, fragment.l1id.value == 20 ? fragment_status::kL1IdMismatch : 0U) << fragment.l1id.value;
  }
}

TEST_P(GbtBuilder, ANarrowCounterFollowsTheTriggersListOverAReset) {
  GbtSettings aligned = settings();
  aligned.trigger_list = true;
  GbtFixture fixture(3, aligned, 8);
  fixture.start();
  // 300 events, a reset, 100 more: the chunks carry eight bits, the list the rest.
  fixture.push_triggers(L1Id::of(5, 0), 300);
  for (std::uint32_t l1 = 0; l1 < 300; l1 += 50) fixture.push_all(L1Id::of(5, l1), 50);
  fixture.push_triggers(L1Id::of(6, 0), 100);
  for (std::uint32_t l1 = 0; l1 < 100; l1 += 50) fixture.push_all(L1Id::of(6, l1), 50);
  fixture.finish();
  fixture.check_invariants();
  const auto seen = fixture.collector.fragments();
  ASSERT_EQ(seen.size(), 400U);
  for (std::uint32_t i = 0; i < 400; ++i) {
    EXPECT_EQ(seen[i].l1id, i < 300 ? L1Id::of(5, i) : L1Id::of(6, i - 300));
    EXPECT_EQ(seen[i].status, 0U) << i;
    EXPECT_TRUE(fixture.proves(seen[i])) << i;
  }
}

TEST_P(GbtBuilder, AResetThatNobodyTellsOfIsFlagged) {
  // Eight bits and no list: after 200 events the counter starts again, which could be a jump of 56.
  GbtFixture fixture(3, settings(), 8);
  fixture.start();
  for (std::uint32_t l1 = 0; l1 < 200; l1 += 50) fixture.push_all(L1Id::of(0, l1), 50);
  for (std::uint32_t l1 = 0; l1 < 100; l1 += 50) fixture.push_all(L1Id::of(1, l1), 50);
  fixture.finish();
  fixture.check_invariants();
  std::size_t doubtful = 0;
  for (const SeenFragment& seen : fixture.collector.fragments())
    doubtful += (seen.status & fragment_status::kL1IdMismatch) != 0;
  EXPECT_EQ(doubtful, 1U);
  EXPECT_GE(fixture.builder->status().incomplete, 1U);
}

TEST_P(GbtBuilder, LinksCanBeSorted) {
  GbtSettings sorted = settings();
  sorted.sort_links = true;
  GbtFixture fixture(12, sorted);
  fixture.start();
  for (std::uint32_t first = 0; first < 240; first += 24) {
    // Links arrive last to first.
    std::vector<ScriptedRun> runs;
    for (std::size_t link = 12; link-- > 0;) runs.push_back(fixture.run(link, L1Id{first}, 24, 40 + link));
    fixture.input.push(runs);
  }
  fixture.finish();
  expect_complete(fixture, 240);
  for (const SeenFragment& fragment : fixture.collector.fragments()) {
    EXPECT_TRUE(std::is_sorted(fragment.order.begin(), fragment.order.end()));
    EXPECT_EQ(fragment.order.size(), 12U);
  }
}

class ThrowsAtFive final : public TriggerExtractor {
 public:
  explicit ThrowsAtFive(bool odd) : odd_(odd) {}
  TriggerFields fields() const override { return {.l1id_bits = 24, .has_ecr = true}; }
  std::uint32_t extract(const ChunkRun& run, std::uint32_t first, std::uint32_t n, std::uint32_t* l1ids,
                        std::uint16_t* bcids) override {
    for (std::uint32_t i = 0; i < n; ++i) {
      std::memcpy(&l1ids[i], run.chunk(first + i).data(), 4);
      bcids[i] = 0;
      if (l1ids[i] == 5) {
        if (i == 0 && odd_) throw 5;  // plug-ins may throw anything
        if (i == 0) throw std::runtime_error("five");
        return i;
      }
    }
    return n;
  }

 private:
  const bool odd_;
};

TEST(GbtBuilderPlugin, WhatAPluginThrowsCostsTheChunkItThrewAtAndIsCounted) {
  for (const bool odd : {false, true}) {
    GbtFixture fixture(2);
    BuilderContext context{.source_id = SourceId{0x610001},
                           .links = fixture.builder_links,
                           .input = &fixture.input,
                           .consumer = &fixture.collector,
                           .make_extractor = [odd] { return std::make_unique<ThrowsAtFive>(odd); },
                           .make_checker = {}};
    fixture.builder = std::make_unique<readout::GbtBuilder>(GbtSettings{.window = 1024}, context);
    fixture.start();
    fixture.push_all(L1Id{0}, 10);
    fixture.finish();
    fixture.check_invariants();
    EXPECT_EQ(fixture.lost("malformed"), 2U);
    EXPECT_EQ(fixture.collector.count(), 9U);
  }
}

INSTANTIATE_TEST_SUITE_P(Workers, GbtBuilder, ::testing::Values(1U, 2U),
                         [](const auto& param) { return std::string("W").append(std::to_string(param.param)); });

}  // namespace
}  // namespace rodeo::test
