#include "base/id_table.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <unordered_map>

#include "rodeo/ids.h"

namespace {

using rodeo::L1Id;
using rodeo::base::IdTable;

TEST(IdTable, FindsWhatIsThere) {
  IdTable<std::uint64_t> table(2);
  table.insert(0, 7);
  table.insert(UINT64_MAX, 8);
  EXPECT_EQ(table.find(0), 7U);
  EXPECT_EQ(table.find(UINT64_MAX), 8U);
  EXPECT_EQ(table.find(1), IdTable<std::uint64_t>::kNone);
  table.erase(0);
  EXPECT_EQ(table.find(0), IdTable<std::uint64_t>::kNone);
  EXPECT_EQ(table.find(UINT64_MAX), 8U);
}

TEST(IdTable, AgreesWithAMapWhereIdsGetIntoEachOthersWay) {
  constexpr std::uint32_t kCapacity = 50;
  IdTable<std::uint64_t> table(kCapacity);
  std::unordered_map<std::uint64_t, std::uint32_t> twin;
  std::mt19937_64 random(1);
  // Eight places for sixteen ids: several ids share each place.
  const auto any = [&] { return (random() % 40 << 20) + random() % 4; };
  for (int step = 0; step < 100'000; ++step) {
    const std::uint64_t id = any();
    ASSERT_EQ(table.size(), twin.size());
    if (random() % 2 == 0) {
      ASSERT_EQ(table.erase(id), twin.erase(id) == 1);
    } else if (twin.contains(id)) {
      ASSERT_EQ(table.find(id), twin[id]);
    } else if (twin.size() < kCapacity) {
      const auto slot = static_cast<std::uint32_t>(random() % 1000);
      table.insert(id, slot);
      twin[id] = slot;
    }
    const std::uint64_t asked = any();
    const auto found = twin.find(asked);
    ASSERT_EQ(table.find(asked), found == twin.end() ? IdTable<std::uint64_t>::kNone : found->second);
  }
}

// Two sequences with the same lowest bits, like two periods of a counter. If they shared their home places, each erase would
// visit all following entries, and the test would time out.
TEST(IdTable, RowsOfIdsDoNotMeet) {
  constexpr std::uint32_t kRow = 100'000;
  constexpr std::uint64_t kApart = 1 << 24;
  IdTable<std::uint64_t> table(2 * kRow);
  const auto add = [&](std::uint64_t id) {
    table.insert(id, 1);
    table.insert(kApart + id, 2);
  };
  for (std::uint64_t id = 0; id < kRow; ++id) add(id);
  for (std::uint64_t id = kRow; id < 1'000'000; ++id) {
    ASSERT_TRUE(table.erase(id - kRow) && table.erase(kApart + id - kRow));
    add(id);
  }
  EXPECT_EQ(table.size(), 2 * kRow);
  EXPECT_EQ(table.find(1'000'000 - kRow - 1), IdTable<std::uint64_t>::kNone);
  EXPECT_EQ(table.find(kApart + 999'999), 2U);
}

TEST(IdTable, IsASetOfIdsWhateverTheyAre) {
  std::mt19937 random(1);
  IdTable<L1Id> table(100);
  std::map<std::uint32_t, std::uint32_t> twin;
  for (std::uint32_t step = 0; step < 20'000; ++step) {
    // With few low halves and epochs, ids collide often.
    const auto below = [&](unsigned n) { return static_cast<std::uint32_t>(random() % n); };
    const L1Id id = L1Id::of(below(4), 0xfffff0 + below(40));
    if (twin.contains(id.value)) {
      ASSERT_EQ(table.find(id), twin[id.value]);
      if (random() % 2 == 0) continue;
      ASSERT_TRUE(table.erase(id));
      twin.erase(id.value);
    } else {
      ASSERT_EQ(table.find(id), IdTable<L1Id>::kNone);
      ASSERT_FALSE(table.erase(id));
      if (twin.size() == 100) continue;
      table.insert(id, step);
      twin[id.value] = step;
    }
    ASSERT_EQ(table.size(), twin.size());
  }
}

// A million successive ids: if each erase moved all following ids, the test would time out.
TEST(IdTable, TheFirstOfALongRowIsTakenOutWithoutItsNeighbours) {
  constexpr std::uint32_t kIds = 1'000'000;
  IdTable<L1Id> table(kIds);
  for (std::uint32_t id = 0; id < kIds; ++id) table.insert(L1Id{id}, id);
  EXPECT_EQ(table.find(L1Id{kIds}), IdTable<L1Id>::kNone);
  for (std::uint32_t id = 0; id < kIds; ++id) {
    ASSERT_EQ(table.find(L1Id{id}), id);
    ASSERT_TRUE(table.erase(L1Id{id}));
    ASSERT_EQ(table.find(L1Id{id}), IdTable<L1Id>::kNone);
  }
  EXPECT_EQ(table.size(), 0u);
}

// The epochs are long, and the table has the end of one epoch and the begin of the next.
TEST(IdTable, EpochsDoNotMeet) {
  constexpr std::uint32_t kEpoch = 500'000, kKept = 400'000;
  IdTable<L1Id> table(kKept);
  const auto id = [](std::uint32_t number) { return L1Id::of(number / kEpoch, number % kEpoch); };
  for (std::uint32_t number = 0; number < 5 * kEpoch; ++number) {
    ASSERT_TRUE(number < kKept || table.erase(id(number - kKept)));
    table.insert(id(number), number % 7);
  }
  EXPECT_EQ(table.size(), kKept);
  EXPECT_EQ(table.find(id(5 * kEpoch - 1)), (5 * kEpoch - 1) % 7);
}

}  // namespace
