// GBT builder, case by case: orderly links, and links with every kind of fault.
#include <gtest/gtest.h>

#include <random>

#include <fmt/core.h>

#include "readout/gbt_fixture.h"

namespace rodeo::test {
namespace {

using readout::GbtSettings;

class GbtBuilder : public GbtWithWorkers {};

TEST_P(GbtBuilder, BuildsEveryEventOfOrderlyLinks) {
  GbtFixture fixture(12, settings());
  fixture.start();
  for (std::uint32_t first = 0; first < 4800; first += 24) fixture.push_all(L1Id{first}, 24);
  fixture.finish();
  expect_complete(fixture, 4800);
  fixture.check_invariants();
}

TEST(GbtBuilderWorkers, AnyNumberOfLinksIsSplitOverAnyNumberOfWorkers) {
  for (std::uint32_t links = 1; links <= 9; ++links) {
    for (std::uint32_t workers = 1; workers <= links; ++workers) {
      SCOPED_TRACE(fmt::format("{} links, {} workers", links, workers));
      GbtSettings settings;
      settings.workers = workers;
      settings.window = 1024;
      GbtFixture fixture(links, settings);
      fixture.start();
      fixture.push_all(L1Id{0}, 48);
      fixture.finish();
      expect_complete(fixture, 48);
    }
  }
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
  EXPECT_EQ(fixture.collector.count(), 10U) << "the input's clock is stopped: nothing may time out";
  fixture.let_time_pass(15);
  // Chunks of these events come too late now, and are counted.
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
  // One link is silent while the others send much. The clock is stopped, but the ring of events fills.
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

// The majority decides the event's BCID, in any order of workers and links; chunks that differ are flagged.
TEST_P(GbtBuilder, ChunksWhoseBcidDiffersFromThatOfMostAreMarked) {
  GbtFixture fixture(5, settings());
  fixture.start();
  fixture.push_all(L1Id{0}, 10);
  for (const auto& [event, odd] : {std::pair{10U, std::set{0U}}, {11U, {4U}}, {12U, {0U, 3U}}, {13U, {0U, 1U, 4U}}}) {
    std::vector<ScriptedRun> runs;
    for (std::uint32_t link = 0; link < 5; ++link) {
      runs.push_back(fixture.run(link, L1Id{event}, 1));
      if (odd.contains(link)) runs.back().chunks[0][4] ^= static_cast<std::byte>(link + 1);  // each flips different bits
    }
    fixture.input.push(runs);
  }
  fixture.finish();
  fixture.check_invariants();
  for (const SeenFragment& fragment : fixture.collector.fragments()) {
    const std::uint32_t event = fragment.l1id.value;
    std::set<std::uint32_t> marked;
    for (std::uint32_t link = 0; link < 5; ++link) {
      if (fragment.headers.at(fixture.link_id(link)).rodeo_status == chunk_flag::kBcidMismatch) marked.insert(link);
    }
    const std::set<std::uint32_t> expected = event == 10   ? std::set{0U}
                                             : event == 11 ? std::set{4U}
                                             : event == 12 ? std::set{0U, 3U}
                                             : event == 13 ? std::set{0U, 1U, 2U, 3U, 4U}  // no BCID has a majority
                                                           : std::set<std::uint32_t>{};
    EXPECT_EQ(marked, expected) << event;
    EXPECT_EQ(fragment.bcid, fixture.provable.trigger(fragment.l1id).bcid) << event;
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
  fixture.push_all(L1Id{20}, 20);  // the builder counts the removed link's chunks, and completes events without it
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
    EXPECT_EQ(fragment.status, without ? fragment_status::kLinksRemoved : 0U);
    EXPECT_EQ(fragment.removed_links, without ? std::vector{fixture.link_id(1)} : std::vector<std::uint32_t>{});
    EXPECT_EQ(fragment.global_id, fragment.l1id.value);
  }
  EXPECT_EQ(fixture.builder->status().incomplete, 0U) << "no awaited link is missing";
  EXPECT_EQ(fixture.builder->status().links[1].left_out, 20U);
}

// An event that the link has skipped lacks the link. An event that is open at the removal is built without the link.
TEST_P(GbtBuilder, EventsThatAreOpenWhenALinkIsRemovedGoWithoutIt) {
  GbtFixture fixture(4, settings());
  fixture.start();
  fixture.push_all(L1Id{0}, 10);
  for (const std::uint32_t link : {0U, 1U, 2U}) fixture.input.push({fixture.run(link, L1Id{10}, 20)});
  fixture.input.push({fixture.run(3, L1Id{12}, 3)});  // the link skips 10 and 11, sends 12 to 14, then nothing
  fixture.wait_for_fragments(15);
  ASSERT_TRUE(fixture.builder->set_link(fixture.fids[3], LinkState::removed));
  fixture.wait_for_fragments(30);
  fixture.finish();
  fixture.check_invariants();
  for (const SeenFragment& fragment : fixture.collector.fragments()) {
    const std::uint32_t event = fragment.l1id.value;
    const std::vector last{fixture.link_id(3)};
    const std::vector<std::uint32_t> none;
    EXPECT_EQ(fragment.missing_links, event == 10 || event == 11 ? last : none) << event;
    EXPECT_EQ(fragment.removed_links, event >= 15 ? last : none) << event;
  }
  const FragmentBuilder::Link link = fixture.builder->status().links[3];
  EXPECT_EQ(link.missing, 2U);
  EXPECT_EQ(link.left_out, 15U);
}

TEST_P(GbtBuilder, BitmapsHaveALinkWhereTheConfigurationHasIt) {
  GbtFixture fixture(70, settings());
  fixture.start();
  fixture.push_all(L1Id{0}, 5);
  fixture.wait_for_fragments(5);
  for (const std::uint32_t link : {0U, 34U, 69U})
    ASSERT_TRUE(fixture.builder->set_link(fixture.fids[link], LinkState::removed));
  for (const std::uint32_t link : {0U, 34U, 69U})
    while (fixture.builder->status().links[link].state != LinkState::removed) std::this_thread::yield();
  std::vector<ScriptedRun> runs;
  for (std::uint32_t link = 0; link < 70; ++link) {
    if (link != 33 && link != 35) runs.push_back(fixture.run(link, L1Id{5}, 5));
  }
  fixture.input.push(runs);
  fixture.finish();
  fixture.check_invariants();
  for (const SeenFragment& fragment : fixture.collector.fragments()) {
    if (fragment.l1id.value < 5) continue;
    EXPECT_EQ(fragment.missing_links, (std::vector{fixture.link_id(33), fixture.link_id(35)}));
    EXPECT_EQ(fragment.removed_links, (std::vector{fixture.link_id(0), fixture.link_id(34), fixture.link_id(69)}));
  }
}

TEST_P(GbtBuilder, LinksCanBeSorted) {
  GbtSettings sorted = settings();
  sorted.sort_links = true;
  GbtFixture fixture(12, sorted);
  fixture.start();
  for (std::uint32_t first = 0; first < 240; first += 24) {
    // Links arrive in reverse order.
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

/// Throws for every chunk of L1 id 5 and, if requested, when asked for the trigger type of L1 id 7.
class ThrowsAtFive final : public TriggerExtractor {
 public:
  ThrowsAtFive(bool odd, bool typed) : odd_(odd), typed_(typed) {}
  TriggerFields fields() const override { return {.l1id_bits = 24, .has_ecr = true, .has_trigger_type = typed_}; }
  std::uint32_t extract(const ChunkRun& run, std::uint32_t first, std::uint32_t n, std::uint32_t* l1ids,
                        std::uint16_t* bcids) override {
    for (std::uint32_t i = 0; i < n; ++i) {
      l1ids[i] = l1id_of(run.chunk(first + i));
      bcids[i] = 0;
      if (l1ids[i] != 5) continue;
      if (odd_) throw 5;  // plug-ins may throw anything
      throw std::runtime_error("five");
    }
    return n;
  }
  std::uint8_t trigger_type(std::span<const std::byte> chunk) override {
    if (l1id_of(chunk) == 7) throw std::runtime_error("seven");
    return 1;
  }

 private:
  static std::uint32_t l1id_of(std::span<const std::byte> chunk) {
    std::uint32_t l1id = 0;
    std::memcpy(&l1id, chunk.data(), sizeof l1id);
    return l1id;
  }

  const bool odd_;
  const bool typed_;
};

TEST(GbtBuilderPlugin, WhatAPluginThrowsCostsTheChunkItThrewAtAndIsCounted) {
  for (const bool odd : {false, true}) {
    GbtFixture fixture(2);
    BuilderContext context{.source_id = SourceId{0x610001},
                           .links = fixture.builder_links,
                           .input = &fixture.input,
                           .consumer = &fixture.collector,
                           .make_extractor = [odd] { return std::make_unique<ThrowsAtFive>(odd, true); },
                           .make_checker = {}};
    fixture.builder = std::make_unique<readout::GbtBuilder>(GbtSettings{.window = 1024}, context);
    fixture.start();
    fixture.push_all(L1Id{0}, 100);
    fixture.finish();
    fixture.check_invariants();
    EXPECT_EQ(fixture.lost("plugin_threw"), 2U);
    EXPECT_EQ(fixture.lost("malformed"), 0U);
    ASSERT_EQ(fixture.collector.count(), 100U);  // the event has lost both chunks and is built empty
    for (const SeenFragment& fragment : fixture.collector.fragments()) {
      EXPECT_EQ(fragment.chunks, fragment.l1id.value == 5 ? 0U : 2U) << fragment.l1id.value;
      if (fragment.l1id.value == 5) continue;
      EXPECT_EQ(fragment.status, fragment.l1id.value == 7 ? fragment_status::kDataCorruption : 0U) << fragment.l1id.value;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Workers, GbtBuilder, ::testing::Values(1U, 2U),
                         [](const auto& param) { return std::string("W").append(std::to_string(param.param)); });

}  // namespace
}  // namespace rodeo::test
