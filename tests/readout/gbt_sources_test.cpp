// A GBT worker that reads several cards in any order gives up no event for which another card still has data to read.
#include <gtest/gtest.h>

#include <random>

#include <fmt/core.h>

#include "readout/gbt_fixture.h"

namespace rodeo::test {
namespace {

using readout::GbtSettings;

constexpr std::uint32_t kLinks = 12;

// Link i belongs to card i % cards, so that every worker reads all cards.
std::vector<std::uint32_t> cards_of(std::uint32_t links, std::uint32_t cards) {
  std::vector<std::uint32_t> made;
  for (std::uint32_t i = 0; i < links; ++i) made.push_back(i % cards);
  return made;
}

class GbtSources : public GbtWithWorkers {
 protected:
  GbtFixture two_cards() const { return GbtFixture(kLinks, settings(), 32, false, cards_of(kLinks, 2)); }
};

// Pages with all links of one card.
void push_card(GbtFixture& fixture, std::uint32_t card, std::uint32_t first, std::uint32_t end, std::uint32_t each = 24,
               std::uint32_t cards = 2, std::uint32_t silent_link = kLinks) {
  for (std::uint32_t at = first; at < end; at += each) {
    std::vector<ScriptedRun> runs;
    for (std::uint32_t link = card; link < kLinks; link += cards) {
      if (link != silent_link) runs.push_back(fixture.run(link, L1Id{at}, std::min(each, end - at)));
    }
    fixture.input.push(runs);
  }
}

TEST_P(GbtSources, ACardThatIsReadFarAheadOfTheOtherWaitsForIt) {
  GbtFixture fixture = two_cards();
  for (const std::uint32_t card : {0U, 1U}) push_card(fixture, card, 0, 10'000);
  fixture.start();
  fixture.wait_for_fragments(10'000);
  fixture.finish();
  expect_complete(fixture, 10'000);
  fixture.check_invariants();
}

TEST_P(GbtSources, LongRunsWaitInTheirMiddle) {
  GbtFixture fixture = two_cards();
  for (const std::uint32_t card : {0U, 1U}) push_card(fixture, card, 0, 12'000, 400);
  fixture.start();
  fixture.finish();
  expect_complete(fixture, 12'000);
}

TEST_P(GbtSources, FewBuffersAreNoReasonToGiveUpEvents) {
  GbtSettings small = settings();
  small.buffers = 600;
  GbtFixture fixture(kLinks, small, 32, false, cards_of(kLinks, 2));
  for (const std::uint32_t card : {0U, 1U}) push_card(fixture, card, 0, 5000);
  fixture.start();
  fixture.finish();
  expect_complete(fixture, 5000);
}

// The readers read each card to its end before the next. All links jump, except one link of each card.
TEST_P(GbtSources, AJumpOfAllLinksWithFewBuffersLosesNothingOfHealthyLinks) {
  constexpr std::uint32_t kEvents = 1500;
  for (const std::uint64_t buffers : {48U, 300U}) {
    for (const L1Id to : {L1Id{kEvents + 700}, L1Id{kEvents + 5000}, L1Id{1'000'000}, L1Id::of(1, 0)}) {
      for (const bool liars : {false, true}) {
        SCOPED_TRACE(fmt::format("{} buffers, to {:#010x}, {}", buffers, to.value, liars ? "two links lie" : "all right"));
        GbtSettings small = settings();
        small.buffers = buffers;
        GbtFixture fixture(kLinks, small, 32, false, cards_of(kLinks, 2));
        const auto lies = [&](std::uint32_t link) { return liars && (link == 1 || link == 2); };
        for (const std::uint32_t card : {0U, 1U}) {
          for (const bool there : {false, true}) {
            for (std::uint32_t at = 0; at < kEvents; at += 20) {
              std::vector<ScriptedRun> runs;
              for (std::uint32_t link = card; link < kLinks; link += 2) {
                const std::uint32_t first = there && !lies(link) ? to.value : there ? kEvents : 0;
                runs.push_back(fixture.run(link, L1Id{first + at}, 20));
              }
              fixture.input.push(runs);
            }
          }
        }
        fixture.start();
        fixture.finish();
        fixture.check_invariants();
        std::size_t healthy = 0;
        for (SeenFragment& fragment : fixture.collector.fragments()) {
          EXPECT_TRUE(fixture.proves(fragment));
          for (const std::uint32_t link : {1U, 2U}) fragment.data.erase(fixture.link_id(link));
          healthy += fragment.data.size();
        }
        EXPECT_EQ(healthy, (kLinks - 2) * 2 * kEvents);
        if (!liars) {
          EXPECT_EQ(fixture.builder->status().chunks_built, kLinks * 2 * kEvents);
        }
      }
    }
  }
}

TEST_P(GbtSources, ADeadLinkOfOneCardCostsTheOthersNothing) {
  GbtFixture fixture = two_cards();
  for (const std::uint32_t card : {0U, 1U}) push_card(fixture, card, 0, 10'000, 24, 2, 3);
  fixture.start();
  fixture.finish();
  const auto seen = fixture.collector.fragments();
  ASSERT_EQ(seen.size(), 10'000U);
  for (const SeenFragment& fragment : seen) {
    ASSERT_EQ(fragment.chunks, kLinks - 1) << fragment.l1id.value;
    ASSERT_TRUE(fixture.proves(fragment));
  }
  fixture.check_invariants();
}

TEST_P(GbtSources, ADeadCardIsWaitedForUntilItsTimeIsOutAndThenNoMore) {
  GbtFixture fixture = two_cards();
  push_card(fixture, 0, 0, 5000);
  fixture.start();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(fixture.collector.count(), 0U) << "the clock is stopped: the other card may have the same events";
  EXPECT_FALSE(fixture.input.idle());
  fixture.let_time_pass(5000);
  // The card comes back, and the worker waits for it as before.
  for (const std::uint32_t card : {1U, 0U}) push_card(fixture, card, 5000, 5048);
  fixture.wait_for_fragments(5048);
  for (const std::uint32_t card : {0U, 1U}) push_card(fixture, card, 5048, 15'000);
  fixture.finish();
  const auto seen = fixture.collector.fragments();
  ASSERT_EQ(seen.size(), 15'000U);
  fixture.check_invariants();
  for (const SeenFragment& fragment : seen) {
    ASSERT_EQ(fragment.chunks, fragment.l1id.value < 5000 ? kLinks / 2 : kLinks) << fragment.l1id.value;
    ASSERT_TRUE(fixture.proves(fragment));
  }
  fixture.check_invariants();
}

TEST_P(GbtSources, ACardThatIsBehindAndGoesOnIsNotLate) {
  GbtFixture fixture = two_cards();
  push_card(fixture, 0, 0, 3000);
  fixture.start();
  // In total far more time than the time-out passes, but less in each silence of the other card.
  std::uint64_t now = 1;
  for (std::uint32_t at = 0; at < 3000; at += 10) {
    for (int i = 0; i < 3; ++i) {
      fixture.input.set_clock(now += 1'000'000);
      std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
    push_card(fixture, 1, at, at + 10);
    fixture.wait_for_fragments(at);
  }
  fixture.finish();
  expect_complete(fixture, 3000);
}

TEST_P(GbtSources, ACardThatBringsNothingSensibleHoldsNobodyUp) {
  GbtFixture fixture = two_cards();
  push_card(fixture, 0, 0, 5000);
  // One card repeats the same event. The clock is stopped.
  for (std::uint32_t page = 0; page < 1000; ++page) push_card(fixture, 1, 7, 31);
  fixture.start();
  fixture.wait_for_fragments(3000);
  fixture.finish();
  const auto seen = fixture.collector.fragments();
  ASSERT_EQ(seen.size(), 5000U);
  for (const SeenFragment& fragment : seen) ASSERT_GE(fragment.chunks, kLinks / 2) << fragment.l1id.value;
  fixture.check_invariants();
}

TEST_P(GbtSources, ACardThatEndsEarlyHoldsNobodyUp) {
  GbtFixture fixture = two_cards();
  push_card(fixture, 0, 0, 5000);
  push_card(fixture, 1, 0, 120);
  fixture.start();
  fixture.finish();
  const auto seen = fixture.collector.fragments();
  ASSERT_EQ(seen.size(), 5000U);
  for (const SeenFragment& fragment : seen)
    ASSERT_EQ(fragment.chunks, fragment.l1id.value < 120 ? kLinks : kLinks / 2) << fragment.l1id.value;
  fixture.check_invariants();
}

TEST_P(GbtSources, ACardWhoseLinksAreRemovedIsNotWaitedFor) {
  GbtFixture fixture = two_cards();
  for (std::uint32_t link = 1; link < kLinks; link += 2) fixture.builder->set_link(fixture.fids[link], LinkState::removed);
  push_card(fixture, 0, 0, 5000);
  fixture.start();
  fixture.wait_for_fragments(4000);
  fixture.finish();
  const auto seen = fixture.collector.fragments();
  ASSERT_EQ(seen.size(), 5000U);
  for (const SeenFragment& fragment : seen) {
    EXPECT_EQ(fragment.chunks, kLinks / 2);
    EXPECT_EQ(fragment.status, fragment_status::kLinksRemoved);
    EXPECT_EQ(fragment.removed, kLinks / 2);
    EXPECT_EQ(fragment.missing, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Workers, GbtSources, ::testing::Values(1, 2, 3));

// Random numbers of cards, random sizes and orders of pages - each card is read to its end first -, resets, and one link
// that loses, repeats and flips chunks at random: all other chunks are in their fragments.
class GbtSourcesProperty : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(GbtSourcesProperty, OrderOfReadingCostsNothing) {
  std::mt19937 engine(GetParam());
  const auto random = [&](std::uint32_t below) { return static_cast<std::uint32_t>(engine() % below); };
  const std::uint32_t cards = 2 + random(3);
  constexpr std::uint32_t kTriggers = 4000;
  std::vector<L1Id> triggers;
  std::uint32_t ecr = 0;
  std::uint32_t l1 = 0;
  for (std::uint32_t i = 0; i < kTriggers; ++i) {
    if (l1 > 700 && random(400) == 0) {
      ++ecr;
      l1 = 0;
    }
    triggers.push_back(L1Id::of(ecr, l1++));
  }
  GbtSettings settings;
  settings.workers = 1 + random(3);
  settings.window = 1024;
  GbtFixture fixture(kLinks, settings, 32, false, cards_of(kLinks, cards));
  const bool early = random(2) == 0;
  if (early) fixture.start();
  const std::uint32_t bad = random(kLinks);
  std::vector<std::uint32_t> next(cards, 0);
  while (*std::min_element(next.begin(), next.end()) < kTriggers) {
    const std::uint32_t card = random(cards);
    const std::uint32_t end = std::min(kTriggers, next[card] + 1 + random(200));
    std::vector<ScriptedRun> runs;
    for (std::uint32_t link = card; link < kLinks; link += cards) {
      ScriptedRun run{.fid = fixture.fids[link], .chunks = {}, .statuses = {}};
      for (std::uint32_t at = next[card]; at < end; ++at) {
        std::uint32_t id = triggers[at].value;
        if (link == bad && at > 200) {
          if (random(20) == 0) continue;
          if (random(20) == 0) id = random(2) == 0 ? id ^ (1U << (10 + random(12))) : id - random(5);
        }
        run.chunks.push_back(fixture.chunk(link, L1Id{id}));
      }
      if (!run.chunks.empty()) runs.push_back(std::move(run));
    }
    if (!runs.empty()) fixture.input.push(runs);
    next[card] = end;
  }
  if (!early) fixture.start();
  fixture.finish();
  fixture.check_invariants();
  std::map<std::uint32_t, std::size_t> whole;
  for (SeenFragment& fragment : fixture.collector.fragments()) {
    fragment.data.erase(fixture.link_id(bad));
    ASSERT_TRUE(fixture.proves(fragment));
    if (!fragment.data.empty()) whole[fragment.l1id.value] += fragment.data.size();
  }
  ASSERT_EQ(whole.size(), triggers.size());
  for (const L1Id l1id : triggers) ASSERT_EQ(whole[l1id.value], kLinks - 1) << "L1 id " << l1id.value;
}

INSTANTIATE_TEST_SUITE_P(Trials, GbtSourcesProperty, ::testing::Range(1U, 41U));

}  // namespace
}  // namespace rodeo::test
