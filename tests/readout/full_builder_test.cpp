// FULL-mode builder, case by case: one stream over links that take turns, in order and in every disorder.
#include <gtest/gtest.h>

#include <random>

#include "readout/builder/full_builder.h"
#include "readout/gbt_fixture.h"

namespace rodeo::test {
namespace {

constexpr std::size_t kChunk = 1000;

class FullFixture {
 public:
  explicit FullFixture(std::uint32_t links, std::uint32_t groups, readout::FullSettings settings = {},
                       std::uint32_t l1id_bits = 32)
      : fids(GbtFixture::make_fids(links)), input(fids), turn(links / groups), bits(l1id_bits) {
    for (std::uint32_t i = 0; i < links; ++i) builder_links.push_back({fids[i], fids[i].default_link_id(), i / turn});
    const BuilderContext context{
        .source_id = SourceId{0x610100},
        .links = builder_links,
        .input = &input,
        .consumer = &collector,
        .make_extractor = [l1id_bits] { return readout::make_field_extractor({.l1id_bits = l1id_bits}); },
        .make_checker = {}};
    builder = std::make_unique<readout::FullBuilder>(settings, context);
  }
  ~FullFixture() {
    if (running) finish();
    collector.let_go();
  }

  void start() {
    builder->start();
    running = true;
  }
  void finish() {
    input.stop();
    builder->join();
    running = false;
  }

  /// The chunk of one event of a group, on the link whose turn it is.
  ScriptedRun event(std::uint32_t group, L1Id l1id, std::size_t size = kChunk) const {
    const std::size_t link = group * turn + l1id.value % turn;
    ScriptedRun run{.fid = fids[link], .chunks = {std::vector<std::byte>(size)}, .statuses = {}};
    provable.write(run.chunks[0], fids[link].default_link_id(), l1id);
    if (bits < 32) {
      const std::uint32_t id = l1id.value & ((1U << bits) - 1);
      std::memcpy(run.chunks[0].data(), &id, 4);
    }
    return run;
  }
  void push_events(std::uint32_t group, std::uint32_t first, std::uint32_t end, std::uint32_t ecr = 0) {
    for (std::uint32_t l1 = first; l1 < end; ++l1) input.push({event(group, L1Id::of(ecr, l1))});
  }

  void push_triggers(std::uint32_t count) { input.push_triggers(triggers(count)); }
  static std::vector<std::vector<std::byte>> triggers(std::uint32_t count) {
    std::vector<std::vector<std::byte>> packets;
    for (std::uint32_t l1 = 0; l1 < count; ++l1) {
      const formats::ProvableTrigger trigger = formats::Provable(kSeed).trigger(L1Id{l1});
      formats::TtcPacket packet;
      packet.l1id = L1Id{l1};
      packet.bcid = trigger.bcid;
      packet.trigger_type = trigger.trigger_type;
      packets.emplace_back(packet.size_bytes());
      packet.write(packets.back());
    }
    return packets;
  }
  /// All chunks that were pushed are read.
  void wait_for(std::uint64_t chunks) const {
    const auto deadline = std::chrono::steady_clock::now() + patience();
    while (builder->status().chunks_received < chunks && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    EXPECT_EQ(builder->status().chunks_received, chunks);
  }

  std::uint64_t lost(std::string_view reason) const {
    for (const NamedCounter& counter : builder->status().lost) {
      if (counter.name == reason) return counter.value;
    }
    return ~std::uint64_t{0};
  }

  /// Complete events by L1 id, and the empty ones.
  void sort_out() {
    std::uint64_t lost_sum = 0;
    const FragmentBuilder::Status status = builder->status();
    for (const NamedCounter& counter : status.lost) lost_sum += counter.value;
    EXPECT_EQ(status.chunks_received, status.chunks_built + lost_sum);
    for (const SeenFragment& seen : collector.fragments()) {
      EXPECT_TRUE(seen.well_formed);
      if (seen.chunks == 0) {
        EXPECT_TRUE(empty.insert(seen.l1id).second);
        EXPECT_EQ(seen.missing + seen.removed, 1U);
        const std::uint32_t why = seen.missing != 0 ? fragment_status::kTimeout : fragment_status::kLinksRemoved;
        EXPECT_EQ(seen.status, why | fragment_status::kDummy);
        continue;
      }
      ++whole;
      for (const auto& [link, bytes] : seen.data) {
        std::vector<std::byte> expected(bytes.size());
        provable.write(expected, link, seen.l1id);
        EXPECT_TRUE(std::equal(expected.begin() + 4, expected.end(), bytes.begin() + 4)) << seen.l1id.value;
      }
    }
  }

  static constexpr std::uint64_t kSeed = 9;
  const formats::Provable provable{kSeed};
  const std::vector<Fid> fids;
  ScriptedInput input;
  FragmentCollector collector;
  const std::uint32_t turn;
  const std::uint32_t bits;
  std::vector<BuilderLink> builder_links;
  std::unique_ptr<readout::FullBuilder> builder;
  std::size_t whole = 0;
  std::set<L1Id> empty;
  bool running = false;
};

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
  // Each link brings eight of its events before the next link has its turn.
  for (std::uint32_t link = 0; link < 4; ++link) {
    for (std::uint32_t l1 = 8 + link; l1 < 40; l1 += 4) fixture.input.push({fixture.event(0, L1Id{l1})});
  }
  fixture.push_events(0, 40, 48);
  fixture.finish();
  fixture.sort_out();
  EXPECT_EQ(fixture.whole, 48U);
  EXPECT_TRUE(fixture.empty.empty());
}

// As a card sends small chunks at its highest rate: of all triggers that it holds first those of one link, then those of the next.
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

// More chunks wait than the window has room for.
TEST(FullBuilder, TheListMayComeWithTheEndOfTheRun) {
  for (const std::uint32_t links : {4U, 5U, 8U}) {
    const std::uint32_t events = 22 * links;  // fewer chunks of a link than may pass what stands still
    FullFixture fixture(links, 1, {.window = 64, .trigger_list = true});
    fixture.start();
    fixture.push_events(0, 0, events);
    fixture.wait_for(events);
    fixture.input.push_last_triggers(FullFixture::triggers(events));
    fixture.finish();
    fixture.sort_out();
    EXPECT_EQ(fixture.whole, events) << links << " links";
    EXPECT_EQ(fixture.builder->status().incomplete, 0U) << links << " links";
  }
}

TEST(FullBuilder, WhatWaitsAtTheEndOfTheRunComesInOrder) {
  FullFixture fixture(2, 1, {.window = 64});
  fixture.start();
  fixture.push_events(0, 0, 100);
  // The one link leaves out an event, and its next chunk is its last. The other goes on beyond the window.
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

// Links go and come, one by one or all at once, with flipped ids. When all are back, nothing is lost any more.
TEST(FullBuilder, AStormPassesWithoutALastingLoss) {
  constexpr std::uint32_t kLinks = 4;
  constexpr std::uint32_t kStorm = 4000;
  constexpr std::uint32_t kCalm = 1000;
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    std::mt19937 engine(seed);
    const auto random = [&](std::uint32_t below) { return static_cast<std::uint32_t>(engine() % below); };
    FullFixture fixture(kLinks, 1);
    fixture.start();
    std::vector<std::uint32_t> down(kLinks);  // until this event
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

// The turns begin anew at every seam, as in a looped recording whose events are no multiple of the links.
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
      // 200 has bits 3 and 6 set: without them it is an event that came long ago.
      EXPECT_EQ(fixture.lost("out_of_sequence") + fixture.lost("duplicate"), 1U) << links << " links, bit " << bit;
    }
  }
}

// Events go to the links in turn for `in_turn` of each 400, to any link for the others. How many are whole.
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

TEST(FullBuilder, LinksThatTakeNoTurnsLoseNothing) { EXPECT_EQ(whole_of(0, 2000), 2000U); }

TEST(FullBuilder, WhenTurnsEndAFewChunksPassForStrays) {
  // Five times habits form and end: whose turn it was is not believed before most links have gone by it.
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

// One link is off for good, so that what it brings waits, or strays. All pages of the input could be kept by that.
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
  EXPECT_FALSE(fixture.input.idle()) << "what the link brings waits";
  fixture.input.set_memory_fill(0.9);
  time_passes_until([&] { return fixture.input.idle(); });
  EXPECT_TRUE(fixture.input.idle());
  EXPECT_EQ(fixture.lost("out_of_sequence"), 100U);
  fixture.finish();
  fixture.sort_out();
  EXPECT_EQ(fixture.whole, kEvents - 100);
  EXPECT_EQ(fixture.empty.size(), 100U);
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

TEST(FullBuilder, OneDecodedListServesAllWorkersHoweverFarApart) {
  constexpr std::uint32_t kEvents = 20'000;  // more than the list lets its readers be apart
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
  EXPECT_EQ(fixture.builder->status().incomplete, kEvents) << "the other group's, all of them empty";
  EXPECT_EQ(fixture.builder->status().fragments, 2 * kEvents);
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
    EXPECT_EQ(seen.bcid, fixture.provable.trigger(seen.l1id).bcid) << "the list's";
    EXPECT_EQ(seen.headers.begin()->second.rodeo_status, seen.l1id == L1Id{50} ? chunk_flag::kBcidMismatch : 0);
  }
  EXPECT_EQ(flagged, std::vector{L1Id{50}});
  EXPECT_EQ(fixture.collector.count(), 100U);
}

TEST(FullBuilder, AnEventCounterResetMayOvertakeOldEventsOfOtherLinks) {
  FullFixture fixture(2, 1);
  fixture.start();
  fixture.push_events(0, 0, 1001, 255);  // the last is on link 0
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
