#include "base/id_table.h"

#include <gtest/gtest.h>

#include <random>
#include <unordered_map>

namespace {

// A few places that many ids want, around the end of the table.
struct Crowded {
  std::uint64_t operator()(std::uint64_t id) const { return id % 8 - 4; }
};

using IdTable = rodeo::base::IdTable<std::uint64_t, Crowded>;

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

TEST(IdTable, AgreesWithAMapWhereEverythingCollides) {
  constexpr std::uint32_t kCapacity = 50;
  IdTable table(kCapacity);
  std::unordered_map<std::uint64_t, std::uint32_t> twin;
  std::mt19937_64 random(1);
  for (int step = 0; step < 100'000; ++step) {
    const std::uint64_t id = random() % 120;
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
    const std::uint64_t asked = random() % 120;
    const auto found = twin.find(asked);
    ASSERT_EQ(table.find(asked), found == twin.end() ? IdTable::kNone : found->second);
  }
}

}  // namespace
