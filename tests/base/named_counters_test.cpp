#include "base/named_counters.h"

#include <gtest/gtest.h>

namespace rodeo::base {
namespace {

TEST(NamedCounters, AreFoundAndAddedUpByName) {
  std::vector<NamedCounter> counters{{"late", 2}};
  add_counter(counters, {"late", 3});
  add_counter(counters, {"lost", 7});
  counter_named(counters, "cut") = 1;
  ASSERT_EQ(counters.size(), 3U);
  EXPECT_EQ(counter_value(counters, "late"), 5U);
  EXPECT_EQ(counter_value(counters, "lost"), 7U);
  EXPECT_EQ(counter_value(counters, "cut"), 1U);
  EXPECT_EQ(counter_value(counters, "none", 9), 9U);
  EXPECT_EQ(find_counter(counters, "none"), nullptr);
}

}  // namespace
}  // namespace rodeo::base
