#include "dispatch/id_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace {

using namespace rodeo::dispatch;

IdSet set_of(std::vector<std::uint64_t> ids) {
  IdSet set;
  make_id_set(ids, set);
  return set;
}

std::multiset<std::uint64_t> ids_of(const IdSet& set) {
  std::multiset<std::uint64_t> ids;
  for (const auto& range : set.ranges) {
    for (std::uint32_t i = 0; i < range.count; ++i) ids.insert(range.first + i);
  }
  for (const auto& bitmap : set.bitmaps) {
    for (std::uint32_t i = 0; i < 64; ++i) {
      if ((bitmap.bits >> i & 1) != 0) ids.insert(bitmap.first + i);
    }
  }
  return ids;
}

TEST(IdSet, ARunIsARange) { EXPECT_EQ(set_of({3, 1, 2}), (IdSet{{{1, 3}}, {}})); }

TEST(IdSet, WhatLiesCloseByIsABitmap) {
  EXPECT_EQ(set_of({10, 12, 73}), (IdSet{{}, {{10, 1 | 1U << 2 | std::uint64_t{1} << 63}}}));
}

TEST(IdSet, OneAloneIsARangeOfOne) { EXPECT_EQ(set_of({10, 74}), (IdSet{{{10, 1}, {74, 1}}, {}})); }

TEST(IdSet, NothingIsNothing) { EXPECT_EQ(set_of({}), IdSet{}); }

TEST(IdSet, ARangeGoesOnWhereTheL1IdGoesRound) {
  EXPECT_EQ(set_of({0xffffff, 0x1000000}), (IdSet{{{0xffffff, 2}}, {}}));
  EXPECT_EQ(set_of({0xffffffff, 0x100000000}), (IdSet{{{0xffffffff, 2}}, {}}));
}

TEST(IdSet, NamesEachIdOnceAndNoOther) {
  std::mt19937_64 random(9);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::uint64_t> ids;
    std::set<std::uint64_t> twin;
    const std::uint64_t around = (random() % 2 << 32) + (random() % 3 == 0 ? 0xffffff80 : random() % 1000);
    const std::uint64_t spread = 1 + random() % 500;
    for (std::uint64_t i = random() % 200; i > 0; --i) {
      ids.push_back(around + random() % spread);
      twin.insert(ids.back());
    }
    ASSERT_EQ(ids_of(set_of(ids)), std::multiset<std::uint64_t>(twin.begin(), twin.end()));
  }
}

}  // namespace
