// Books of several ROBs together, and requests that wait for fragments.
#include "readout/retention/retention.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "readout/fragment_pool.h"
#include "readout/retention/waiting_requests.h"

namespace rodeo::readout {
namespace {

using formats::GlobalIdRange;

class RetentionTest : public testing::Test {
 protected:
  void take(std::size_t rob, std::uint64_t id) {
    FragmentPtr fragment = pool_.make(id);
    retention_.book(rob).keep(fragment, 0);
  }

  test::FragmentPool pool_;
  Retention retention_{std::vector<SourceId>{{0x610001}, {0x610002}}, {.most_fragments = 64}};
};

TEST_F(RetentionTest, ARobIsKnownByItsSourceId) {
  EXPECT_EQ(retention_.rob(SourceId{0x610002}), 1u);
  EXPECT_EQ(retention_.rob(SourceId{0x610003}), std::nullopt);
}

TEST_F(RetentionTest, AClearIsForAllRobs) {
  for (std::uint64_t id = 1; id <= 20; ++id) take(id % 2, id);
  for (std::uint64_t id = 10; id <= 20; ++id) take((id + 1) % 2, id);
  retention_.clear({.ranges = {{1, 5}, {12, 2}}, .bitmaps = {{15, 0b101}}}, 0);
  EXPECT_EQ(retention_.holdings(0, 100).ranges, (std::vector<GlobalIdRange>{{6, 6}, {14, 1}, {16, 1}, {18, 3}}));
  EXPECT_EQ(retention_.counts().cleared, 5u + 2u * 2u + 2u * 2u);
}

TEST_F(RetentionTest, HoldingsAreWhatAnyRobHasInPieces) {
  EXPECT_EQ(retention_.holdings(0, 10), formats::HoldingsReply{});
  for (const std::uint64_t id : {1, 2, 3, 7, 9}) take(0, id);
  for (const std::uint64_t id : {4, 8, 20}) take(1, id);
  const formats::HoldingsReply all = retention_.holdings(0, 10);
  EXPECT_EQ(all.ranges, (std::vector<GlobalIdRange>{{1, 4}, {7, 3}, {20, 1}}));
  EXPECT_EQ(all.newest, 20u);
  EXPECT_FALSE(all.more);
  const formats::HoldingsReply some = retention_.holdings(2, 2);
  EXPECT_EQ(some.ranges, (std::vector<GlobalIdRange>{{2, 3}, {7, 3}}));
  EXPECT_TRUE(some.more);
  EXPECT_EQ(retention_.holdings(10, 2).ranges, (std::vector<GlobalIdRange>{{20, 1}}));
}

TEST_F(RetentionTest, TheFullestRobIsTheFill) {
  for (std::uint64_t id = 0; id < 32; ++id) take(1, id);
  take(0, 0);
  EXPECT_EQ(retention_.fill(), 0.5);
  EXPECT_EQ(retention_.size(), 33u);
  retention_.release_all();
  EXPECT_EQ(retention_.counts().left_over, 33u);
  EXPECT_EQ(pool_.out(), 0u);
}

class WaitingRequestsTest : public testing::Test {
 protected:
  void add(std::uint64_t client, std::uint64_t number, std::uint32_t id, std::uint64_t until_ns) {
    WaitingRequest request{.client = client, .number = number, .id = id, .until_ns = until_ns, .robs = {0, 1}};
    waiting_.add(request);
  }
  std::set<std::uint64_t> numbers_of(std::uint32_t id) {
    std::set<std::uint64_t> numbers;
    waiting_.for_each_of(id, [&](const WaitingRequest& one) { return numbers.insert(one.number), true; });
    return numbers;
  }

  WaitingRequests waiting_{4};
};

TEST_F(WaitingRequestsTest, ThoseOfOneIdAreFoundWhenItComes) {
  add(1, 10, 5, 100);
  add(1, 11, 6, 100);
  add(2, 12, 5, 100);
  EXPECT_EQ(numbers_of(5), (std::set<std::uint64_t>{10, 12}));
  EXPECT_EQ(numbers_of(5), std::set<std::uint64_t>{});
  EXPECT_EQ(waiting_.size(), 1u);
}

TEST_F(WaitingRequestsTest, WhoIsNotAnsweredWaitsOn) {
  add(1, 10, 5, 100);
  add(1, 11, 5, 100);
  waiting_.for_each_of(5, [](const WaitingRequest& one) { return one.number == 11; });
  EXPECT_EQ(waiting_.size(), 1u);
  EXPECT_EQ(numbers_of(5), std::set<std::uint64_t>{10});
}

TEST_F(WaitingRequestsTest, TheirNumberIsBounded) {
  for (std::uint64_t i = 0; i < 4; ++i) add(1, i, static_cast<std::uint32_t>(i), 100);
  EXPECT_TRUE(waiting_.full());
  EXPECT_TRUE(waiting_.drop(1, 2));
  EXPECT_FALSE(waiting_.drop(1, 2));
  EXPECT_FALSE(waiting_.drop(2, 1));
  EXPECT_FALSE(waiting_.full());
}

TEST_F(WaitingRequestsTest, ThoseThatHaveWaitedLongEnoughAreFoundAmongAll) {
  add(1, 1, 1, 300);
  add(1, 2, 2, 100);
  waiting_.for_each([](const WaitingRequest& one) { return one.until_ns <= 100; });
  EXPECT_EQ(waiting_.size(), 1u);
  EXPECT_EQ(numbers_of(1), std::set<std::uint64_t>{1});
}

TEST_F(WaitingRequestsTest, AgreeWithAListOfThem) {
  std::mt19937 random(7);
  std::vector<std::pair<std::uint32_t, std::uint64_t>> twin;  // id, number
  for (std::uint64_t step = 0; step < 5000; ++step) {
    const auto id = static_cast<std::uint32_t>(random() % 3);
    switch (random() % 3) {
      case 0:
        ASSERT_EQ(waiting_.full(), twin.size() == 4);
        if (waiting_.full()) break;
        add(1, step, id, step);
        twin.emplace_back(id, step);
        break;
      case 1: {
        const std::uint64_t bit = random() % 2;
        std::set<std::uint64_t> expected, found;
        std::erase_if(twin, [&](const auto& one) {
          return one.first == id && one.second % 2 == bit && expected.insert(one.second).second;
        });
        waiting_.for_each_of(
            id, [&](const WaitingRequest& one) { return one.number % 2 == bit && found.insert(one.number).second; });
        ASSERT_EQ(found, expected);
        break;
      }
      default:
        if (twin.empty()) break;
        ASSERT_TRUE(waiting_.drop(1, twin[step % twin.size()].second));
        twin.erase(twin.begin() + static_cast<std::ptrdiff_t>(step % twin.size()));
    }
    ASSERT_EQ(waiting_.size(), twin.size());
  }
}

}  // namespace
}  // namespace rodeo::readout
