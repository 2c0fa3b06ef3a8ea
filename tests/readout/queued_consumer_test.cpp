#include "readout/consumer/queued_consumer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <semaphore>
#include <set>
#include <stdexcept>
#include <thread>

#include "base/clock.h"
#include "readout/collecting_consumer.h"
#include "readout/fragment_pool.h"

namespace rodeo::readout {
namespace {

using test::CollectingConsumer;
using test::counter_of;
using test::FragmentPool;

class FunctionConsumer final : public QueuedConsumer {
 public:
  FunctionConsumer(QueueSettings settings, std::function<void(Fragment&)> work)
      : QueuedConsumer(std::move(settings)), work_(std::move(work)) {}
  ~FunctionConsumer() override { stop(); }

 private:
  class FunctionWorker final : public Worker {
   public:
    explicit FunctionWorker(FunctionConsumer& consumer) : consumer_(consumer) {}
    void work(FragmentPtr fragment) override {
      consumer_.work_(*fragment);
      consumer_.pass_on(std::move(fragment));
    }

   private:
    FunctionConsumer& consumer_;
  };
  std::unique_ptr<Worker> make_worker(unsigned) override { return std::make_unique<FunctionWorker>(*this); }

  std::function<void(Fragment&)> work_;
};

TEST(QueuedConsumer, KeepsTheOrderWithOneThreadAndWorksOffItsQueueWhenStopped) {
  FragmentPool pool;
  {
    CollectingConsumer end;
    FunctionConsumer consumer({.name = "one", .threads = 1, .capacity = 16}, [](Fragment&) {});
    consumer.link(&end);
    consumer.start();
    for (Sequence i = 0; i < 1000; ++i) consumer.insert(pool.make(i));
    consumer.stop();
    ASSERT_EQ(end.size(), 1000u);
    for (Sequence i = 0; i < 1000; ++i) EXPECT_EQ(end[i].sequence, i);
    EXPECT_EQ(consumer.status().consumed, 1000u);
    EXPECT_EQ(consumer.status().queue_fill, 0);
  }
  EXPECT_EQ(pool.out(), 0u);
}

TEST(QueuedConsumer, LetsGoOfWhatIsQueuedAndCountsItWhenItHasToGiveUp) {
  FragmentPool pool;
  {
    std::binary_semaphore begun(0);
    std::binary_semaphore released(0);
    FunctionConsumer consumer({.name = "slow", .threads = 1, .capacity = 2}, [&](Fragment& fragment) {
      if (fragment.sequence != 0) return;
      begun.release();
      released.acquire();
    });
    consumer.start();
    consumer.insert(pool.make(0));
    begun.acquire();
    std::thread inserter([&] {
      for (Sequence i = 1; i < 10; ++i) consumer.insert(pool.make(i));  // insert() waits for room
    });
    while (consumer.status().stalls == 0) std::this_thread::yield();
    consumer.give_up();
    released.release();
    inserter.join();
    consumer.stop();
    EXPECT_EQ(consumer.status().consumed, 1U);
    EXPECT_EQ(counter_of(consumer.status().counters, "given_up"), 9U);
  }
  EXPECT_EQ(pool.out(), 0U);
}

TEST(QueuedConsumer, SharesWorkBetweenSeveralThreadsAndInserters) {
  FragmentPool pool;
  {
    CollectingConsumer end;
    FunctionConsumer consumer({.name = "many", .threads = 3, .capacity = 8}, [](Fragment&) {});
    consumer.link(&end);
    consumer.start();
    std::vector<std::thread> inserters;
    for (Sequence t = 0; t < 3; ++t) {
      inserters.emplace_back([&, t] {
        for (Sequence i = 0; i < 500; ++i) consumer.insert(pool.make(t * 500 + i));
      });
    }
    for (auto& thread : inserters) thread.join();
    consumer.stop();
    std::set<Sequence> seen;
    for (std::size_t i = 0; i < end.size(); ++i) seen.insert(end[i].sequence);
    EXPECT_EQ(seen.size(), 1500u);
  }
  EXPECT_EQ(pool.out(), 0u);
}

TEST(QueuedConsumer, WithoutThreadsWorksInTheThreadsThatInsert) {
  FragmentPool pool;
  {
    std::atomic<int> others{0};
    const auto main_thread = std::this_thread::get_id();
    FunctionConsumer consumer({.name = "inline", .threads = 0}, [&](Fragment&) {
      if (std::this_thread::get_id() != main_thread) ++others;
    });
    consumer.start();
    for (Sequence i = 0; i < 10; ++i) consumer.insert(pool.make(i));
    EXPECT_EQ(consumer.status().consumed, 10u) << "the work ends before insert() returns";
    EXPECT_EQ(others, 0);
    std::vector<std::thread> inserters;
    for (int t = 0; t < 12; ++t) {  // more threads than seats
      inserters.emplace_back([&] {
        for (Sequence i = 0; i < 100; ++i) consumer.insert(pool.make(i));
      });
    }
    for (auto& thread : inserters) thread.join();
    EXPECT_EQ(others, 1200);
    EXPECT_EQ(consumer.status().consumed, 1210u);
  }
  EXPECT_EQ(pool.out(), 0u);
}

TEST(QueuedConsumer, HoldsBackTheInserterWhileItsQueueIsFullAndCountsTheStall) {
  FragmentPool pool;
  {
    std::counting_semaphore<> may_work(0);
    FunctionConsumer consumer({.name = "slow", .threads = 1, .capacity = 4}, [&](Fragment&) { may_work.acquire(); });
    consumer.start();
    std::atomic<int> inserted{0};
    std::thread inserter([&] {
      for (Sequence i = 0; i < 10; ++i) {
        consumer.insert(pool.make(i));
        ++inserted;
      }
    });
    while (inserted < 5) std::this_thread::yield();  // the queue has four, and the consumer processes one
    EXPECT_EQ(inserted, 5);
    EXPECT_EQ(consumer.status().queue_fill, 1.0);
    may_work.release(10);
    inserter.join();
    consumer.stop();
    EXPECT_EQ(consumer.status().consumed, 10u);
    EXPECT_GE(consumer.status().stalls, 1u);
  }
  EXPECT_EQ(pool.out(), 0u);
}

TEST(QueuedConsumer, CountsWhatItsWorkThrowsAndLosesNoMemory) {
  FragmentPool pool;
  {
    CollectingConsumer end;
    FunctionConsumer consumer({.name = "throwing"}, [](Fragment& fragment) {
      if (fragment.sequence % 2 == 1) throw std::runtime_error("odd");
    });
    consumer.link(&end);
    consumer.start();
    for (Sequence i = 0; i < 100; ++i) consumer.insert(pool.make(i));
    consumer.stop();
    EXPECT_EQ(end.size(), 50u);
    EXPECT_EQ(consumer.status().consumed, 100u);
    EXPECT_EQ(counter_of(consumer.status().counters, "exceptions"), 50u);
  }
  EXPECT_EQ(pool.out(), 0u);
}

TEST(QueuedConsumer, RecordsTheTimeFromHandOverToItsTakingTheFragment) {
  FragmentPool pool;
  FunctionConsumer consumer({.name = "timed"}, [](Fragment&) {});
  consumer.start();
  FragmentPtr untimed = pool.make(0);
  consumer.insert(std::move(untimed));
  FragmentPtr old = pool.make(1);
  old->handed_over_ns = base::steady_now_ns() - 5'000'000'000U;
  consumer.insert(std::move(old));
  consumer.stop();
  EXPECT_GE(counter_of(consumer.status().counters, "latency_p50_us"), 5'000'000u) << "one without a time does not count";
  EXPECT_GE(counter_of(consumer.status().counters, "latency_max_us"), 5'000'000u);
}

TEST(QueuedConsumer, GivesBackWhatIsQueuedEvenIfItWasNeverStarted) {
  FragmentPool pool;
  {
    FunctionConsumer consumer({.name = "idle", .threads = 1, .capacity = 8}, [](Fragment&) {});
    for (Sequence i = 0; i < 5; ++i) consumer.insert(pool.make(i));
    EXPECT_EQ(pool.out(), 5u);
  }
  EXPECT_EQ(pool.out(), 0u);
}

}  // namespace
}  // namespace rodeo::readout
