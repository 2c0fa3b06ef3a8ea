// Single runs that once had lost or wrong events.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <vector>

#include "readout/sequence_oracle.h"

namespace rodeo::test {
namespace {

struct Case {
  std::uint32_t bits = 32;
  bool full = false;
  bool listed = false;
  std::size_t links = 1;
  std::vector<std::uint32_t> epochs;
  std::function<bool(std::size_t, std::size_t)> lost = [](std::size_t, std::size_t) { return false; };  // event, link
  std::function<std::size_t(std::size_t)> turn = nullptr;
  std::function<std::uint32_t(std::size_t, std::size_t, std::uint32_t)> id = nullptr;  // event, link, true id
  double list_behind = 0;
  std::uint32_t epoch = 0;
};

Judged result_of(const Case& c) {
  Scenario s;
  s.bits = c.bits;
  s.full = c.full;
  s.listed = c.listed;
  s.links = c.links;
  s.reach = 16;
  s.window = std::bit_ceil(4 * s.reach + 2 * kScenarioStep * (c.full ? c.links : 1));
  s.timeout = 8 * s.reach + 40;
  for (std::size_t e = 0; e < c.epochs.size(); ++e) {
    for (std::uint32_t i = 0; i < c.epochs[e]; ++i) {
      s.truth.push_back(((c.epoch + static_cast<std::uint32_t>(e)) & 0xff) << 24 | i);
      s.epoch.push_back(e);
    }
  }
  s.bcids.resize(s.truth.size());
  for (std::size_t link = 0; link < c.links; ++link) {
    double last = 0;
    for (std::size_t g = 0; g < s.truth.size(); ++g) {
      if ((c.full && (c.turn ? c.turn(g) : g % c.links) != link) || c.lost(g, link)) continue;
      last = std::max(last, static_cast<double>(g + (g / 24 * 7 + link * 5) % 8) + static_cast<double>(link) * 1e-3 + 1);
      const std::uint32_t truth = c.id ? c.id(g, link, s.truth[g]) : s.truth[g];
      s.chunks.push_back({static_cast<std::uint64_t>(last * 1000), link, g, id_of(truth, c.bits), 0, 0});
    }
  }
  std::stable_sort(s.chunks.begin(), s.chunks.end(), [](const SentChunk& x, const SentChunk& y) { return x.at < y.at; });
  if (c.listed) {
    for (std::size_t g = 0; g < s.truth.size(); ++g) {
      const double at = std::max(0.0, static_cast<double>(g) + 1 + c.list_behind);
      s.list.push_back({static_cast<std::uint64_t>(at * 1000), 0, g, s.truth[g], 0, 0});
    }
  }
  return ScenarioRun(s).run();
}

void expect_all_built(const Case& c, std::uint64_t empty = 0, std::uint64_t skipped = 0) {
  const Judged judged = result_of(c);
  EXPECT_EQ(judged.lost, 0);
  EXPECT_EQ(judged.right, judged.chunks);
  EXPECT_EQ(judged.empty, empty);
  EXPECT_EQ(judged.skipped, skipped);
  EXPECT_EQ(judged.silent + judged.spurious + judged.without_fate + judged.head, 0);
}

TEST(SequenceCases, AGroupMayChangeTurnsAtASeam) {
  const Judged judged =
      result_of({.full = true, .links = 3, .epochs = {3005}, .turn = [](std::size_t g) { return g % 601 % 3; }});
  EXPECT_EQ(judged.lost, 0);
  EXPECT_EQ(judged.right, 3005);
}

TEST(SequenceCases, WhatALoneLinkLosesIsCounted) {
  for (const std::size_t lost : {64, 65}) {
    expect_all_built(
        {.full = true, .epochs = {2000}, .lost = [=](std::size_t g, std::size_t) { return g >= 500 && g < 500 + lost; }},
        lost);
  }
}

TEST(SequenceCases, WhatAllLinksLoseIsCounted) {
  for (const bool full : {true, false}) {
    const Judged judged =
        result_of({.full = full, .links = full ? 3U : 1U, .epochs = {9000}, .lost = [](std::size_t g, std::size_t) {
                     return g >= 500 && g < 5500;
                   }});
    EXPECT_EQ(judged.lost, 0);
    EXPECT_EQ(judged.right, 4000);
    EXPECT_EQ(judged.empty + judged.skipped + judged.tail, 5000);
    EXPECT_EQ(judged.silent, 0);
  }
}

TEST(SequenceCases, OneChunkInAHundredMayBeLost) {
  expect_all_built({.bits = 24, .epochs = {9000}, .lost = [](std::size_t g, std::size_t) { return g % 100 == 3; }}, 90);
}

TEST(SequenceCases, TheEndOfARunThatAGroupDoesNotBringIsNotKnown) {
  const Judged judged =
      result_of({.full = true, .links = 2, .epochs = {2000}, .lost = [](std::size_t g, std::size_t) { return g >= 1500; }});
  EXPECT_EQ(judged.right, 1500);
  EXPECT_EQ(judged.tail, 500);
}

TEST(SequenceCases, TheListMayBeAheadOrBehind) {
  for (const double behind : {-300.0, -16.0, 0.0, 16.0}) {
    for (const std::uint32_t bits : {16U, 24U, 32U}) {
      SCOPED_TRACE(behind);
      expect_all_built({.bits = bits, .listed = true, .links = 4, .epochs = {500, 700, 300, 900}, .list_behind = behind});
      expect_all_built(
          {.bits = bits, .full = true, .listed = true, .links = 2, .epochs = {500, 700, 300, 900}, .list_behind = behind});
    }
    expect_all_built({.bits = 8, .full = true, .listed = true, .links = 2, .epochs = {3000}, .list_behind = behind});
  }
}

TEST(SequenceCases, EpochsMayBeShort) {
  std::vector<std::uint32_t> epochs(60, 16);
  epochs.push_back(1);
  expect_all_built({.bits = 16, .listed = true, .links = 4, .epochs = epochs});
  expect_all_built({.bits = 32, .listed = true, .links = 4, .epochs = epochs});
  expect_all_built({.bits = 32, .links = 4, .epochs = epochs});
}

TEST(SequenceCases, LinksThatSkipMostEventsWithHiddenResetsAndTheListAreRightOrFlagged) {
  const Judged judged = result_of(
      {.bits = 8, .listed = true, .links = 4, .epochs = {100, 80, 90, 110, 70}, .lost = [](std::size_t g, std::size_t i) {
         return (g * 7919 + i * 104'729) % 100 > 26;
       }});
  EXPECT_EQ(judged.wrong + judged.wrong_incomplete, 0);
  EXPECT_LE(judged.lost, judged.chunks / 50);
}

TEST(SequenceCases, LinksMayBeSilentAndReturnTogether) {
  const auto silent = [](std::size_t g, std::size_t) { return g >= 500 && g < 800; };
  const Judged judged = result_of({.links = 4, .epochs = {2000}, .lost = silent});
  EXPECT_EQ(judged.lost, 0);
  EXPECT_EQ(judged.empty + judged.skipped, 300);
  expect_all_built({.listed = true, .links = 4, .epochs = {2000}, .lost = silent}, 300);
}

TEST(SequenceCases, AllLinksMaySkipAHundredAtOnce) {
  const Judged judged =
      result_of({.links = 6, .epochs = {2000}, .lost = [](std::size_t g, std::size_t) { return g >= 500 && g < 600; }});
  EXPECT_EQ(judged.lost, 0);
  EXPECT_EQ(judged.empty + judged.skipped, 100);
}

TEST(SequenceCases, AFlippedIdCostsItsChunk) {
  const Judged judged =
      result_of({.bits = 24, .links = 8, .epochs = {2000}, .id = [](std::size_t g, std::size_t i, std::uint32_t truth) {
                   return (g == 400 && i == 2) || (g == 900 && i == 5) ? truth ^ 1U << 22 : truth;
                 }});
  EXPECT_EQ(judged.lost, 2);
  EXPECT_EQ(judged.right, 15'998);
  EXPECT_EQ(judged.skipped, 0);
}

TEST(SequenceCases, AGroupsIdsMayWrap) {
  const Judged judged = result_of(
      {.bits = 24, .full = true, .links = 3, .epochs = {600}, .id = [](std::size_t, std::size_t, std::uint32_t truth) {
         return (truth + (1U << 24) - 300) & 0xffffff;
       }});
  EXPECT_EQ(judged.lost, 0);
  EXPECT_EQ(judged.skipped, 0);
}

TEST(SequenceCases, AWholePeriodOfIdsThatAllLinksLoseIsNotSeen) {
  const Judged judged = result_of(
      {.bits = 8, .links = 4, .epochs = {2000}, .lost = [](std::size_t g, std::size_t) { return g >= 500 && g < 756; }});
  EXPECT_EQ(judged.lost, 0);
  EXPECT_EQ(judged.empty, 0);
}

TEST(SequenceCases, TheTailOfAnEpochThatAllLinksLoseIsNotSeen) {
  const Judged judged =
      result_of({.links = 4, .epochs = {500, 500}, .lost = [](std::size_t g, std::size_t) { return g >= 480 && g < 500; }});
  EXPECT_EQ(judged.right, judged.chunks);
  EXPECT_EQ(judged.tail, 20);
}

}  // namespace
}  // namespace rodeo::test
