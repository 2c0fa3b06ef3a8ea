#include "dispatch/id_table.h"

#include <gtest/gtest.h>

#include <random>
#include <unordered_map>
#include <vector>

namespace {

using rodeo::dispatch::IdTable;

TEST(IdTable, FindsWhatIsThere) {
  IdTable table(2);
  table.insert(0, 7);
  table.insert(UINT64_MAX, 8);
  EXPECT_EQ(table.find(0), 7U);
  EXPECT_EQ(table.find(UINT64_MAX), 8U);
  EXPECT_EQ(table.find(1), IdTable::kNone);
  table.erase(0);
  EXPECT_EQ(table.find(0), IdTable::kNone);
  EXPECT_EQ(table.find(UINT64_MAX), 8U);
}

TEST(IdTable, HasNoLongWaysWhereIdsFollowEachOther) {
  constexpr std::uint32_t kCapacity = 200'000;
  IdTable table(kCapacity);
  for (std::uint32_t i = 0; i < kCapacity; ++i) table.insert(i, i);
  // If each erase walked over all that follows, this would take longer than any test may.
  for (std::uint64_t id = kCapacity; id < 3'000'000; ++id) {
    table.erase(id - kCapacity);
    table.insert(id, static_cast<std::uint32_t>(id % kCapacity));
  }
  EXPECT_EQ(table.find(3'000'000 - kCapacity - 1), IdTable::kNone);
  EXPECT_EQ(table.find(2'999'999), 2'999'999U % kCapacity);
}

TEST(IdTable, AgreesWithAMapWhereEverythingCollides) {
  constexpr std::uint32_t kCapacity = 50;
  IdTable table(kCapacity);
  std::unordered_map<std::uint64_t, std::uint32_t> twin;
  std::vector<std::uint64_t> ids;
  std::mt19937_64 random(1);
  for (int step = 0; step < 100'000; ++step) {
    // Two event counter periods, and a few places that many ids want.
    const std::uint64_t id = (random() % 3 << 24) | (random() % 40 * 64 + random() % 4);
    if (twin.contains(id)) {
      table.erase(id);
      twin.erase(id);
    } else if (twin.size() < kCapacity) {
      const auto slot = static_cast<std::uint32_t>(random() % 1000);
      table.insert(id, slot);
      twin[id] = slot;
    }
    const std::uint64_t asked = (random() % 3 << 24) | (random() % 40 * 64 + random() % 4);
    const auto found = twin.find(asked);
    ASSERT_EQ(table.find(asked), found == twin.end() ? IdTable::kNone : found->second);
  }
}

}  // namespace
