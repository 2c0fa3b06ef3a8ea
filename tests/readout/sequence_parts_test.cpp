// The parts of a Sequencer.
#include <gtest/gtest.h>

#include "readout/builder/global_id.h"
#include "readout/sequence/event_set.h"
#include "readout/sequence/pace.h"
#include "readout/sequence/segments.h"
#include "readout/sequence/trigger_entries.h"
#include "readout/sequence/turns.h"

namespace rodeo::test {
namespace {

using readout::EventSet;
constexpr std::uint64_t kFirstResets = readout::kResetsOrigin;
using readout::Place;
using readout::Segments;
using readout::TriggerEntries;
using readout::Turns;

TEST(EventSet, KnowsWhatHasComeAndTheOldestThatHasNot) {
  EventSet set(64);
  set.begin(1000);
  EXPECT_FALSE(set.has_gap());
  set.add(1000);
  EXPECT_EQ(set.oldest(), 1001);
  set.add(1002);
  EXPECT_TRUE(set.has_gap());
  EXPECT_FALSE(set.has_arrived(1001));
  EXPECT_TRUE(set.has_arrived(1002));
  set.add(1001);
  EXPECT_EQ(set.oldest(), 1003);
  EXPECT_EQ(set.head(), 1003);
}

TEST(EventSet, PassesWhatDoesNotCome) {
  EventSet set(64);
  set.begin(0);
  set.add(1);
  set.add(2);
  set.skip_oldest();
  EXPECT_EQ(set.oldest(), 3);
  EXPECT_FALSE(set.is_beyond(66));
  EXPECT_TRUE(set.is_beyond(67));
}

TEST(EventSet, ForgetsARoundLater) {
  EventSet set(64);
  set.begin(0);
  for (Sequence number = 0; number < 70; ++number) set.add(number);
  EXPECT_TRUE(set.has_arrived(6));
  EXPECT_FALSE(set.has_arrived(5));
  set.raise(72);
  EXPECT_FALSE(set.has_arrived(71));
  EXPECT_TRUE(set.has_gap());
}

TEST(Segments, NumbersAndPlacesAreOneAnother) {
  Segments segments(8);
  segments.open({256, 5}, 1000, 1000);
  EXPECT_EQ(segments.number({256, 5}), Sequence{1000});
  EXPECT_EQ(segments.number({256, 4}), std::nullopt);
  EXPECT_EQ(segments.number({257, 0}), std::nullopt);
  segments.open({257, 0}, 1100, 1050);
  EXPECT_EQ(segments.number({257, 3}), Sequence{1103});
  EXPECT_EQ(segments.number({256, 104}), Sequence{1099});
  EXPECT_EQ(segments.number({256, 105}), std::nullopt);  // this place is beyond the end of the segment
  EXPECT_EQ(segments.segment_of(1099).place(1099), (Place{256, 104}));
  EXPECT_EQ(segments.segment_of(1103).l1id(1103).value, 0x1000003U);
}

TEST(Segments, OneResetMayHaveTwo) {
  Segments segments(8);
  segments.open({256, 0}, 0, 0);
  segments.open({256, 5000}, 100, 50);
  EXPECT_EQ(segments.number({256, 5001}), Sequence{101});
  EXPECT_EQ(segments.number({256, 99}), Sequence{99});
  EXPECT_EQ(segments.number({256, 4999}), std::nullopt);
}

TEST(Segments, TheNewerOfTwoWithTheSameResetsHasAPlaceOfBothEvenWhenItIsOver) {
  Segments segments(8);
  segments.open({256, 0}, 0, 0);
  segments.open({256, 10}, 100, 50);
  segments.open({257, 0}, 150, 140);
  EXPECT_EQ(segments.number({256, 59}), Sequence{149});
  EXPECT_EQ(segments.number({256, 60}), std::nullopt);
  EXPECT_EQ(segments.number({256, 9}), Sequence{9});
}

TEST(Segments, TheOldestAreForgotten) {
  Segments segments(2);
  segments.open({0, 0}, 0, 0);
  segments.open({1, 0}, 10, 5);
  EXPECT_TRUE(segments.full());
  segments.open({2, 0}, 20, 15);
  EXPECT_EQ(segments.oldest().resets, 1);
  EXPECT_EQ(segments.find(3), 0);
  segments.forget(20);
  EXPECT_EQ(segments.size(), 1);
  segments.forget(1000);
  EXPECT_EQ(segments.size(), 1);
}

constexpr Sequence kFirst = Sequence{1} << 32;
constexpr std::int64_t kWrap = 1 << 24;
constexpr formats::IdLayout kCounterOf32{.bits = 32, .has_resets = false};

// L1 id and global id of an event number.
std::pair<std::uint32_t, std::uint64_t> ids_at(const Segments& segments, Sequence number) {
  const readout::Segment& segment = segments.segment_of(number);
  return {segment.l1id(number).value, segment.global_id(number)};
}

TEST(GlobalIds, AWrapOfTheL1IdAddsOneRoundAndTheResetCounterStays) {
  Segments segments(8);
  segments.open({kFirstResets + 5, kWrap - 2}, kFirst, kFirst);
  EXPECT_EQ(ids_at(segments, kFirst), (std::pair{0x05fffffeU, 0x05fffffeUL}));
  EXPECT_EQ(ids_at(segments, kFirst + 2), (std::pair{0x05000000U, 0x06000000UL}));
  EXPECT_EQ(ids_at(segments, kFirst + 2 + kWrap), (std::pair{0x05000000U, 0x07000000UL}));
}

TEST(GlobalIds, AWrapCountsForTheRestOfTheRunAlsoIfTheResetByteMovesLater) {
  Segments segments(8);
  segments.open({kFirstResets + 255, kWrap - 10}, kFirst, kFirst);
  segments.open({kFirstResets + 256, 0}, kFirst + 300, kFirst + 12);
  EXPECT_EQ(ids_at(segments, kFirst + 11), (std::pair{0xff000001U, 0x100000001UL}));
  EXPECT_EQ(ids_at(segments, kFirst + 300), (std::pair{0x00000000U, 0x101000000UL}));
  segments.open({kFirstResets + 257, 0}, kFirst + 1000, kFirst + 700);
  EXPECT_EQ(ids_at(segments, kFirst + 1000), (std::pair{0x01000000U, 0x102000000UL}));
}

TEST(GlobalIds, NumbersThatStayFreeBeforeAResetAreNoWrap) {
  Segments segments(8);
  segments.open({kFirstResets, kWrap - 10}, kFirst, kFirst);
  segments.open({kFirstResets + 1, 0}, kFirst + 300, kFirst + 10);  // the last id that came has 24 bits set
  EXPECT_EQ(ids_at(segments, kFirst + 300), (std::pair{0x01000000U, 0x01000000UL}));
}

TEST(GlobalIds, ACounterOf32BitsWrapsAt32AndHasNoResetCounter) {
  Segments segments(8, kCounterOf32);
  segments.open({kFirstResets, 0xfffffffe}, kFirst, kFirst);
  EXPECT_EQ(ids_at(segments, kFirst), (std::pair{0xfffffffeU, 0xfffffffeUL}));
  EXPECT_EQ(ids_at(segments, kFirst + 2), (std::pair{0U, 0x100000000UL}));
  segments.open({kFirstResets + 1, 0}, kFirst + 300, kFirst + 10);  // the reset counter was restarted
  EXPECT_EQ(ids_at(segments, kFirst + 303), (std::pair{3U, 0x200000003UL}));
}

TEST(GlobalIds, ACounterThatGoesBackToIdsOfTheRunHasWrapped) {
  Segments segments(2);
  for (std::uint64_t resets = 0; resets < 6; ++resets)
    segments.open({kFirstResets + resets, 0}, kFirst + 100 * resets, kFirst + 100 * resets - 50);
  segments.open({kFirstResets + 1, 0}, kFirst + 600, kFirst + 550);
  EXPECT_EQ(ids_at(segments, kFirst + 600), (std::pair{0x01000000U, 0x06000000UL}));
  segments.open({kFirstResets + 2, 0}, kFirst + 700, kFirst + 650);
  EXPECT_EQ(ids_at(segments, kFirst + 700), (std::pair{0x02000000U, 0x07000000UL}));
}

TEST(GlobalIds, ResetsThatWereWrongForAWhileLeaveNoMark) {
  Segments segments(8);
  segments.open({kFirstResets + 5, 0}, kFirst, kFirst);
  segments.open({kFirstResets + 69, 700}, kFirst + 300, kFirst + 100);
  segments.open({kFirstResets + 5, 0}, {kFirstResets + 5, 110}, kFirst + 600, kFirst + 310);
  EXPECT_EQ(ids_at(segments, kFirst + 710), (std::pair{0x0500006eU, 0x0500006eUL}));
}

TEST(GlobalIds, PartsOfEventsCarry24BitsOfTheirRounds) {
  readout::GlobalIds ids(formats::IdLayout{});
  EXPECT_EQ(ids.of(L1Id::of(254, 7), 254), 0xfe000007U);
  EXPECT_EQ(ids.of(L1Id::of(0, 3), 256), 0x100000003U);
  EXPECT_EQ(ids.of(L1Id::of(255, 5), 255), 0xff000005U) << "an event of the epoch before";
  for (std::uint64_t rounds = 256; rounds < 80'000'000; rounds += 4'000'000)
    EXPECT_EQ(ids.of(L1Id::of(7, 9), static_cast<std::uint32_t>(rounds & 0xffffff)), rounds << 24 | 9);
  readout::GlobalIds wide(kCounterOf32);
  EXPECT_EQ(wide.of(L1Id{0xfffffff0}, 0), 0xfffffff0U);
  EXPECT_EQ(wide.of(L1Id{4}, 1), 0x100000004U);
}

TEST(Turns, AChunkOfAnothersTurnStraysOnceTheTurnIsAHabit) {
  Turns turns(2);
  for (Sequence number = 0; number < 17; ++number) turns.is_stray(number % 2, kFirst + number);
  EXPECT_FALSE(turns.is_stray(0, kFirst + 17));
  Turns grown(2);
  for (Sequence number = 0; number < 40; ++number) EXPECT_FALSE(grown.is_stray(number % 2, kFirst + number)) << number;
  EXPECT_TRUE(grown.is_stray(0, kFirst + 41));
  EXPECT_FALSE(grown.is_stray(1, kFirst + 41));
  EXPECT_EQ(grown.likely_link(kFirst + 43), 1);
}

TEST(Turns, TurnsThatAreDealtAnewAreLearnt) {
  Turns turns(2);
  for (Sequence number = 0; number < 40; ++number) turns.is_stray(number % 2, kFirst + number);
  std::uint32_t strays = 0;
  for (Sequence number = 40; number < 120; ++number) strays += turns.is_stray(1 - number % 2, kFirst + number) ? 1 : 0;
  EXPECT_LE(strays, 4);
  turns.set_removed(1, true);
  EXPECT_FALSE(turns.is_stray(0, kFirst + 120));
}

TEST(Pace, NumbersBetweenTwoSegmentsDoNotPutLinksApart) {
  readout::Pace pace(std::uint64_t{1} << 24);
  pace.raise(10'000, 10'000 - 400);  // the first link is at index 400
  pace.measure_skew(10'000, 9'980);
  EXPECT_TRUE(pace.resolves(434)) << "20 events";
  pace.raise(10'302, 10'300);         // this place is at index 2 of the next segment
  pace.measure_skew(10'302, 10'012);  // this link has not yet reached it
  EXPECT_TRUE(pace.resolves(434));
  pace.raise(10'450, 10'300);
  pace.measure_skew(10'450, 10'020);
  EXPECT_FALSE(pace.resolves(434)) << "150 events at least";
}

TEST(TriggerEntries, WhatLiesBetweenIsNoEvent) {
  TriggerEntries book(16);
  book.begin(100);
  book.append(100, {L1Id::of(0, 1), 7, 3, TriggerEntries::kListed});
  book.append(104, {L1Id::of(1, 0), 8, 3, TriggerEntries::kListed});
  EXPECT_EQ(book.end(), 105);
  EXPECT_EQ(book.at(100).bcid, 7);
  EXPECT_EQ(book.at(102).state, TriggerEntries::kNoEvent);
  EXPECT_EQ(book.at(104).l1id.value, L1Id::of(1, 0).value);
  EXPECT_EQ(book.size(), 16);
}

}  // namespace
}  // namespace rodeo::test
