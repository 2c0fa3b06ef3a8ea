// FairShares with a clock of the test: which members wait for others, and which do not.
#include "emulator/fair_shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace rodeo::emulator {
namespace {

constexpr std::uint64_t kMicrosecond = 1'000;
constexpr std::uint64_t kMillisecond = 1'000'000;

FairShares::Settings two_processors() { return {.processors = 2, .threads_each = 1, .look_every = 10, .may_be_ahead = 100}; }

testing::AssertionResult near(std::int64_t a, std::int64_t b, std::int64_t most) {
  if (std::abs(a - b) <= most) return testing::AssertionSuccess();
  return testing::AssertionFailure() << a << " and " << b << " are more than " << most << " apart";
}

/// Members that do pieces of work at times of their own clocks, on a common time axis.
class Workers {
 public:
  Workers(FairShares& shares, const std::vector<std::uint64_t>& ns_a_piece) : shares_(shares) {
    for (const std::uint64_t ns : ns_a_piece) workers_.push_back({&shares.join(), ns});
  }
  ~Workers() {
    for (const Worker& worker : workers_) shares_.leave(*worker.member);
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Runs the member that is due first, until the time is over.
  void run(std::uint64_t ns) {
    const std::uint64_t end = now_ns_ + ns;
    for (Worker& worker : workers_) worker.next_ns = std::max(worker.next_ns, now_ns_);
    for (;;) {
      Worker& worker = *std::ranges::min_element(workers_, {}, &Worker::next_ns);
      if (worker.next_ns >= end) break;
      now_ns_ = worker.next_ns;
      step(worker);
    }
    now_ns_ = end;
  }
  std::int64_t done(std::size_t index) const { return static_cast<std::int64_t>(workers_[index].done); }
  std::int64_t waits(std::size_t index) const { return static_cast<std::int64_t>(workers_[index].waits); }
  /// From now on the thread of this member always has a processor.
  void satisfy(std::size_t index) { workers_[index].satisfied = true; }
  void set_pace(std::size_t index, std::uint64_t ns_a_piece) { workers_[index].ns_a_piece = ns_a_piece; }
  void rest(std::size_t index) {
    shares_.rest(*workers_[index].member);
    workers_[index].next_ns = ~std::uint64_t{0} >> 1;
  }
  void wake(std::size_t index) { workers_[index].next_ns = now_ns_; }

 private:
  struct Worker {
    FairShares::Member* member;
    std::uint64_t ns_a_piece;
    std::uint64_t next_ns = 0;
    std::uint64_t done = 0;
    std::uint64_t waits = 0;
    unsigned waited = 0;  // calls that waited since the last piece
    bool satisfied = false;
  };
  /// Other members wait half of the time for a processor.
  std::uint64_t denied_ns(const Worker& worker) const { return worker.satisfied ? 0 : now_ns_ / 2; }
  void step(Worker& worker) {
    bool ahead = false;
    if (worker.waited > 0) {
      ahead = shares_.look(*worker.member, now_ns_, denied_ns(worker));
    } else {
      ++worker.done;
      ahead = shares_.worked(*worker.member, 1) && shares_.look(*worker.member, now_ns_, denied_ns(worker));
    }
    if (ahead && worker.waited < FairShares::kMostWaits) {
      ++worker.waited;
      ++worker.waits;
      worker.next_ns += std::chrono::nanoseconds(FairShares::kWait).count();
    } else {
      worker.waited = 0;
      worker.next_ns += worker.ns_a_piece;
    }
  }

  FairShares& shares_;
  std::vector<Worker> workers_;
  std::uint64_t now_ns_ = kMillisecond;
};

TEST(FairShares, WhoeverIsFasterWaitsForThoseThatCompete) {
  FairShares shares(two_processors());
  Workers workers(shares, {10 * kMicrosecond, 15 * kMicrosecond, 25 * kMicrosecond});
  workers.run(1000 * kMillisecond);
  EXPECT_TRUE(near(workers.done(0), workers.done(2), 120));
  EXPECT_TRUE(near(workers.done(1), workers.done(2), 120));
  EXPECT_TRUE(near(workers.done(2), 40'000, 10));
  EXPECT_EQ(workers.waits(2), 0);
}

TEST(FairShares, NobodyWaitsWhereThereAreProcessorsEnough) {
  FairShares::Settings settings = two_processors();
  settings.processors = 3;
  FairShares shares(settings);
  Workers workers(shares, {10 * kMicrosecond, 15 * kMicrosecond, 25 * kMicrosecond});
  workers.run(100 * kMillisecond);
  EXPECT_EQ(workers.done(0), 10'000);
  EXPECT_EQ(workers.waits(0) + workers.waits(1), 0);
}

TEST(FairShares, WhoIsSlowerByFarHoldsNobodyUp) {
  FairShares shares(two_processors());
  Workers workers(shares, {10 * kMicrosecond, 10 * kMicrosecond, 100 * kMicrosecond});
  workers.run(100 * kMillisecond);
  EXPECT_EQ(workers.waits(0) + workers.waits(1), 0);
  EXPECT_EQ(workers.done(0), 10'000);
}

TEST(FairShares, WhoGetsAProcessorWheneverItIsReadyHoldsNobodyUp) {
  FairShares shares(two_processors());
  Workers workers(shares, {10 * kMicrosecond, 10 * kMicrosecond, 20 * kMicrosecond});
  workers.satisfy(2);
  workers.run(100 * kMillisecond);
  EXPECT_EQ(workers.waits(0) + workers.waits(1), 0);
  EXPECT_EQ(workers.done(0), 10'000);
}

TEST(FairShares, WhoRestsHoldsNobodyUpAndIsOwedNothing) {
  FairShares shares(two_processors());
  Workers workers(shares, {10 * kMicrosecond, 10 * kMicrosecond, 20 * kMicrosecond});
  workers.run(20 * kMillisecond);
  workers.rest(2);
  const std::int64_t before = workers.done(0);
  const std::int64_t waited = workers.waits(0) + workers.waits(1);
  workers.run(100 * kMillisecond);
  EXPECT_TRUE(near(workers.done(0) - before, 10'000, 2));
  EXPECT_EQ(workers.waits(0) + workers.waits(1), waited);
  // It is back, as fast as the others; it does not catch up on the missed work.
  workers.set_pace(2, 10 * kMicrosecond);
  workers.wake(2);
  const std::int64_t back = workers.done(2);
  const std::int64_t then = workers.done(0);
  workers.run(100 * kMillisecond);
  EXPECT_TRUE(near(workers.done(0) - then, workers.done(2) - back, 120));
  EXPECT_GT(workers.done(0) - then, 9'000);
}

TEST(FairShares, WhatWasDoneAloneIsNotHeldAgainstAMemberThatComesBack) {
  FairShares shares(two_processors());
  Workers workers(shares, {10 * kMicrosecond, 10 * kMicrosecond, 10 * kMicrosecond});
  workers.rest(1);
  workers.rest(2);
  workers.run(300 * kMillisecond);
  workers.rest(0);
  workers.wake(1);
  workers.wake(2);
  workers.run(20 * kMillisecond);
  workers.wake(0);
  const std::int64_t before = workers.done(0);
  workers.run(100 * kMillisecond);
  EXPECT_GT(workers.done(0) - before, 9'000);
  EXPECT_TRUE(near(workers.done(1), workers.done(2), 120));
}

TEST(FairShares, WhoStopsWithoutAWordHoldsOthersUpForMillisecondsOnly) {
  FairShares shares(two_processors());
  Workers workers(shares, {10 * kMicrosecond, 10 * kMicrosecond, 10 * kMicrosecond});
  workers.run(20 * kMillisecond);
  workers.set_pace(2, 1'000'000 * kMillisecond);
  const std::int64_t before = workers.done(0);
  workers.run(200 * kMillisecond);
  EXPECT_GT(workers.done(0) - before, 17'000);
}

TEST(FairShares, WhoHasLeftIsForgotten) {
  FairShares shares(two_processors());
  {
    Workers others(shares, {10 * kMicrosecond, 10 * kMicrosecond});
    others.run(kMillisecond);
  }
  Workers workers(shares, {10 * kMicrosecond});
  workers.run(10 * kMillisecond);
  EXPECT_EQ(workers.waits(0), 0);
}

}  // namespace
}  // namespace rodeo::emulator
