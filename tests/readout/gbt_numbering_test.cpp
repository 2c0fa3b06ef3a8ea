// GBT builder: how it handles the ids that links give their chunks - flipped bits, resets, narrow counters - with and
// without the trigger's own list.
#include <gtest/gtest.h>

#include <random>

#include <fmt/core.h>

#include "readout/gbt_fixture.h"

namespace rodeo::test {
namespace {

using formats::payload_id;
using readout::GbtSettings;

class GbtNumbering : public GbtWithWorkers {};

// Global ids and L1 ids of the fragments; the ids start just below a wrap of 24 bits.
void expect_global_ids(GbtFixture& fixture, std::uint64_t first, std::uint32_t l1id_mask) {
  fixture.start();
  fixture.push_all(payload_id(first), 400);
  fixture.finish();
  const auto fragments = fixture.collector.fragments();
  ASSERT_EQ(fragments.size(), 400U);
  for (std::uint64_t i = 0; i < 400; ++i) {
    EXPECT_EQ(fragments[i].global_id, first + i);
    EXPECT_EQ(fragments[i].l1id.value, (first + i) & l1id_mask);
    EXPECT_EQ(fragments[i].status, 0U);
  }
}

TEST_P(GbtNumbering, GlobalIdsGoOnOverAWrapOfTheL1Id) {
  for (const std::uint32_t bits : {4U, 8U, 16U, 24U}) {
    GbtFixture fixture(3, settings(), bits);
    // Only the front end's counter gives the first id. Narrow counters restart below their own wrap.
    const std::uint64_t first = bits == 24 ? 0xffffffU - 100 : (1U << bits) - 3;
    expect_global_ids(fixture, first, 0xffffffU);
  }
}

TEST_P(GbtNumbering, GlobalIdsGoOnOverAWrapWhileTheResetByteStandsStill) {
  GbtFixture fixture(3, settings());
  fixture.start();
  for (const auto& [first, count] :
       {std::pair{L1Id::of(5, 0xffffff - 99), 100U}, {L1Id::of(5, 0), 200U}, {L1Id::of(6, 0), 100U}})
    fixture.push_all(first, count);
  fixture.finish();
  const auto fragments = fixture.collector.fragments();
  ASSERT_EQ(fragments.size(), 400U);
  EXPECT_EQ(fragments[99].global_id, 0x05ffffffU);
  EXPECT_EQ(fragments[100].global_id, 0x06000000U);
  EXPECT_EQ(fragments[100].l1id, L1Id::of(5, 0));
  EXPECT_EQ(fragments[299].global_id, 0x060000c7U);
  EXPECT_EQ(fragments[300].global_id, 0x07000000U) << "the reset byte changes later";
  EXPECT_EQ(fragments[300].l1id, L1Id::of(6, 0));
}

TEST_P(GbtNumbering, ACounterOf32BitsHasNoResetsAndGoesOnOverItsWrap) {
  GbtFixture fixture(3, settings(), 32, false, {}, 32);
  expect_global_ids(fixture, 0xffffffffU - 100, 0xffffffffU);
  GbtFixture before(3, settings(), 32, false, {}, 32);
  expect_global_ids(before, 0x05ffffffU - 100, 0xffffffffU);
}

TEST_P(GbtNumbering, AFlippedBitInOneL1IdClosesNoWindow) {
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
      // The event lacks the chunk. The builder believes a lone chunk with a slightly larger id and loses the events between.
      EXPECT_LE(incomplete, run_length == 1 && bit < 4 ? 9U : 1U)
          << "bit " << bit << ", runs of " << run_length << ", incomplete:" << where;
      EXPECT_EQ(fixture.collector.count(), 60U) << "bit " << bit;
    }
  }
}

TEST_P(GbtNumbering, ChunksTooLargeToBeHeldStillConfirmEachOther) {
  GbtSettings mine = settings();
  mine.chunk_bytes = 40;
  GbtFixture fixture(2, mine);
  fixture.start();
  // The run begins at a high id, with one large chunk at a time.
  for (std::uint32_t l1 = 5000; l1 < 5100; ++l1)
    fixture.input.push({fixture.run(0, L1Id{l1}, 1, 9000), fixture.run(1, L1Id{l1}, 1, 9000)});
  fixture.finish();
  fixture.check_invariants();
  EXPECT_LE(fixture.lost("out_of_sequence"), 2U) << "the first of each link at most";
  EXPECT_GE(fixture.collector.count(), 99U);
}

// The builder could follow these ids, but would close the events before the other links come.
// If a run does not begin near 0, its first ids wait for confirmation, or for the end of the run.
TEST_P(GbtNumbering, ARunOfOneEventIsBuiltWhereverItsIdIs) {
  for (const std::uint32_t id : {0U, 1000U, 5U << 24, (5U << 24) + 1000}) {
    GbtFixture fixture(4, settings());
    fixture.start();
    fixture.push_all(L1Id{id}, 1);
    fixture.finish();
    fixture.check_invariants();
    expect_complete(fixture, 1);
  }
}

TEST_P(GbtNumbering, TheOnlyChunkOfALinkIsBuiltWhereverTheRunBegins) {
  GbtSettings patient = settings();  // the time-out is longer than any pause of the workers
  patient.timeout = std::chrono::hours{1};
  GbtFixture fixture(4, patient);
  fixture.start();
  fixture.push_all(L1Id{5U << 24}, 1);
  std::uint64_t now = 1;
  for (std::uint32_t l1 = 1; l1 < 50; ++l1) {
    fixture.let_workers_catch_up(now);
    fixture.input.push({fixture.run(0, L1Id{(5U << 24) + l1}, 1), fixture.run(3, L1Id{(5U << 24) + l1}, 1)});
  }
  fixture.finish();
  fixture.check_invariants();
  EXPECT_EQ(fixture.builder->status().chunks_built, 102U) << "the first chunks of two links came late, or never";
}

// Half of the links are silent, from the beginning or for long. They do not contradict the agreement of the others.
TEST_P(GbtNumbering, ALinkThatWasSilentDuringAResetFindsItsEpochByItsNeighbours) {
  for (const std::uint32_t bits : {16U, 24U, 32U}) {
    GbtFixture fixture(4, settings(), bits);  // each link has a neighbour in its worker
    fixture.start();
    fixture.push_all(L1Id{0}, 350);
    for (std::uint32_t l1 = 350; l1 < 400; l1 += 10) {
      fixture.input.push({fixture.run(1, L1Id{l1}, 10), fixture.run(2, L1Id{l1}, 10), fixture.run(3, L1Id{l1}, 10)});
    }
    const auto after = [&](std::uint32_t l1) { return L1Id::of(1, l1); };
    for (std::uint32_t l1 = 0; l1 < 100; l1 += 10) {
      fixture.input.push({fixture.run(1, after(l1), 10), fixture.run(2, after(l1), 10), fixture.run(3, after(l1), 10)});
    }
    for (std::uint32_t l1 = 100; l1 < 300; l1 += 10) {
      fixture.input.push({fixture.run(1, after(l1), 10), fixture.run(2, after(l1), 10), fixture.run(3, after(l1), 10),
                          fixture.run(0, after(l1), 10)});
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

TEST_P(GbtNumbering, LinksThatSkipMostEventsAreFollowedAndFlippedBitsAreNot) {
  constexpr std::uint32_t kEvents = 4000;
  GbtFixture fixture(6, settings());
  fixture.start();
  fixture.push_all(L1Id{0}, 1);
  std::mt19937 random(11);
  std::uint64_t sent = 6;
  std::uint64_t flipped = 0;
  for (std::uint32_t l1 = 1; l1 < kEvents; ++l1) {
    std::vector<ScriptedRun> runs;
    for (std::size_t link = 0; link < 6; ++link) {
      if (link < 4 && random() % 30 != 0) continue;  // two links send all events
      const bool flip = link < 4 && l1 > 1000 && random() % 10 == 0;
      runs.push_back(fixture.run(link, L1Id{flip ? l1 ^ 1U << 20 : l1}, 1));
      flipped += flip ? 1 : 0;
      ++sent;
    }
    fixture.input.push(runs);
  }
  fixture.finish();
  fixture.check_invariants();
  ASSERT_GT(flipped, 10U);
  std::uint64_t built = 0;
  for (const SeenFragment& fragment : fixture.collector.fragments()) {
    EXPECT_LT(fragment.l1id.value, kEvents) << "a flipped bit makes no event";
    EXPECT_TRUE(fixture.proves(fragment)) << fragment.l1id.value;
    built += fragment.chunks;
  }
  EXPECT_EQ(fixture.collector.count(), kEvents);
  // The first long steps of each link wait for a confirmation, which may come too late.
  EXPECT_LE(sent - built - flipped, 4U * 2 + flipped);
}

TEST_P(GbtNumbering, LateChunksOfLowIdsAreNoReset) {
  for (const std::uint32_t bits : {16U, 24U}) {
    GbtFixture fixture(2, settings(), bits);
    fixture.start();
    // Link 0 skips events 3 and 4, and sends them 600 events later.
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

TEST_P(GbtNumbering, OfTwoChunksWithOneIdTheLaterIsBelieved) {
  GbtFixture fixture(2, settings());
  fixture.start();
  fixture.push_all(L1Id{0}, 100);
  // Link 0 sends 101 in place of 100 because of a flipped bit. Its true 101 follows.
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

TEST_P(GbtNumbering, AnEventCounterResetMayCatchEventsStillOpen) {
  GbtFixture fixture(3, settings());
  fixture.start();
  fixture.push_all(L1Id::of(255, 0), 1000);
  // Links cross the reset from 255 to 0, where the reset counter wraps, at different times. Older events are open then.
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

TEST_P(GbtNumbering, AResetWithLostChunksOnTheFirstLinkCostsOnlyThose) {
  GbtFixture fixture(2, settings());
  fixture.start();
  fixture.push_all(L1Id::of(3, 0), 500);
  fixture.input.push({fixture.run(0, L1Id::of(4, 2), 18)});  // the link has lost 500..519 of epoch 3, and 0 and 1 of epoch 4
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

TEST_P(GbtNumbering, NarrowTriggerCountersWrap) {
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

TEST_P(GbtNumbering, AnEventThatNoLinkDeliveredIsBuiltEmptyIfTheTriggerListsIt) {
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

TEST_P(GbtNumbering, AnEventThatTheTriggerDoesNotListIsFlagged) {
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

TEST_P(GbtNumbering, ANarrowCounterFollowsTheTriggersListOverAReset) {
  GbtSettings aligned = settings();
  aligned.trigger_list = true;
  GbtFixture fixture(3, aligned, 8);
  fixture.start();
  // 300 events, a reset, and 100 more events. The chunks have eight bits of the id, and the list has the others.
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

TEST_P(GbtNumbering, AResetThatNobodyTellsOfIsFlagged) {
  // Ids have eight bits, and there is no list. After 200 events the counter restarts, which looks like a jump of 56.
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

INSTANTIATE_TEST_SUITE_P(Workers, GbtNumbering, ::testing::Values(1U, 2U),
                         [](const auto& param) { return std::string("W").append(std::to_string(param.param)); });

}  // namespace
}  // namespace rodeo::test
