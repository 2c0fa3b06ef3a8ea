#include "dispatch/admission.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

namespace {

using namespace rodeo::dispatch;
using Recorded = Admission::Recorded;
using Ids = std::vector<std::uint64_t>;

struct Books {
  explicit Books(std::uint32_t capacity, Admission::Settings settings)
      : dispatcher({.capacity = capacity}), admission(settings) {
    dispatcher.set_room(dispatcher.add_node(), 0);
  }
  auto untold() const {
    return [this](std::uint64_t id) { return !dispatcher.knows(id); };
  }
  Ids ask(std::uint64_t now_ns = 0) {
    const auto ids = admission.ask(now_ns, untold());
    return {ids.begin(), ids.end()};
  }
  /// Answers that no recorder has any of the events.
  void find(const Ids& ids) {
    for (const std::uint64_t id : ids) admission.found(id, 0);
    admission.answer(std::vector(ask().size(), Recorded::no));
  }
  void admit() {
    admission.admit(dispatcher, untold(), [](std::uint64_t id) { return Event{.id = id}; });
  }
  Ids assigned() {
    Ids ids;
    dispatcher.set_room(0, 100);
    dispatcher.assign(0, [&](std::uint32_t, const Event& event, bool) { ids.push_back(event.id); });
    return ids;
  }

  Dispatcher dispatcher;
  Admission admission;
};

TEST(Admission, TriggersNeverTakeTheSlotsThatAreKept) {
  Books books(4, {.kept = 1, .most_untold = 8});
  for (std::uint64_t id = 100; books.admission.room_for_triggers(books.dispatcher) > 0; ++id)
    books.dispatcher.offer({.id = id});
  EXPECT_EQ(books.dispatcher.room(), 1U);
  books.find({5, 6});
  books.admit();
  EXPECT_EQ(books.dispatcher.room(), 0U);
  EXPECT_EQ(books.admission.room_for_triggers(books.dispatcher), 0U);
  EXPECT_EQ(books.admission.untold(), 1U);
  EXPECT_EQ(books.assigned(), (Ids{5, 100, 101, 102}));
}

TEST(Admission, AnIdThatIsFoundAgainAndAgainIsOneEvent) {
  Books books(4, {.kept = 1, .most_untold = 8, .settle_ns = 10});
  for (int i = 0; i < 100; ++i) books.admission.found(7, 0);
  EXPECT_EQ(books.admission.untold(), 1U);
  EXPECT_EQ(books.ask(10), (Ids{7}));
  books.admission.found(7, 11);
  EXPECT_EQ(books.admission.untold(), 1U);
  books.admission.answer(std::vector{Recorded::no});
  books.admission.found(7, 12);
  EXPECT_EQ(books.admission.untold(), 1U);
  books.admit();
  EXPECT_EQ(books.admission.untold(), 0U);
  EXPECT_EQ(books.dispatcher.waiting(), 1U);
}

TEST(Admission, AnIdSettlesByItsOwnTime) {
  Books books(8, {.most_untold = 8, .settle_ns = 10});
  books.admission.found(7, 0);
  books.admission.found(3, 6);
  EXPECT_EQ(books.ask(9), Ids{});
  EXPECT_EQ(books.ask(10), (Ids{7}));
  books.admission.answer(std::vector{Recorded::no});
  EXPECT_EQ(books.ask(15), Ids{});
  EXPECT_EQ(books.ask(16), (Ids{3}));
}

TEST(Admission, WhatWasToldOfMeanwhileIsNoOrphan) {
  Books books(8, {.most_untold = 8, .settle_ns = 10});
  for (const std::uint64_t id : {1, 2, 3}) books.admission.found(id, 0);
  books.dispatcher.offer({.id = 1});
  EXPECT_EQ(books.ask(10), (Ids{2, 3}));
  books.admission.answer(std::vector(2, Recorded::no));
  books.dispatcher.offer({.id = 2});
  books.admission.forget_announced(books.untold());
  EXPECT_EQ(books.admission.untold(), 1U);
  books.admit();
  EXPECT_EQ(books.dispatcher.waiting(), 3U);
  EXPECT_EQ(books.dispatcher.counter(DispatchCounter::repeated_offers), 0U);
}

TEST(Admission, WhatARecorderHasDoesNotComeInAndWhatItDidNotSayIsOnlyBuilt) {
  Books books(8, {.most_untold = 8});
  for (const std::uint64_t id : {1, 2, 3}) books.admission.found(id, 0);
  ASSERT_EQ(books.ask().size(), 3U);
  books.admission.answer(std::vector{Recorded::yes, Recorded::unknown, Recorded::no});
  books.admit();
  books.dispatcher.set_room(0, 8);
  std::vector<std::pair<std::uint64_t, bool>> given;
  books.dispatcher.assign(
      0, [&](std::uint32_t, const Event& event, bool build_only) { given.emplace_back(event.id, build_only); });
  EXPECT_EQ(given, (std::vector<std::pair<std::uint64_t, bool>>{{2, true}, {3, false}}));
}

TEST(Admission, TheListsHaveABoundAndKeepTheOldest) {
  Books books(1, {.kept = 1, .most_untold = 4});
  for (const std::uint64_t id : {9, 8, 7, 6, 5, 10, 4}) books.admission.found(id, 0);
  EXPECT_EQ(books.admission.untold(), 4U);
  EXPECT_FALSE(books.admission.take_overflow()) << "there is no free place yet";
  EXPECT_EQ(books.ask(), (Ids{4, 5, 6, 7}));
  books.admission.found(1, 0);
  EXPECT_EQ(books.admission.untold(), 4U) << "events that recorders are asked about stay";
  books.admission.answer(std::vector(4, Recorded::no));
  books.admission.found(1, 0);
  EXPECT_EQ(books.admission.untold(), 4U);
  books.admission.answer(std::vector(books.ask().size(), Recorded::no));
  books.admit();
  EXPECT_EQ(books.assigned(), (Ids{1}));
  for (int i = 0; i < 2; ++i) {
    books.dispatcher.decide(0, {.id = i == 0 ? 1U : 4U});
    books.dispatcher.cleared(i == 0 ? 1 : 4);
    books.admit();
    books.assigned();
  }
  EXPECT_TRUE(books.admission.take_overflow()) << "readouts are asked again";
  EXPECT_FALSE(books.admission.take_overflow());
}

// Random findings, triggers, answers and decisions: each event is in one place, and every event is admitted.
TEST(Admission, NoEventIsCountedTwiceAndEachComesIn) {
  std::mt19937_64 random(5);
  for (int course = 0; course < 200; ++course) {
    constexpr std::uint64_t kIds = 24;
    Books books(4, {.kept = 1, .most_untold = 1 + random() % 8, .settle_ns = random() % 3});
    std::set<std::uint64_t> held;
    for (std::uint64_t id = 0; id < kIds; ++id) held.insert(id);
    std::set<std::uint64_t> over;
    std::uint64_t told = kIds / 2;
    const auto untold = [&](std::uint64_t id) { return !books.dispatcher.knows(id) && !over.contains(id); };
    for (std::uint64_t now = 0; over.size() < kIds; ++now) {
      ASSERT_LT(now, 10'000U);
      for (const std::uint64_t id : held) {
        if (id < told && untold(id) && random() % 2 == 0) books.admission.found(id, now);
      }
      if (told < kIds && books.admission.room_for_triggers(books.dispatcher) > 0) {
        if (untold(told)) books.dispatcher.offer({.id = told});
        ++told;
      }
      const auto asked = books.admission.ask(now, untold);
      if (!asked.empty() && random() % 2 == 0) books.admission.answer(std::vector(asked.size(), Recorded::no));
      books.admission.admit(books.dispatcher, untold, [](std::uint64_t id) { return Event{.id = id}; });
      for (const std::uint64_t id : books.assigned()) {
        ASSERT_TRUE(over.insert(id).second);
        books.dispatcher.decide(0, {.id = id});
        books.dispatcher.cleared(id);
        held.erase(id);
      }
      books.admission.forget_announced(untold);
      ASSERT_LE(over.size() + books.dispatcher.waiting() + books.admission.untold(), kIds);
    }
    EXPECT_EQ(books.dispatcher.counter(DispatchCounter::repeated_offers), 0U);
  }
}

}  // namespace
