// The set of ids in a recorder.
#include "farm/recorder/sparse_id_set.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace {

TEST(SparseIdSet, KnowsWhatWasAddedAndNothingElse) {
  rodeo::farm::SparseIdSet ids;
  std::set<std::uint64_t> twin;
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t id = (i % 2 == 0 ? 0x1'ffff'f000 : 0) + random() % 20'000;
    EXPECT_EQ(ids.add(id), twin.insert(id).second);
  }
  EXPECT_EQ(ids.size(), twin.size());
  for (std::uint64_t id = 0; id < 20'100; ++id) EXPECT_EQ(ids.contains(id), twin.contains(id)) << id;
  EXPECT_FALSE(ids.contains(~std::uint64_t{0}));
}

}  // namespace
