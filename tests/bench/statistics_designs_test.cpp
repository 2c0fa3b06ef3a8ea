// Every design of the statistics gives the right counts, errors included, also with readers during the counting.
#include "bench/network/statistics_designs.h"

#include <gtest/gtest.h>

#include <thread>

#include "bench/network/statistics_bench.h"

namespace rodeo::bench {
namespace {

template <typename Design>
class StatisticsDesign : public ::testing::Test {};
using Designs = ::testing::Types<PulledStatistics, PushedStatistics, CentralStatistics, QueuedStatistics>;
TYPED_TEST_SUITE(StatisticsDesign, Designs);

TYPED_TEST(StatisticsDesign, ComesToWhatTheThreadsCounted) {
  constexpr std::size_t kThreads = 2, kLinks = 3;
  constexpr std::uint64_t kPages = 20'000;  // more records than fit into a queue
  TypeParam design(kThreads, kLinks);
  std::atomic<int> at_work{kThreads};
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (std::uint64_t page = 0; page < kPages; ++page) {
        auto& thread = design.thread(i);
        thread.link(0).count(
            {.size = 40, .count = 2, .status = page % 2 == 0 ? chunk_status::kOk : chunk_status::kFirmwareCrc});
        thread.link(2).count({.size = 7, .count = 1, .link = 2, .more_follows = true});
        thread.link(0).count({.size = 1, .count = static_cast<std::uint32_t>(1 + i)});
        design.thread(i).page_is_over();
      }
      at_work.fetch_sub(1);
    });
  }
  std::uint64_t seen = 0;
  while (at_work.load() > 0) {
    design.collect();
    EXPECT_GE(design.sum().chunks, seen);
    seen = design.sum().chunks;
  }
  threads.clear();
  design.collect();
  LinkTally sum;
  for (std::size_t i = 0; i < kThreads; ++i) {
    EXPECT_EQ(design.thread(i).link(0).number(), (3 + i) * kPages);
    EXPECT_EQ(design.thread(i).link(2).number(), 0u);
    EXPECT_EQ(design.at(i, 0), (LinkTally{(3 + i) * kPages, (81 + i) * kPages, kPages}));
    EXPECT_EQ(design.at(i, 1), LinkTally{});
    EXPECT_EQ(design.at(i, 2), (LinkTally{0, 7 * kPages, 0}));
    for (std::size_t link = 0; link < kLinks; ++link) sum += design.at(i, link);
  }
  EXPECT_EQ(design.sum(), sum);
}

TEST(UpperLimitOfMedian, IsTheTwentiethOfThirty) {
  std::vector<double> values;
  for (int i = 30; i > 0; --i) values.push_back(i);
  EXPECT_EQ(upper_limit_of_median(values), 20);  // P(at most 19 heads of 30) = 0.951
}

TEST(UpperLimitOfMedian, OfFewIsTheMost) {
  EXPECT_EQ(upper_limit_of_median({3, 1, 2, 4}), 4);
  EXPECT_EQ(upper_limit_of_median({7}), 7);
  EXPECT_EQ(upper_limit_of_median({}), 0);
}

}  // namespace
}  // namespace rodeo::bench
