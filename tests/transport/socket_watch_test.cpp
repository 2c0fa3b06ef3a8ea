// SocketWatch and ActiveList: they select the connections to poll.
#include "transport/socket_watch.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "transport/active_list.h"

namespace rodeo::transport {
namespace {

struct Pair {
  Pair() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    here = ControlSocket(base::UniqueFd(ends[0]));
    there = ControlSocket(base::UniqueFd(ends[1]));
  }
  ControlSocket here;
  ControlSocket there;
};

std::vector<void*> ready(SocketWatch& watch) {
  std::vector<void*> all;
  watch.ready([&](void* whose) { all.push_back(whose); });
  return all;
}

TEST(SocketWatch, TellsWhoHasSomethingToSayUntilItWasTaken) {
  std::vector<Pair> pairs(600);
  SocketWatch watch;
  EXPECT_TRUE(ready(watch).empty());
  for (Pair& pair : pairs) ASSERT_TRUE(watch.add(pair.here, &pair));
  EXPECT_TRUE(ready(watch).empty());
  pairs[7].there.say(formats::ControlCredit{.pages = 3});
  pairs[500].there.say(formats::ControlCredit{.pages = 4});
  for (int i = 0; i < 2; ++i) {
    auto those = ready(watch);
    std::ranges::sort(those);
    EXPECT_EQ(those, (std::vector<void*>{&pairs[7], &pairs[500]}));
  }
  ASSERT_TRUE(pairs[7].here.next().value());
  EXPECT_EQ(ready(watch), (std::vector<void*>{&pairs[500]}));
}

TEST(SocketWatch, TellsOfAnEndAndForgetsWhoWasRemoved) {
  Pair one;
  Pair other;
  SocketWatch watch;
  ASSERT_TRUE(watch.add(one.here, &one));
  ASSERT_TRUE(watch.add(other.here, &other));
  one.there.close();
  other.there.close();
  EXPECT_EQ(ready(watch).size(), 2U);
  watch.remove(one.here);
  EXPECT_EQ(ready(watch), (std::vector<void*>{&other}));
  watch.remove(other.here);
  EXPECT_TRUE(ready(watch).empty());
}

struct Thing {
  int visits = 0;
  bool active = false;
};

TEST(ActiveList, VisitsEachOnceAndKeepsThoseWithMoreToDo) {
  Thing once;
  Thing again;
  Thing never;
  ActiveList<Thing> list;
  const auto visit = [&] {
    list.visit([&](Thing& thing) {
      ++thing.visits;
      return &thing == &again && thing.visits < 3;
    });
  };
  list.add(once);
  list.add(once);
  list.add(again);
  for (int i = 0; i < 5; ++i) visit();
  EXPECT_EQ(once.visits, 1);
  EXPECT_EQ(again.visits, 3);
  EXPECT_EQ(never.visits, 0);
  EXPECT_TRUE(list.empty());
}

TEST(ActiveList, WhoIsAddedDuringAVisitComesTheNextTimeAndWhoIsRemovedNever) {
  Thing first;
  Thing second;
  ActiveList<Thing> list;
  list.add(first);
  list.visit([&](Thing& thing) {
    ++thing.visits;
    list.add(second);
    return false;
  });
  EXPECT_EQ(second.visits, 0);
  list.add(first);
  list.remove(first);
  list.visit([&](Thing& thing) { return ++thing.visits < 0; });
  EXPECT_EQ(first.visits, 1);
  EXPECT_EQ(second.visits, 1);
}

}  // namespace
}  // namespace rodeo::transport
