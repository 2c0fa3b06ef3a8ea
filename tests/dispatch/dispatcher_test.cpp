#include "dispatch/dispatcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <ranges>
#include <vector>

#include "dispatch/slow_dispatcher.h"

namespace {

using namespace rodeo::dispatch;
using Said = Dispatcher::Said;
using Offered = Dispatcher::Offered;
using C = DispatchCounter;

struct Given {
  std::uint32_t node;
  std::uint64_t id;
  bool build_only;
  bool operator==(const Given&) const = default;
};

struct Farm : Dispatcher {
  explicit Farm(std::uint32_t nodes, std::uint32_t slots = 8,
                DispatcherSettings settings = {.capacity = 64, .timeout_ns = 100})
      : Dispatcher(settings) {
    for (std::uint32_t node = 0; node < nodes; ++node) set_room(add_node(), slots);
  }
  void offer_ids(std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t id = from; id < to; ++id) offer({.id = id});
  }
  std::vector<Given> given(std::uint64_t now_ns = 0) {
    std::vector<Given> out;
    assign(now_ns,
           [&](std::uint32_t node, const Event& event, bool build_only) { out.push_back({node, event.id, build_only}); });
    return out;
  }
};

TEST(Dispatcher, EventsGoToNodesInTheirOrder) {
  Farm farm(2);
  farm.offer_ids(10, 13);
  EXPECT_EQ(farm.given(), (std::vector<Given>{{0, 10, false}, {1, 11, false}, {0, 12, false}}));
  EXPECT_EQ(farm.events_of(0), 2U);
  EXPECT_TRUE(farm.adds_up());
}

TEST(Dispatcher, ANodeGetsNoMoreThanItHasRoomFor) {
  Farm farm(1, 2);
  farm.offer_ids(0, 3);
  EXPECT_EQ(farm.given().size(), 2U);
  EXPECT_EQ(farm.waiting(), 1U);
  farm.decide(0, {.id = 0});
  EXPECT_EQ(farm.given().size(), 0U);  // the node has not reported room
  farm.set_room(0, 1);
  EXPECT_EQ(farm.given(), (std::vector<Given>{{0, 2, false}}));
}

TEST(Dispatcher, AnEventThatIsInTheBooksIsNotTakenAgain) {
  Farm farm(1);
  EXPECT_EQ(farm.offer({.id = 5}), Offered::taken);
  EXPECT_EQ(farm.offer({.id = 5}), Offered::repeated);
  farm.given();
  EXPECT_EQ(farm.offer({.id = 5}), Offered::repeated);
  EXPECT_EQ(farm.counter(C::repeated_offers), 2U);
}

TEST(Dispatcher, TakesNoMoreThanItHasRoomFor) {
  Farm farm(1, 8, {.capacity = 2});
  farm.offer_ids(0, 2);
  EXPECT_EQ(farm.offer({.id = 2}), Offered::full);
  EXPECT_EQ(farm.room(), 0U);
  farm.given();
  farm.decide(0, {.id = 0});
  EXPECT_EQ(farm.offer({.id = 2}), Offered::full);  // the clear of event 0 is in progress
  farm.cleared(0);
  EXPECT_EQ(farm.offer({.id = 2}), Offered::taken);
}

TEST(Dispatcher, WhatAnEventCarriesComesWithIt) {
  Farm farm(1);
  const Event event{.id = 7, .lumi_block = 3, .scan_step = 4, .bcid = 5, .trigger_type = 6};
  farm.offer(event);
  farm.assign(0, [&](std::uint32_t, const Event& given, bool) { EXPECT_EQ(given, event); });
}

TEST(Dispatcher, WhereManyWaitANodeGetsSomeInARow) {
  Farm farm(2, 1000, {.capacity = 1024, .most_at_once = 4});
  farm.offer_ids(0, 256);
  const auto given = farm.given();
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(given[i].node, i / 4);
  farm.offer_ids(300, 302);
  const auto few = farm.given();
  EXPECT_NE(few[0].node, few[1].node);
}

// ---- case 1

TEST(Dispatcher, TheDecisionOfWhoHasAnEventCounts) {
  Farm farm(1);
  farm.offer_ids(0, 4);
  farm.given();
  EXPECT_EQ(farm.decide(0, {.id = 0, .verdict = Verdict::accepted, .partial = true}), Said::counted);
  EXPECT_EQ(farm.decide(0, {.id = 1, .verdict = Verdict::rejected, .partial = true}), Said::counted);
  EXPECT_EQ(farm.decide(0, {.id = 2, .verdict = Verdict::debug}), Said::counted);
  EXPECT_EQ(farm.decide(0, {.id = 3, .verdict = Verdict::lost}), Said::counted);
  for (const C counter : {C::accepted, C::rejected, C::debug, C::lost, C::partial}) EXPECT_EQ(farm.counter(counter), 1U);
  EXPECT_EQ(farm.events_of(0), 0U);
  EXPECT_EQ(farm.decided(), 4U);
  EXPECT_TRUE(farm.adds_up());
}

// ---- case 2

TEST(Dispatcher, WhoHadAnEventThatWaitsForAnotherMayStillDecideIt) {
  Farm farm(1, 1);
  farm.offer_ids(0, 1);
  farm.given();
  farm.expire(100);
  EXPECT_EQ(farm.decide(0, {.id = 0, .verdict = Verdict::rejected}), Said::counted);
  EXPECT_EQ(farm.waiting(), 0U);
  EXPECT_TRUE(farm.adds_up());
}

// ---- case 3

TEST(Dispatcher, WhenAnotherBuildsItOnlyTheFormerOwnerIsLate) {
  Farm farm(2, 1);
  farm.offer_ids(0, 1);
  farm.given();
  farm.expire(100);
  EXPECT_EQ(farm.given(100), (std::vector<Given>{{1, 0, true}}));
  EXPECT_EQ(farm.decide(0, {.id = 0, .verdict = Verdict::accepted}), Said::late);
  EXPECT_EQ(farm.decide(1, {.id = 0, .verdict = Verdict::debug, .build_only = true}), Said::counted);
  EXPECT_EQ(farm.counter(C::late_decisions), 1U);
  EXPECT_EQ(farm.counter(C::debug), 1U);
  EXPECT_EQ(farm.counter(C::accepted), 0U);
  EXPECT_TRUE(farm.adds_up());
}

TEST(Dispatcher, WhereAnotherHadItSinceARejectionIsLateThoughThatOtherIsGone) {
  Farm farm(2, 1);
  farm.offer_ids(0, 1);
  farm.given();
  farm.expire(100);
  EXPECT_EQ(farm.given(100), (std::vector<Given>{{1, 0, true}}));
  farm.expire(200);  // the other node has timed out, too; it may have recorded the event
  EXPECT_EQ(farm.decide(0, {.id = 0, .verdict = Verdict::rejected}), Said::late);
  EXPECT_EQ(farm.decide(0, {.id = 0, .verdict = Verdict::accepted}), Said::counted);
  EXPECT_TRUE(farm.adds_up());
}

// ---- case 4

TEST(Dispatcher, ThatAnEventWasRecordedCountsWhoeverProcessesIt) {
  Farm farm(2);
  farm.offer_ids(0, 2);
  farm.given();  // after a restart of the supervisor: node 1 had event 0 before
  EXPECT_EQ(farm.decide(1, {.id = 0, .verdict = Verdict::accepted}), Said::counted);
  EXPECT_EQ(farm.decide(0, {.id = 0, .verdict = Verdict::rejected}), Said::repeated);
  EXPECT_EQ(farm.decide(0, {.id = 1, .verdict = Verdict::rejected}), Said::late);
  EXPECT_TRUE(farm.adds_up());
}

// ---- case 5

TEST(Dispatcher, WhoHasAnEventAnewIsLateWithTheFirstTime) {
  Farm farm(1);
  farm.offer_ids(0, 1);
  farm.given();
  farm.expire(100);
  EXPECT_EQ(farm.given(100), (std::vector<Given>{{0, 0, true}}));  // there is no other node
  EXPECT_EQ(farm.decide(0, {.id = 0, .verdict = Verdict::rejected}), Said::late);
  EXPECT_EQ(farm.decide(0, {.id = 0, .verdict = Verdict::debug, .build_only = true}), Said::counted);
}

// ---- case 6

TEST(Dispatcher, ADecisionCountsOnce) {
  Farm farm(2);
  farm.offer_ids(0, 1);
  farm.given();
  EXPECT_EQ(farm.decide(0, {.id = 0}), Said::counted);
  EXPECT_EQ(farm.decide(0, {.id = 0}), Said::repeated);
  EXPECT_EQ(farm.decide(1, {.id = 0}), Said::repeated);
  EXPECT_EQ(farm.counter(C::accepted), 1U);
  EXPECT_EQ(farm.counter(C::repeated_decisions), 2U);
}

// ---- case 7

TEST(Dispatcher, ADecisionOfAnEventThatNobodyKnowsDoesNotCount) {
  Farm farm(1);
  EXPECT_EQ(farm.decide(0, {.id = 9}), Said::unknown);
  EXPECT_EQ(farm.counter(C::unknown_decisions), 1U);
  EXPECT_EQ(farm.counter(C::accepted), 0U);
  EXPECT_TRUE(farm.adds_up());
}

// ---- case 8

TEST(Dispatcher, AnEventWhoseTimeIsOutIsFirstAndOnlyBuiltByAnother) {
  Farm farm(2, 2);
  farm.offer_ids(0, 1);
  farm.given(0);
  farm.offer_ids(1, 2);
  EXPECT_EQ(farm.expire(99), 0U);
  EXPECT_EQ(farm.expire(100), 1U);
  EXPECT_EQ(farm.given(100), (std::vector<Given>{{1, 0, true}, {0, 1, false}}));
  EXPECT_EQ(farm.counter(C::timed_out), 1U);
  EXPECT_EQ(farm.counter(C::assignments), 3U);
}

TEST(Dispatcher, EventsThatAreAssignedAgainAndOthersTakeTurns) {
  Farm farm(1, 3);
  farm.offer_ids(0, 3);
  farm.given(0);
  farm.expire(100);
  farm.offer_ids(3, 6);
  farm.set_room(0, 6);
  EXPECT_EQ(farm.given(100),
            (std::vector<Given>{{0, 0, true}, {0, 3, false}, {0, 1, true}, {0, 4, false}, {0, 2, true}, {0, 5, false}}));
}

TEST(Dispatcher, TimeIsCountedFromTheLastAssignment) {
  Farm farm(2);
  farm.offer_ids(0, 1);
  farm.given(0);
  farm.expire(100);
  farm.given(150);
  EXPECT_EQ(farm.expire(249), 0U);
  EXPECT_EQ(farm.expire(250), 1U);
}

// ---- case 9

TEST(Dispatcher, EventsOfANodeThatIsGoneAreAssignedAgain) {
  Farm farm(2, 3);
  farm.offer_ids(0, 4);
  farm.given();
  farm.node_gone(0);
  EXPECT_EQ(farm.given(), (std::vector<Given>{{1, 0, true}}));  // node 1 has room for one more event
  EXPECT_EQ(farm.waiting(), 1U);
  EXPECT_EQ(farm.events_of(0), 0U);
  EXPECT_EQ(farm.counter(C::node_gone), 2U);
  EXPECT_TRUE(farm.adds_up());
}

// ---- case 10

TEST(Dispatcher, WhatNeverCameToItsNodeIsProcessedAsAtFirst) {
  Farm farm(2);
  farm.offer_ids(0, 1);
  farm.given();
  farm.undelivered(1, 0);  // only the node that has the event can report it
  EXPECT_EQ(farm.counter(C::undelivered), 0U);
  farm.undelivered(0, 0);
  EXPECT_EQ(farm.given(), (std::vector<Given>{{1, 0, false}}));
  EXPECT_EQ(farm.counter(C::undelivered), 1U);
}

// ---- case 11

TEST(Dispatcher, WhatANodeGivesBackWaitsBeforeWhatWasOfferedAfterIt) {
  Farm farm(2, 2);
  farm.offer_ids(0, 4);
  farm.given();
  farm.offer_ids(4, 5);
  farm.give_back(1, 0, false);  // node 0 has the event, not node 1
  farm.give_back(0, 0, true);   // node 0 has the event as build only
  EXPECT_EQ(farm.counter(C::given_back), 0U);
  farm.give_back(0, 2, false);
  farm.give_back(0, 0, false);
  EXPECT_EQ(farm.counter(C::given_back), 2U);
  EXPECT_TRUE(farm.adds_up());
  farm.set_room(0, 3);
  EXPECT_EQ(farm.given(), (std::vector<Given>{{0, 0, false}, {0, 2, false}, {0, 4, false}}));
}

TEST(Dispatcher, WhatWasOnlyToBeBuiltIsSoWhenItIsGivenBack) {
  Farm farm(2, 1);
  farm.offer_ids(0, 1);
  farm.given(0);
  farm.expire(100);
  EXPECT_EQ(farm.given(100), (std::vector<Given>{{1, 0, true}}));
  farm.give_back(1, 0, true);
  EXPECT_EQ(farm.decide(0, {.id = 0, .verdict = Verdict::rejected}), Said::late) << "node 1 may have recorded it";
  EXPECT_EQ(farm.waiting(), 1U);
  EXPECT_TRUE(farm.adds_up());
}

// ---- the next event

TEST(Dispatcher, EventsThatGoAheadAreAssignedBeforeTheOthersAndOnceOnly) {
  Farm farm(1, 1);
  farm.offer_ids(10, 12);
  farm.offer({.id = 2}, {.turn = Offer::Turn::ahead});
  farm.offer({.id = 3}, {.build_only = true, .turn = Offer::Turn::ahead});
  EXPECT_EQ(farm.waiting_ahead(), 2U);
  EXPECT_EQ(farm.oldest_ahead(), 2U);
  EXPECT_EQ(farm.given(0), (std::vector<Given>{{0, 2, false}}));
  farm.expire(100);
  farm.set_room(0, 4);
  EXPECT_EQ(farm.given(100), (std::vector<Given>{{0, 2, true}, {0, 3, true}, {0, 10, false}, {0, 11, false}}));
  EXPECT_EQ(farm.waiting_ahead(), 0U);
  EXPECT_TRUE(farm.adds_up());
}

// ---- a restarted supervisor

TEST(Dispatcher, ANodeKeepsWhatItSaysItHas) {
  Farm farm(2);
  EXPECT_TRUE(farm.adopt({.id = 3}, 1, false, 0));
  EXPECT_EQ(farm.offer({.id = 3}), Offered::repeated);
  EXPECT_EQ(farm.decide(1, {.id = 3}), Said::counted);
  EXPECT_EQ(farm.counter(C::adopted), 1U);
  EXPECT_TRUE(farm.adds_up());
}

TEST(Dispatcher, OfTwoThatHaveAnEventWhoOnlyBuildsItGotItLater) {
  Farm farm(2);
  EXPECT_TRUE(farm.adopt({.id = 3}, 0, false, 0));
  EXPECT_TRUE(farm.adopt({.id = 3}, 1, true, 0));
  EXPECT_FALSE(farm.adopt({.id = 3}, 0, false, 0));
  EXPECT_EQ(farm.decide(0, {.id = 3}), Said::late);
  EXPECT_EQ(farm.events_of(0), 0U);
  EXPECT_EQ(farm.counter(C::adopted), 1U);
  EXPECT_TRUE(farm.adds_up());
}

TEST(Dispatcher, AnEventThatWaitsForAnotherIsNotWhoseItWasBeforeTheLast) {
  Farm farm(2, 1);
  farm.offer_ids(0, 1);
  farm.given();
  farm.expire(100);
  EXPECT_EQ(farm.given(100), (std::vector<Given>{{1, 0, true}}));
  farm.expire(200);
  EXPECT_FALSE(farm.adopt({.id = 0}, 0, false, 200)) << "node 1 may have recorded it";
  EXPECT_TRUE(farm.adopt({.id = 0}, 1, true, 200));
  EXPECT_TRUE(farm.adds_up());
}

TEST(Dispatcher, WhatMayHaveBeenRecordedIsOnlyBuiltFromTheBegin) {
  Farm farm(1);
  EXPECT_EQ(farm.offer({.id = 4}, {.build_only = true}), Offered::taken);
  EXPECT_EQ(farm.given(), (std::vector<Given>{{0, 4, true}}));
}

TEST(Dispatcher, AnEventThatWaitsIsWhoseNodeSaysItHasIt) {
  Farm farm(1, 0);
  farm.offer_ids(3, 4);
  EXPECT_TRUE(farm.adopt({.id = 3}, 0, false, 0));
  EXPECT_EQ(farm.waiting(), 0U);
  EXPECT_TRUE(farm.adds_up());
}

TEST(Dispatcher, WhoSaysHelloHasRoomOfItsOwn) {
  Farm farm(1, 8, {.capacity = 2, .reserve = 2});
  farm.offer_ids(0, 2);
  EXPECT_EQ(farm.offer({.id = 2}), Offered::full);
  EXPECT_TRUE(farm.adopt({.id = 3}, 0, false, 0));
  EXPECT_EQ(farm.adopt_decision(0, {.id = 4}), Said::counted);
  EXPECT_FALSE(farm.adopt({.id = 5}, 0, false, 0));
  EXPECT_EQ(farm.room(), 0U);
  farm.cleared(4);
  EXPECT_EQ(farm.offer({.id = 2}), Offered::full);
  EXPECT_TRUE(farm.adds_up());
}

TEST(Dispatcher, ADecisionOfBeforeIsTakenIntoTheBooks) {
  Farm farm(1);
  EXPECT_EQ(farm.adopt_decision(0, {.id = 3, .verdict = Verdict::rejected}), Said::counted);
  EXPECT_EQ(farm.adopt_decision(0, {.id = 3, .verdict = Verdict::rejected}), Said::repeated);
  EXPECT_EQ(farm.counter(C::rejected), 1U);
  farm.cleared(3);
  EXPECT_TRUE(farm.adds_up());
}

// Random events, nodes and decisions: the twin has the same books, and assignments follow the rules.
TEST(Dispatcher, AgreesWithItsSlowTwin) {
  std::mt19937_64 random(11);
  for (const Policy policy : {Policy::least_loaded, Policy::round_robin, Policy::random}) {
    for (int course = 0; course < 40; ++course) {
      constexpr std::uint32_t kCapacity = 24;
      constexpr std::uint32_t kNodes = 5;
      Farm farm(kNodes, 0,
                {.policy = policy,
                 .capacity = kCapacity,
                 .timeout_ns = 60,
                 .most_at_once = 1 + static_cast<std::uint32_t>(random() % 3),
                 .seed = random()});
      rodeo::test::SlowDispatcher twin(kCapacity, 60);
      std::uint64_t now = 0;
      std::uint64_t next_id = (random() % 3) << 24;
      std::vector<std::uint32_t> room(kNodes, 0);
      for (int step = 0; step < 1500; ++step, now += random() % 5) {
        const auto node = static_cast<std::uint32_t>(random() % kNodes);
        const std::uint64_t some_id = next_id - random() % 40;
        switch (random() % 9) {
          case 0:
          case 1: {
            const std::uint64_t id = random() % 10 == 0 ? some_id : next_id++;
            const bool ahead = random() % 4 == 0;
            const Offer how{.turn = ahead ? Offer::Turn::ahead : Offer::Turn::in_order};
            ASSERT_EQ(farm.offer({.id = id}, how) == Offered::taken, twin.offer(id, ahead));
            break;
          }
          case 2:
            room[node] = static_cast<std::uint32_t>(random() % 6);
            farm.set_room(node, room[node]);
            break;
          case 3:
            farm.assign(now, [&](std::uint32_t to, const Event& event, bool build_only) {
              const auto next = twin.next();
              ASSERT_TRUE(next);
              ASSERT_EQ(event.id, *next);
              ASSERT_EQ(build_only, twin.events.at(*next).build_only);
              ASSERT_GT(room[to], 0U);
              // If a node that did not have the event before has room, such a node gets it.
              const bool other = std::ranges::any_of(std::views::iota(0U, kNodes), [&](std::uint32_t n) {
                return room[n] > 0 && twin.events.at(*next).node != n;
              });
              ASSERT_TRUE(!other || twin.events.at(*next).node != to);
              --room[to];
              twin.assign(event.id, to, now);
            });
            break;
          case 4:
          case 5: {
            const Dispatcher::Decision decision{
                .id = some_id, .verdict = static_cast<Verdict>(random() % 4), .build_only = random() % 2 == 0};
            ASSERT_EQ(farm.decide(node, decision), twin.decide(node, decision));
            break;
          }
          case 8: {
            const bool build_only = random() % 2 == 0;
            farm.give_back(node, some_id, build_only);
            twin.give_back(node, some_id, build_only);
            break;
          }
          case 6:
            if (random() % 4 == 0) {
              farm.node_gone(node);
              twin.gone(node);
              room[node] = 0;
            } else {
              farm.expire(now);
              twin.expire(now);
            }
            break;
          default:
            for (int i = 0; i < 4; ++i) {
              farm.cleared(some_id + static_cast<std::uint64_t>(i));
              twin.cleared(some_id + static_cast<std::uint64_t>(i));
            }
        }
        ASSERT_TRUE(farm.adds_up());
        ASSERT_EQ(kCapacity - farm.room(), twin.events.size());
        for (std::uint32_t n = 0; n < kNodes; ++n) {
          std::vector<std::uint64_t> ids;
          farm.for_each_event_of(n, [&](const Event& event, bool) { ids.push_back(event.id); });
          ASSERT_EQ(ids, twin.of(n));
        }
      }
      ASSERT_EQ(farm.counter(C::offered), twin.in);
      ASSERT_EQ(farm.counter(C::accepted), twin.verdicts[Verdict::accepted]);
      ASSERT_EQ(farm.counter(C::rejected), twin.verdicts[Verdict::rejected]);
      ASSERT_EQ(farm.counter(C::debug), twin.verdicts[Verdict::debug]);
      ASSERT_EQ(farm.counter(C::lost), twin.verdicts[Verdict::lost]);
    }
  }
}

}  // namespace
