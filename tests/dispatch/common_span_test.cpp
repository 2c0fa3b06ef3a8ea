#include "dispatch/common_span.h"

#include <gtest/gtest.h>

#include "dispatch/admission.h"

namespace {

using namespace rodeo::dispatch;
using Place = CommonSpan::Place;

TEST(CommonSpan, BeginsWithTheFirstNumberThatAllReadoutsCanHave) {
  CommonSpan span(2, 100);
  EXPECT_FALSE(span.check_time(0));
  span.first(0, 10);
  EXPECT_FALSE(span.check_time(0));
  EXPECT_EQ(span.place_of(10), Place::unknown) << "the other readout may begin later";
  span.first(1, 40);
  EXPECT_TRUE(span.check_time(1));
  EXPECT_FALSE(span.check_time(2)) << "it is reported once";
  EXPECT_EQ(span.place_of(39), Place::before);
  EXPECT_EQ(span.place_of(40), Place::within);
  EXPECT_EQ(span.place_of(UINT64_MAX), Place::within);
}

TEST(CommonSpan, AReadoutThatBringsNothingIsWaitedForAndNoLonger) {
  CommonSpan span(2, 100);
  EXPECT_FALSE(span.check_time(1000));
  span.first(0, 10);
  EXPECT_FALSE(span.check_time(1050)) << "time counts from the first readout that has an event";
  EXPECT_FALSE(span.check_time(1149));
  EXPECT_TRUE(span.check_time(1150));
  EXPECT_EQ(span.place_of(10), Place::within);
  span.first(1, 900);
  EXPECT_EQ(span.place_of(10), Place::within) << "events that were begun continue";
}

TEST(CommonSpan, DeadAndEndedReadoutsAreNotWaitedFor) {
  CommonSpan span(3, 100);
  span.first(0, 10);
  span.lives(1, false);
  EXPECT_FALSE(span.check_time(0));
  span.ended(2);
  EXPECT_TRUE(span.check_time(1));
  EXPECT_EQ(span.place_of(1'000'000), Place::within) << "a readout that never had an event sets no end";
}

TEST(CommonSpan, EndsWithTheLastNumberThatAllHave) {
  CommonSpan span(2, 100);
  for (const std::uint32_t readout : {0, 1}) span.first(readout, 10);
  EXPECT_TRUE(span.check_time(0));
  span.newest(0, 50);
  span.newest(1, 70);
  span.ended(0);
  EXPECT_EQ(span.place_of(50), Place::within);
  EXPECT_EQ(span.place_of(51), Place::after);
  span.ended(1);
  EXPECT_EQ(span.place_of(51), Place::after);
}

TEST(CommonSpan, AStopEndsItWithWhatAllHaveNow) {
  CommonSpan span(3, 100);
  for (const std::uint32_t readout : {0, 1}) span.first(readout, 10);
  span.lives(2, false);
  EXPECT_TRUE(span.check_time(0));
  span.newest(0, 50);
  span.newest(1, 70);
  span.stop();
  span.newest(0, 90);
  EXPECT_EQ(span.place_of(50), Place::within);
  EXPECT_EQ(span.place_of(51), Place::after);
}

TEST(CommonSpan, AStopBeforeTheBeginIsKnownTakesWhatWasTold) {
  CommonSpan one(2, 100);
  one.first(0, 10);
  one.newest(0, 20);
  one.stop();
  EXPECT_EQ(one.place_of(9), Place::before);
  EXPECT_EQ(one.place_of(20), Place::within);
  CommonSpan none(2, 100);
  none.stop();
  EXPECT_EQ(none.place_of(7), Place::before);
}

TEST(CommonSpan, AReadoutThatIsStartedAnewMovesNeitherEnd) {
  CommonSpan span(2, 100);
  for (const std::uint32_t readout : {0, 1}) span.first(readout, 10);
  EXPECT_TRUE(span.check_time(0));
  span.started_anew(1);
  span.first(1, 500);
  EXPECT_EQ(span.place_of(100), Place::within);
  Holders holders;
  holders.add(0);
  EXPECT_TRUE(span.all_have(100, holders)) << "the new one never had it";
  EXPECT_FALSE(span.all_have(500, holders));
  holders.add(1);
  EXPECT_TRUE(span.all_have(500, holders));
}

TEST(CommonSpan, OnlyReadoutsThatMayHaveAnEventAreWaitedFor) {
  CommonSpan span(70, 100);
  Holders holders;
  for (std::uint32_t readout = 0; readout < 68; ++readout) {
    span.first(readout, 0);
    if (readout != 66) holders.add(readout);
  }
  EXPECT_FALSE(span.all_have(5, holders)) << "68 and 69 do not have it, 66 may";
  span.lives(66, false);
  EXPECT_TRUE(span.all_have(5, holders));
  span.lives(66, true);
  span.ended(66);
  EXPECT_TRUE(span.all_have(5, holders)) << "it has reported all that it holds";
}

// The purpose of the span: an event takes a slot only when all readouts have it, or when its time is over.
TEST(Admission, AnEventWithoutTriggerComesInWhenAllReadoutsHaveItOrAfterALimit) {
  CommonSpan span(2, 100);
  for (const std::uint32_t readout : {0, 1}) span.first(readout, 0);
  ASSERT_TRUE(span.check_time(0));
  Dispatcher books({.capacity = 8});
  Admission admission({.most_untold = 8, .settle_ns = 100});
  const auto untold = [&](std::uint64_t id) { return !books.knows(id); };
  const auto find = [&](std::uint32_t readout, std::uint64_t id, std::uint64_t now_ns) {
    admission.found(id, readout, now_ns,
                    [&](std::uint64_t found, const Holders& holders) { return span.all_have(found, holders); });
  };
  const auto let_in = [&](std::uint64_t now_ns) {
    std::vector<std::uint64_t> ids;
    const auto asked = admission.ask(now_ns, untold);
    ids.assign(asked.begin(), asked.end());
    admission.answer(std::vector(ids.size(), Admission::Recorded::no));
    admission.admit(books, untold, [](std::uint64_t id) { return Event{.id = id}; });
    return ids;
  };
  using Ids = std::vector<std::uint64_t>;
  find(0, 1, 0);
  find(0, 2, 0);
  find(0, 2, 5);  // reported again by the same readout
  find(0, 3, 10);
  EXPECT_EQ(let_in(10), Ids{});
  EXPECT_EQ(books.waiting(), 0U) << "no slot is held";
  find(1, 3, 20);
  find(1, 1, 20);
  EXPECT_EQ(let_in(20), (Ids{1, 3}));
  EXPECT_EQ(let_in(99), Ids{});
  EXPECT_EQ(let_in(100), Ids{2}) << "the other readout does not have it";
  EXPECT_EQ(admission.untold(), 0U);
}

}  // namespace
