#include "dispatch/event_table.h"

#include <gtest/gtest.h>

namespace {

using rodeo::dispatch::EventTable;

TEST(EventTable, HasNoLongWaysWhereIdsFollowEachOther) {
  constexpr std::uint32_t kCapacity = 200'000;
  EventTable table(kCapacity);
  for (std::uint32_t i = 0; i < kCapacity; ++i) table.insert(i, i);
  // If each erase walked over all that follows, this would take longer than any test may.
  for (std::uint64_t id = kCapacity; id < 3'000'000; ++id) {
    table.erase(id - kCapacity);
    table.insert(id, static_cast<std::uint32_t>(id % kCapacity));
  }
  EXPECT_EQ(table.find(3'000'000 - kCapacity - 1), EventTable::kNone);
  EXPECT_EQ(table.find(2'999'999), 2'999'999U % kCapacity);
}

}  // namespace
