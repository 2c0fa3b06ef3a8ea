// Rings and queues: no element lost or doubled, order kept, full and empty reported.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "base/bounded_queue.h"
#include "base/spsc_ring.h"

namespace {

using rodeo::base::BoundedQueue;
using rodeo::base::SpscRing;

TEST(SpscRing, RefusesWhenFullAndKeepsTheOrder) {
  SpscRing<int> ring(4);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(ring.try_push(int{i}));
  EXPECT_FALSE(ring.try_push(4));
  int value = -1;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(ring.try_pop(value));
    EXPECT_EQ(value, i);
  }
  EXPECT_FALSE(ring.try_pop(value));
}

TEST(SpscRing, HandsEveryValueToTheOtherThreadInOrder) {
  constexpr int kValues = 50'000;
  SpscRing<int> ring(64);
  std::thread producer([&] {
    for (int i = 0; i < kValues;) {
      if (ring.try_push(int{i}))
        ++i;
      else
        std::this_thread::yield();
    }
  });
  int wrong = 0;
  for (int expected = 0; expected < kValues;) {
    int value = -1;
    if (!ring.try_pop(value)) {
      std::this_thread::yield();
      continue;
    }
    wrong += value != expected++;
  }
  producer.join();
  EXPECT_EQ(wrong, 0);
}

// Pushes and pops between the two reads in size() must not make the size larger than the capacity.
template <typename Queue>
void is_never_more_than_full() {
  Queue queue(2);
  std::atomic<bool> done{false};
  std::thread producer([&] {
    while (!done) (void)queue.try_push(1);
  });
  std::thread consumer([&] {
    int value = 0;
    while (!done) (void)queue.try_pop(value);
  });
  std::size_t largest = 0;
  for (int look = 0; look < 1'000'000; ++look) largest = std::max(largest, queue.size());
  done = true;
  producer.join();
  consumer.join();
  EXPECT_LE(largest, 2U);
}

TEST(SpscRing, IsNeverMoreThanFull) { is_never_more_than_full<SpscRing<int>>(); }
TEST(BoundedQueue, IsNeverMoreThanFull) { is_never_more_than_full<BoundedQueue<int>>(); }

TEST(BoundedQueue, RefusesWhenFull) {
  BoundedQueue<int> queue(2);
  EXPECT_TRUE(queue.try_push(1));
  EXPECT_TRUE(queue.try_push(2));
  EXPECT_FALSE(queue.try_push(3));
  int value = 0;
  EXPECT_TRUE(queue.try_pop(value));
  EXPECT_EQ(value, 1);
  EXPECT_TRUE(queue.try_push(3));
}

TEST(BoundedQueue, DeliversEachValueOnceAmongManyThreads) {
  constexpr int kPerProducer = 50'000;
  BoundedQueue<int> queue(128);
  std::array<std::vector<int>, 2> taken;
  std::atomic<int> left{2 * kPerProducer};
  std::vector<std::thread> threads;
  for (int p = 0; p < 2; ++p) {
    threads.emplace_back([&, p] {
      for (int i = 0; i < kPerProducer;) {
        if (queue.try_push(p * kPerProducer + i))
          ++i;
        else
          std::this_thread::yield();
      }
    });
    threads.emplace_back([&, p] {
      int value = 0;
      while (left.load() > 0) {
        if (queue.try_pop(value)) {
          taken[static_cast<std::size_t>(p)].push_back(value);
          --left;
        } else {
          std::this_thread::yield();
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  std::vector<int> seen(2 * kPerProducer, 0);
  for (const auto& list : taken)
    for (int value : list) ++seen[static_cast<std::size_t>(value)];
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), 2 * kPerProducer);
}

}  // namespace
