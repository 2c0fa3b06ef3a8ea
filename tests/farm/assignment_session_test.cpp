// The numbering of decisions and events between a node and its supervisor.
#include "farm/node/assignment_session.h"

#include <gtest/gtest.h>

namespace {

using rodeo::farm::AssignmentSession;
using namespace rodeo::formats;

AssignmentSession open_session(std::uint32_t slots = 4) {
  AssignmentSession session("node", 9);
  (void)session.make_hello(slots, {});
  session.on_welcome({.session = 5});
  return session;
}

TEST(AssignmentSession, EachDecisionIsSaidOnceAndKeptUntilItIsSafe) {
  auto session = open_session();
  EXPECT_FALSE(session.has_unsent(4));
  ASSERT_TRUE(session.on_orders({.first = 1, .events = {{.id = 1}, {.id = 2}}}));
  session.decide({.id = 1});
  EXPECT_TRUE(session.has_unsent(3));
  auto work = session.make_work(3);
  EXPECT_EQ(work.session, 5U);
  EXPECT_EQ(work.first, 1U);
  EXPECT_EQ(work.granted, 5U) << "two assigned, three free";
  ASSERT_EQ(work.decisions.size(), 1U);
  session.decide({.id = 2});
  work = session.make_work(4);
  EXPECT_EQ(work.first, 2U);
  EXPECT_EQ(work.decisions.at(0).id, 2U);
  EXPECT_TRUE(session.make_work(4).decisions.empty());
  EXPECT_EQ(session.unsafe_decisions(), 2U);
  EXPECT_TRUE(session.on_orders({.safe = 1}));
  EXPECT_EQ(session.unsafe_decisions(), 1U);
  EXPECT_TRUE(session.on_orders({.safe = 2}));
  EXPECT_EQ(session.unsafe_decisions(), 0U);
}

TEST(AssignmentSession, WhatIsGrantedNeverFalls) {
  auto session = open_session();
  EXPECT_EQ(session.make_work(4).granted, 4U);
  EXPECT_EQ(session.make_work(0).granted, 4U);
}

TEST(AssignmentSession, AHelloBeginsAnewWithWhatIsNotSafe) {
  auto session = open_session();
  ASSERT_TRUE(session.on_orders({.first = 1, .events = {{.id = 1}, {.id = 2}, {.id = 3}}}));
  session.decide({.id = 1});
  session.decide({.id = 2});
  (void)session.make_work(3);
  ASSERT_TRUE(session.on_orders({.safe = 1}));
  const auto hello = session.make_hello(2, {{.id = 3}});
  EXPECT_FALSE(session.open());
  ASSERT_EQ(hello.decisions.size(), 1U);
  EXPECT_EQ(hello.decisions[0].id, 2U);
  EXPECT_EQ(hello.events.at(0).id, 3U);
  EXPECT_EQ(hello.slots, 2U);
  EXPECT_EQ(hello.instance, 9U);
  session.on_welcome({.session = 6});
  session.decide({.id = 3});
  const auto work = session.make_work(3);
  EXPECT_EQ(work.first, 2U) << "the decision in HELLO had number 1";
  EXPECT_TRUE(session.on_orders({.safe = 2}));
  EXPECT_EQ(session.unsafe_decisions(), 0U);
}

TEST(AssignmentSession, AHelloSaysWhichNumbersItsDecisionsHadInTheSessionBefore) {
  AssignmentSession session("node", 9);
  const auto first = session.make_hello(4, {});
  EXPECT_EQ(first.session, 0U) << "there was no session";
  EXPECT_EQ(first.first, 0U);
  session.on_welcome({.session = 5});
  ASSERT_TRUE(session.on_orders({.first = 1, .events = {{.id = 1}, {.id = 2}, {.id = 3}}}));
  session.decide({.id = 1});
  session.decide({.id = 2});
  (void)session.make_work(3);
  ASSERT_TRUE(session.on_orders({.safe = 1}));
  session.close();
  session.decide({.id = 3});
  for (int lost = 0; lost < 2; ++lost) {  // the first message is lost
    const auto hello = session.make_hello(4, {});
    EXPECT_EQ(hello.session, 5U);
    EXPECT_EQ(hello.first, 2U);
    EXPECT_EQ(hello.decisions.size(), 2U);
  }
  session.on_welcome({.session = 6});
  EXPECT_TRUE(session.on_orders({.safe = 2}));
  EXPECT_EQ(session.unsafe_decisions(), 0U);
}

TEST(AssignmentSession, NumbersThatDoNotFollowCloseIt) {
  for (const NodeOrders& orders : {NodeOrders{.first = 2, .events = {{.id = 1}}}, NodeOrders{.safe = 1},
                                   NodeOrders{.first = 1, .events = std::vector<AssignedEvent>(5)}}) {
    auto session = open_session();
    EXPECT_FALSE(session.on_orders(orders));
    EXPECT_FALSE(session.open());
  }
}

TEST(AssignmentSession, NoMoreDecisionsThanAMessageTakes) {
  auto session = open_session();
  for (std::uint64_t id = 0; id < kMostEventsAtOnce + 5; ++id) session.decide({.id = id});
  EXPECT_EQ(session.make_work(4).decisions.size(), kMostEventsAtOnce);
  EXPECT_TRUE(session.has_unsent(4));
  EXPECT_EQ(session.make_work(4).decisions.size(), 5U);
}

}  // namespace
