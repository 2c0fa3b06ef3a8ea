// The requests to readouts for an event: each case of the table in event_collector.h.
#include "farm/node/event_collector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace {

using namespace rodeo::farm;
using rodeo::SourceId;
using Request = EventCollector::Request;
using Result = EventCollector::Result;
using What = Result::What;
using Slot = EventCollector::Slot;

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kDeadline = 1000 * kMs;

/// Two connected readouts with two ROBs each.
struct Collecting {
  explicit Collecting(CollectorSettings settings = {.slots = 4}) : collector(settings, 2) {
    for (std::uint32_t readout = 0; readout < 2; ++readout) {
      const SourceId robs[] = {{0x100 * (readout + 1)}, {0x100 * (readout + 1) + 1}};
      collector.on_description(readout, robs);
      collector.on_connect(readout, false);
    }
  }

  Slot whole_event(std::uint64_t deadline = kDeadline) {
    const Slot slot = collector.begin(deadline).value();
    collector.want_all(slot);
    return slot;
  }
  std::map<std::uint32_t, Request> asks() {
    std::map<std::uint32_t, Request> by_readout;
    while (const auto ask = collector.next_request()) by_readout[ask->readout] = *ask;
    return by_readout;
  }
  bool answer(const Request& ask, What what, std::uint64_t now = 0) {
    std::vector<Result> results;
    for (const auto rob : collector.robs_of(ask.readout)) results.push_back({rob, what});
    return collector.on_answer(ask.id, results, 100 * results.size(), now);
  }
  std::vector<Slot> complete(std::uint64_t now = 0) {
    std::vector<Slot> slots;
    collector.poll(now, slots);
    return slots;
  }
  std::uint64_t count(CollectorCounter counter) const { return collector.counters().read(counter); }

  EventCollector collector;
};

TEST(EventCollector, AnEventIsCompleteWhenEachReadoutHasAnswered) {
  Collecting one;
  const Slot slot = one.whole_event();
  const auto asks = one.asks();
  ASSERT_EQ(asks.size(), 2U);
  EXPECT_TRUE(asks.at(0).all);
  EXPECT_EQ(asks.at(0).robs.size(), 2U);
  EXPECT_TRUE(one.answer(asks.at(1), What::arrived));
  EXPECT_TRUE(one.complete().empty());
  EXPECT_TRUE(one.answer(asks.at(0), What::arrived));
  EXPECT_EQ(one.complete(), std::vector<Slot>{slot});
  EXPECT_TRUE(one.complete().empty()) << "an event is complete once";
  EXPECT_EQ(one.collector.lost_robs(slot), 0U);
  EXPECT_EQ(one.count(CollectorCounter::fragments), 4U);
  EXPECT_EQ(one.count(CollectorCounter::fragment_bytes), 400U);
}

TEST(EventCollector, WhatIsPendingIsAskedForAgainLaterAndNothingElse) {
  Collecting one;
  const Slot slot = one.whole_event();
  const auto asks = one.asks();
  one.answer(asks.at(1), What::arrived);
  const auto robs = one.collector.robs_of(0);
  const Result results[] = {{robs[0], What::arrived}, {robs[1], What::pending}};
  EXPECT_TRUE(one.collector.on_answer(asks.at(0).id, results, 100, 5 * kMs));
  EXPECT_TRUE(one.complete(5 * kMs).empty());
  EXPECT_TRUE(one.asks().empty()) << "not at once";
  EXPECT_TRUE(one.complete(6 * kMs).empty());
  const auto again = one.asks();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_FALSE(again.at(0).all);
  EXPECT_TRUE(std::ranges::equal(again.at(0).robs, robs.subspan(1)));
  EXPECT_TRUE(one.collector.on_answer(again.at(0).id, std::array{Result{robs[1], What::arrived}}, 100, 6 * kMs));
  EXPECT_EQ(one.complete(6 * kMs), std::vector<Slot>{slot});
  EXPECT_EQ(one.collector.lost_robs(slot), 0U);
  EXPECT_EQ(one.count(CollectorCounter::pending), 1U);
}

TEST(EventCollector, WhatIsLostIsAskedForNoMore) {
  for (const What what : {What::lost, What::bad}) {
    Collecting one;
    const Slot slot = one.whole_event();
    const auto asks = one.asks();
    one.answer(asks.at(0), What::arrived);
    one.answer(asks.at(1), what);
    EXPECT_EQ(one.complete(), std::vector<Slot>{slot});
    EXPECT_EQ(one.collector.lost_robs(slot), 2U);
    const auto rob = one.collector.robs_of(1)[0];
    EXPECT_EQ(one.collector.state(slot, rob), RobState::lost);
    EXPECT_EQ(one.collector.loss(slot, rob), what == What::lost ? RobLoss::by_readout : RobLoss::bad);
    EXPECT_EQ(one.count(what == What::lost ? CollectorCounter::lost_by_readout : CollectorCounter::lost_bad), 2U);
    EXPECT_EQ(one.collector.lost_fragments_of(0), 0U);
    EXPECT_EQ(one.collector.lost_fragments_of(1), 2U);
    one.complete(kDeadline);
    EXPECT_TRUE(one.asks().empty());
  }
}

TEST(EventCollector, WhatIsMissingInAnAnswerIsBad) {
  Collecting one;
  const Slot slot = one.whole_event();
  const auto asks = one.asks();
  one.answer(asks.at(0), What::arrived);
  EXPECT_TRUE(one.collector.on_answer(asks.at(1).id, {}, 0, 0));
  EXPECT_EQ(one.complete(), std::vector<Slot>{slot});
  EXPECT_EQ(one.count(CollectorCounter::lost_bad), 2U);
}

TEST(EventCollector, ARobThatWasNotAskedForChangesNothing) {
  Collecting one;
  const Slot slot = one.whole_event();
  const auto asks = one.asks();
  const auto other = one.collector.robs_of(1)[0];
  const auto own = one.collector.robs_of(0);
  const Result results[] = {{own[0], What::arrived}, {own[0], What::lost}, {own[1], What::arrived}, {99, What::arrived}};
  EXPECT_TRUE(one.collector.on_answer(asks.at(0).id, results, 1, 0));
  EXPECT_EQ(one.collector.state(slot, own[0]), RobState::arrived);
  EXPECT_EQ(one.collector.state(slot, other), RobState::requested);
  EXPECT_EQ(one.collector.lost_robs(slot), 0U);
}

TEST(EventCollector, ARequestThatFailedIsMadeAgain) {
  Collecting one;
  const Slot slot = one.whole_event();
  auto asks = one.asks();
  one.answer(asks.at(0), What::arrived);
  one.collector.on_failure(asks.at(1).id, false, 0);
  EXPECT_TRUE(one.complete(2 * kMs).empty());
  asks = one.asks();
  ASSERT_EQ(asks.size(), 1U);
  EXPECT_TRUE(one.answer(asks.at(1), What::arrived));
  EXPECT_EQ(one.complete(2 * kMs), std::vector<Slot>{slot});
  EXPECT_EQ(one.count(CollectorCounter::asked_again), 1U);
}

TEST(EventCollector, ARefusalForGoodIsALoss) {
  Collecting one;
  const Slot slot = one.whole_event();
  const auto asks = one.asks();
  one.answer(asks.at(0), What::arrived);
  one.collector.on_failure(asks.at(1).id, true, 0);
  EXPECT_EQ(one.complete(), std::vector<Slot>{slot});
  EXPECT_EQ(one.collector.lost_robs(slot), 2U);
}

TEST(EventCollector, WhileAReadoutIsAwayNothingIsAskedOfItAndThenItIs) {
  Collecting one;
  const Slot slot = one.whole_event();
  one.collector.on_disconnect(1, 10 * kMs);
  auto asks = one.asks();
  ASSERT_EQ(asks.size(), 1U);
  one.answer(asks.at(0), What::arrived);
  EXPECT_TRUE(one.complete(20 * kMs).empty());
  EXPECT_TRUE(one.asks().empty());
  one.collector.on_connect(1, false);
  one.complete(30 * kMs);
  asks = one.asks();
  ASSERT_EQ(asks.size(), 1U);
  one.answer(asks.at(1), What::arrived);
  EXPECT_EQ(one.complete(30 * kMs), std::vector<Slot>{slot});
  EXPECT_EQ(one.collector.lost_robs(slot), 0U);
}

TEST(EventCollector, AReadoutThatWasStartedAnewHasNothingOfWhatWasThere) {
  Collecting one;
  const Slot slot = one.whole_event();
  auto asks = one.asks();
  one.answer(asks.at(0), What::arrived);
  one.collector.on_disconnect(1, 10 * kMs);
  one.collector.on_connect(1, true);
  EXPECT_EQ(one.complete(10 * kMs), std::vector<Slot>{slot});
  EXPECT_EQ(one.count(CollectorCounter::lost_readout_died), 2U);
  EXPECT_TRUE(one.answer(asks.at(1), What::arrived)) << "late: it is not needed, and nothing breaks";
  EXPECT_EQ(one.collector.loss(slot, one.collector.robs_of(1)[0]), RobLoss::readout_died);
  one.collector.end(slot);
  const Slot next = one.whole_event();
  asks = one.asks();
  ASSERT_EQ(asks.size(), 2U) << "it gets requests for later events";
  one.answer(asks.at(0), What::arrived);
  one.answer(asks.at(1), What::arrived);
  EXPECT_EQ(one.complete(10 * kMs), std::vector<Slot>{next});
}

TEST(EventCollector, AReadoutThatWasStartedAnewIsAskedForWhatBeganWhileItWasAway) {
  Collecting one;
  const Slot before = one.whole_event();
  one.answer(one.asks().at(0), What::arrived);
  one.collector.on_disconnect(1, 10 * kMs);
  const Slot since = one.whole_event();  // its trigger may be later than the readout's return
  one.answer(one.asks().at(0), What::arrived);
  one.collector.on_connect(1, true);
  EXPECT_EQ(one.complete(20 * kMs), std::vector<Slot>{before});
  const auto asks = one.asks();
  ASSERT_EQ(asks.size(), 1U);
  EXPECT_EQ(asks.at(1).slot, since);
  one.answer(asks.at(1), What::arrived, 20 * kMs);
  EXPECT_EQ(one.complete(20 * kMs), std::vector<Slot>{since});
  EXPECT_EQ(one.collector.lost_robs(since), 0U);
}

TEST(EventCollector, AReadoutThatStaysAwayIsGivenUpUntilItComes) {
  Collecting one(CollectorSettings{.slots = 4, .readout_grace = std::chrono::milliseconds{50}});
  const Slot slot = one.whole_event();
  one.collector.on_disconnect(1, 10 * kMs);
  auto asks = one.asks();
  one.answer(asks.at(0), What::arrived);
  EXPECT_TRUE(one.complete(59 * kMs).empty());
  EXPECT_EQ(one.complete(60 * kMs), std::vector<Slot>{slot});
  EXPECT_EQ(one.collector.lost_robs(slot), 2U);
  EXPECT_TRUE(one.collector.has_loss(slot, RobLoss::readout_away)) << "it may be connected to others";
  EXPECT_FALSE(one.collector.has_loss(slot, RobLoss::readout_died));
  EXPECT_EQ(one.count(CollectorCounter::lost_readout_away), 2U);
  const Slot next = one.whole_event();  // the collector does not wait for the readout again
  asks = one.asks();
  ASSERT_EQ(asks.size(), 1U);
  one.answer(asks.at(0), What::arrived);
  EXPECT_EQ(one.complete(61 * kMs), std::vector<Slot>{next});
  one.collector.on_connect(1, false);
  one.whole_event();
  EXPECT_EQ(one.asks().size(), 2U);
}

TEST(EventCollector, AfterItsTimeAnEventHasWhatItHas) {
  Collecting one;
  const Slot slot = one.whole_event(100 * kMs);
  auto asks = one.asks();
  one.answer(asks.at(0), What::arrived);
  EXPECT_TRUE(one.complete(99 * kMs).empty());
  EXPECT_EQ(one.complete(100 * kMs), std::vector<Slot>{slot});
  EXPECT_EQ(one.count(CollectorCounter::lost_timed_out), 2U);
  EXPECT_EQ(one.collector.loss(slot, one.collector.robs_of(1)[0]), RobLoss::timed_out);
  one.collector.end(slot);
  const Slot other = one.whole_event();
  EXPECT_EQ(other, slot);
  EXPECT_FALSE(one.answer(asks.at(1), What::arrived)) << "the answer is not for the event that has the slot now";
  EXPECT_EQ(one.collector.state(other, one.collector.robs_of(1)[0]), RobState::wanted);
}

TEST(EventCollector, InStepsAnEventIsCompleteAfterEach) {
  Collecting one;
  const Slot slot = one.collector.begin(kDeadline).value();
  const auto robs = one.collector.robs_of(0);
  one.collector.want(slot, robs.first(1));
  auto asks = one.asks();
  ASSERT_EQ(asks.size(), 1U);
  EXPECT_FALSE(asks.at(0).all);
  EXPECT_TRUE(one.collector.on_answer(asks.at(0).id, std::array{Result{robs[0], What::arrived}}, 10, 0));
  EXPECT_EQ(one.complete(), std::vector<Slot>{slot});
  one.collector.want(slot, robs.first(1));
  EXPECT_EQ(one.complete(), std::vector<Slot>{slot}) << "it has these ROBs: complete at once";
  one.collector.want_all(slot);
  asks = one.asks();
  ASSERT_EQ(asks.size(), 2U);
  EXPECT_TRUE(std::ranges::equal(asks.at(0).robs, robs.subspan(1)));
  EXPECT_TRUE(one.collector.on_answer(asks.at(0).id, std::array{Result{robs[1], What::arrived}}, 10, 0));
  one.answer(asks.at(1), What::arrived);
  EXPECT_EQ(one.complete(), std::vector<Slot>{slot});
}

TEST(EventCollector, CreditsInFragmentsHoldRequestsBackInTheirOrder) {
  Collecting one(CollectorSettings{.slots = 4, .credit_fragments = 3});
  const Slot first = one.whole_event();
  one.whole_event();
  const auto ask = one.collector.next_request();
  ASSERT_TRUE(ask);
  EXPECT_FALSE(one.collector.next_request()) << "2 are in flight, 2 more would be 4";
  EXPECT_EQ(one.collector.fragments_under_way(), 2U);
  EXPECT_FALSE(one.collector.next_request());
  EXPECT_EQ(one.count(CollectorCounter::waits_for_credit), 1U) << "one wait, even if next() is called several times";
  one.answer(*ask, What::arrived);
  const auto next = one.collector.next_request();
  ASSERT_TRUE(next);
  EXPECT_EQ(next->slot, first);
  one.collector.on_failure(next->id, false, 0);
  EXPECT_EQ(one.collector.fragments_under_way(), 0U) << "a request that failed holds no credit";
}

TEST(EventCollector, CreditsInBytesGoByTheSizesThatCameLately) {
  Collecting one(CollectorSettings{.slots = 4, .credit_bytes = 250});
  one.whole_event();
  for (const auto& [readout, ask] : one.asks()) one.answer(ask, What::arrived);  // 100 bytes each
  one.whole_event();
  EXPECT_TRUE(one.collector.next_request());
  EXPECT_EQ(one.collector.bytes_under_way(), 200U);
  EXPECT_FALSE(one.collector.next_request());
}

TEST(EventCollector, ARequestThatIsLargerThanAllCreditGoesAlone) {
  Collecting one(CollectorSettings{.slots = 4, .credit_fragments = 1});
  one.whole_event();
  const auto ask = one.collector.next_request();
  ASSERT_TRUE(ask);
  EXPECT_EQ(ask->robs.size(), 2U);
  EXPECT_FALSE(one.collector.next_request());
}

TEST(EventCollector, ARobThatIsDescribedLaterIsOfLaterEvents) {
  EventCollector collector({.slots = 2}, 2);
  const SourceId first[] = {{0x100}};
  const SourceId second[] = {{0x200}, {0x201}};
  collector.on_description(0, first);
  collector.on_connect(0, false);
  const Slot before = collector.begin(kDeadline).value();
  collector.on_description(1, second);
  collector.on_connect(1, false);
  collector.want_all(before);
  for (const auto rob : collector.robs_of(1)) {
    EXPECT_EQ(collector.state(before, rob), RobState::unwanted);
    EXPECT_EQ(collector.loss(before, rob), RobLoss::none);
  }
  const auto ask = collector.next_request();
  ASSERT_TRUE(ask);
  EXPECT_FALSE(collector.next_request());
  const Slot after = collector.begin(kDeadline).value();
  collector.want_all(after);
  EXPECT_EQ(collector.state(after, collector.robs_of(1)[1]), RobState::wanted);
}

TEST(EventCollector, ALongListIsAskedForInPartsAndAllWithoutAList) {
  constexpr std::uint32_t kRobs = 2500;
  EventCollector collector(CollectorSettings{.slots = 2}, 1);
  std::vector<SourceId> robs;
  for (std::uint32_t i = 0; i < kRobs; ++i) robs.push_back({i});
  collector.on_description(0, robs);
  collector.on_connect(0, false);
  const Slot whole = collector.begin(kDeadline).value();
  collector.want_all(whole);
  const auto all = collector.next_request();
  ASSERT_TRUE(all);
  EXPECT_TRUE(all->all);
  EXPECT_EQ(all->robs.size(), kRobs);
  const Slot slot = collector.begin(kDeadline).value();
  collector.want(slot, std::vector<EventCollector::RobIndex>{7});
  std::uint64_t now = 0;
  std::vector<std::size_t> sizes;
  std::vector<Slot> complete;
  for (bool rest = false; complete.empty() || !rest; now += 2 * kMs) {
    if (!complete.empty()) {
      complete.clear();
      rest = true;
      collector.want_all(slot);
    }
    if (const auto ask = collector.next_request()) {
      EXPECT_FALSE(ask->all);
      sizes.push_back(ask->robs.size());
      std::vector<Result> results;
      for (const auto rob : ask->robs) results.push_back({rob, What::arrived});
      EXPECT_TRUE(collector.on_answer(ask->id, results, 1, now));
    }
    collector.poll(now, complete);
    ASSERT_LT(now, kDeadline);
  }
  EXPECT_EQ(sizes, (std::vector<std::size_t>{1, 1024, 1024, kRobs - 1 - 2048}));
  EXPECT_EQ(collector.lost_robs(slot), 0U);
}

TEST(EventCollector, SlotsAreBounded) {
  Collecting one(CollectorSettings{.slots = 2});
  one.whole_event();
  const Slot slot = one.whole_event();
  EXPECT_FALSE(one.collector.begin(kDeadline));
  one.collector.end(slot);
  EXPECT_EQ(one.collector.free_slots(), 1U);
  EXPECT_TRUE(one.collector.begin(kDeadline));
}

TEST(EventCollector, WhateverHappensEachEventBecomesCompleteAndNoCreditIsLost) {
  std::mt19937 random(1);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  Collecting one(CollectorSettings{.slots = 8, .credit_fragments = 6, .readout_grace = std::chrono::milliseconds{20}});
  std::vector<Request> under_way;
  std::map<Slot, bool> open;
  std::uint64_t begun = 0;
  std::uint64_t completed = 0;
  std::uint64_t now = 0;
  for (int step = 0; step < 100'000; ++step) {
    now += below(2) * kMs / 2;
    switch (below(8)) {
      case 0:
        if (const auto slot = one.collector.begin(now + 100 * kMs)) {
          one.collector.want_all(*slot);
          open[*slot] = true;
          ++begun;
        }
        break;
      case 1:
      case 2:
        if (const auto ask = one.collector.next_request()) under_way.push_back(*ask);
        break;
      case 3:
        if (below(50) == 0) one.collector.on_disconnect(below(2), now);
        break;
      case 4: one.collector.on_connect(below(2), below(50) == 0); break;
      default: {
        if (under_way.empty()) break;
        const std::size_t which = below(static_cast<std::uint32_t>(under_way.size()));
        const Request ask = under_way[which];
        under_way.erase(under_way.begin() + static_cast<std::ptrdiff_t>(which));
        if (below(10) == 0) {
          one.collector.on_failure(ask.id, below(4) == 0, now);
        } else {
          one.answer(ask, static_cast<What>(below(4)), now);
        }
      }
    }
    for (const Slot slot : one.complete(now)) {
      ASSERT_TRUE(open[slot]);
      open[slot] = false;
      ++completed;
      one.collector.end(slot);
    }
    ASSERT_LE(one.collector.fragments_under_way(), 6U);
  }
  for (const Request& ask : under_way) one.collector.on_failure(ask.id, false, now);
  completed += one.complete(now + 1000 * kMs).size();
  EXPECT_EQ(completed, begun);
  EXPECT_GT(begun, 1000U);
  EXPECT_EQ(one.collector.fragments_under_way(), 0U);
  EXPECT_EQ(one.collector.bytes_under_way(), 0U);
}

}  // namespace
