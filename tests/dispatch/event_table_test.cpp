#include "dispatch/event_table.h"

#include <gtest/gtest.h>

namespace {

using rodeo::dispatch::EventTable;

// Two rows that have the same lowest bits, as two periods of a counter do: if they were at home in the same places, each erase would walk over all that
// follows, and this would take longer than any test may.
TEST(EventTable, RowsOfIdsDoNotMeet) {
  constexpr std::uint32_t kRow = 100'000;
  constexpr std::uint64_t kApart = 1 << 24;
  EventTable table(2 * kRow);
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
  EXPECT_EQ(table.find(1'000'000 - kRow - 1), EventTable::kNone);
  EXPECT_EQ(table.find(kApart + 999'999), 2U);
}

}  // namespace
