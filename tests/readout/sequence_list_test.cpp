// Cases with the trigger's own list.
#include <string>
#include <vector>

#include "readout/sequence_rob.h"

namespace rodeo::test {
namespace {

using namespace sequencing;
using readout::TriggerEntries;

// L2
TEST(SequencerWithList, TheExpectedIdIsTakenBeforeItIsListed) {
  Rob rob(2, listed());
  rob.list_run(0, 3);
  rob.offer(0, {0, 1, 2, 3, 4});
  EXPECT_EQ(rob.got(0), "0 1 2 3 4");
}

TEST(SequencerWithList, AGroupsChunkWaitsUntilTheListHasComeToIt) {
  Rob rob(1, listed(), true);
  rob.list_run(0, 2);
  rob.offer(0, {0, 1, 2});
  EXPECT_EQ(rob.got(0), "0 1");
  rob.list(2);
  rob.settle();
  EXPECT_EQ(rob.got(0), "2");
}

// L1
TEST(SequencerWithList, ChunksWaitForTheListToBegin) {
  Rob rob(2, listed());
  rob.offer(0, {7, 8});
  rob.list(7);
  rob.list(8);
  EXPECT_EQ(rob.got(0), "7 8");
}

TEST(SequencerWithList, AFirstEntryThatTheSecondContradictsIsNotBelieved) {
  Rob rob(1, listed());
  rob.list(0x80000);
  rob.list_run(1, 5);
  rob.offer(0, {1, 2});
  EXPECT_EQ(rob.got(0), "1 2");
}

// Ids have 8 bits, and the list is more than a round ahead. Otherwise the first ids are those of the next round.
TEST(SequencerWithList, AFirstEntryIsBelievedOnceTheListGoesOnFromItAfterAFlippedOne) {
  Rob rob(2, listed(8));
  rob.list(0);
  rob.list(0x40000001);
  rob.list_run(2, 400);
  for (std::size_t link : {0U, 1U}) rob.offer(link, {0, 1, 2, 3, 4});
  EXPECT_EQ(rob.got(0), "0 1 2 3 4");
  EXPECT_EQ(rob.got(1), "0 1 2 3 4");
}

// L18
TEST(SequencerWithList, AFirstIdThatTheListMayHaveLostIsFlaggedWhereTheNextRoundHasIt) {
  Rob rob(2, listed(8));
  rob.list_run(3, 300);
  for (std::size_t link : {0U, 1U}) rob.offer(link, {0, 1, 2, 3, 4});
  rob.list_run(300, 301 + 2 * kReach);
  rob.settle();
  EXPECT_EQ(rob.got(0), "256? 257? 258? 259? 260?");
}

// L3
TEST(SequencerWithList, AListedIdWhoseBcidAgreesIsTakenAtOnce) {
  Sequencer::Settings with_bcid = listed();
  with_bcid.has_bcid = true;
  Rob rob(2, with_bcid);
  rob.list_run(0, 30);
  rob.offer(0, 0, 0);
  rob.offer(0, 5, 5);
  EXPECT_EQ(rob.got(0), "0 5");
  rob.offer(0, 12, 99);
  rob.offer(0, 13, 13);
  EXPECT_EQ(rob.got(0), "unlisted 13");
}

TEST(SequencerWithList, ATimeOutSaysNothingWhileSomebodyHoldsTheListUp) {
  Rob rob(2, listed());
  rob.list_run(0, 5);
  rob.offer(0, {0, 1, 2, 3, 4, 40, 41});
  EXPECT_EQ(rob.got(0), "0 1 2 3 4");
  rob.sequencer.set_list_held(true);
  rob.now += 2 * kTimeout;
  rob.settle();
  EXPECT_EQ(rob.got(0), "");
  rob.sequencer.set_list_held(false);
  rob.settle();
  EXPECT_EQ(rob.sequencer.waiting(0), 0U);
}

TEST(SequencerWithList, ALinkWhoseBcidsAreAllOthersIsTakenByItsIds) {
  Sequencer::Settings of = listed();
  of.has_bcid = true;
  Rob rob(2, of);
  rob.list_run(0, 40);
  for (std::uint32_t id = 0; id < 8; ++id) {
    rob.offer(0, id, static_cast<std::uint16_t>(id));
    if (id != 5) rob.offer(1, id, static_cast<std::uint16_t>(1000 + id));
  }
  EXPECT_EQ(rob.got(0), "0 1 2 3 4 5 6 7");
  EXPECT_EQ(rob.got(1), "0 1 2 3 4 6 7");
}

// One of two links is dead, so every second event stays open. The first epoch has an odd number of events, so the live link
// brings the even ids of the second epoch, which are the ids of the open events.
TEST(SequencerWithList, AGroupsLinkThatCrossesAResetBeforeTheListDoesNotGoBack) {
  Rob rob(2, listed(16), true);
  rob.list_run(0, 21);
  for (std::uint32_t id = 1; id < 21; id += 2) rob.offer(1, id);
  rob.got(1);
  rob.offer(1, {0, 2});
  EXPECT_EQ(rob.got(1), "");
  for (std::uint32_t id = 0; id < 3; ++id) rob.list(1 << 24 | id);
  rob.settle();
  EXPECT_EQ(rob.got(1), "1:0 1:2");
}

// The chunk at the reset is lost, so both places are possible.
TEST(SequencerWithList, AGroupsLinkThatLosesTheResetIsFlaggedWhereOpenEventsHaveItsIds) {
  Rob rob(2, listed(16), true);
  rob.list_run(0, 21);
  for (std::uint32_t id = 1; id < 21; id += 2) rob.offer(1, id);
  rob.list(1 << 24);
  rob.got(1);
  rob.offer(1, {2, 4});
  for (std::uint32_t id = 1; id < 2 * kReach + 2; ++id) rob.list(1 << 24 | id);
  rob.settle();
  EXPECT_EQ(rob.got(1), "2? 4?");
}

TEST(SequencerWithList, AConstantOffsetOfTheBcidIsTold) {
  Sequencer::Settings of = listed();
  of.has_bcid = true;
  Rob rob(2, of);
  rob.list_run(0, 60);
  for (std::uint32_t id = 0; id < 10; ++id) rob.offer(0, id, static_cast<std::uint16_t>(id));
  rob.sequencer.suspect(0);
  const auto version = rob.sequencer.version();
  for (std::uint32_t id = 10; id < 30; ++id) rob.offer(0, id, static_cast<std::uint16_t>(id + 3));
  rob.sequencer.suspect(0);
  EXPECT_EQ(rob.sequencer.version(), version) << "it is suspected already";
  const auto told = rob.sequencer.take_place_change(0);
  EXPECT_TRUE(told.is_out_of_step);
  EXPECT_EQ(told.constant, 3);
  for (std::uint32_t id = 30; id < 50; ++id) rob.offer(0, id, static_cast<std::uint16_t>(id));
  EXPECT_FALSE(rob.sequencer.take_place_change(0).is_out_of_step);
  EXPECT_NE(rob.link(0).end, 0) << "it is on the fast path again";
}

// L4, L11, L18
TEST(SequencerWithList, AListedIdWaitsForTheNextWhereNoBcidIsCompared) {
  Rob rob(2, listed());
  rob.list_run(0, 30);
  rob.offer(0, {0, 5});
  EXPECT_EQ(rob.got(0), "0");
  rob.offer(0, 6);
  EXPECT_EQ(rob.got(0), "5 6");
  rob.offer(0, {20, 8, 9});
  EXPECT_EQ(rob.got(0), "out 8 9");
}

// L6, L9
TEST(SequencerWithList, AnIdThatWasDeliveredIsADuplicate) {
  Rob rob(2, listed());
  rob.list_run(0, 30);
  rob.offer(0, {0, 1, 2, 1, 3});
  EXPECT_EQ(rob.got(0), "0 1 2 duplicate 3");
  rob.offer(0, {5, 5, 6});
  EXPECT_EQ(rob.got(0), "duplicate 5 6");
}

// L7
TEST(SequencerWithList, AnIdThatIsNotListedIsLostOnceTheNextGoesOn) {
  Rob rob(2, listed());
  rob.list_run(0, 30);
  rob.offer(0, {0, 1, 0x4002});
  EXPECT_EQ(rob.got(0), "0 1");
  rob.offer(0, 3);
  rob.offer(0, 4);
  EXPECT_EQ(rob.got(0), "unlisted 3 4");
}

// The list stands still during this test.
TEST(SequencerWithList, AnIdThatIsNotListedAndComesTwiceIsLostOnceALaterChunkGoesOn) {
  Rob rob(2, listed());
  rob.list_run(0, 10);
  rob.offer(0, {0, 1, 0x4002, 0x4002});
  EXPECT_EQ(rob.got(0), "0 1");
  rob.offer(0, {3, 4});
  EXPECT_EQ(rob.got(0), "unlisted unlisted 3 4");
}

// L5, L7
TEST(SequencerWithList, AnIdThatIsNotListedWaitsForTheListToGoOnByTwiceTheReachOrForATimeOut) {
  for (const bool list_goes_on : {true, false}) {
    Rob rob(2, listed());
    rob.list_run(0, 10);
    rob.run(0, 2);
    rob.offer(0, {0x4000, 0x5000});
    if (list_goes_on) rob.list_run(10, 10 + 2 * kReach);
    rob.let_time_pass(list_goes_on ? 0 : kTimeout);
    EXPECT_EQ(rob.got(0), "");
    if (list_goes_on) rob.list(10 + 2 * kReach);
    rob.let_time_pass(list_goes_on ? 0 : 1);
    EXPECT_EQ(rob.got(0), "unlisted unlisted");
  }
}

// L17, L18
TEST(SequencerWithList, AnIdFarAheadIsBelievedWhenMostLinksAreThere) {
  Rob rob(3, listed());
  rob.list_run(0, 200);
  rob.run(0, 10);
  rob.offer(0, {100, 101});
  EXPECT_EQ(rob.got(0), "");
  rob.offer(1, {100, 101});
  rob.settle();
  EXPECT_EQ(rob.got(0), "100 101");
  EXPECT_EQ(rob.got(1), "100 101");
}

// L17
TEST(SequencerWithList, AnIdFarAheadOfOneLinkIsOutOfSequenceAfterATimeOut) {
  Rob rob(2, listed());
  rob.list_run(0, 200);
  rob.run(0, 10);
  rob.offer(0, {9 + kReach + kStep, 10 + kReach + kStep});  // the second chunk is the last within reach
  EXPECT_EQ(rob.got(0), "33 34");
  rob.offer(0, {100, 101});
  rob.expect_after_time_out("out out");
}

// L18
TEST(SequencerWithList, AnIdThatTwoEpochsHaveIsFlaggedUntilTheNextReset) {
  Rob rob(1, listed(16));
  for (std::uint32_t epoch = 0; epoch < 3; ++epoch) {
    for (std::uint32_t i = 0; i < 100; ++i) rob.list(epoch << 24 | i);
  }
  rob.offer(0, {0, 1, 2, 60, 61});
  EXPECT_EQ(rob.got(0), "0 1 2 60? 61?");
  for (std::uint32_t id = 62; id < 100; ++id) rob.offer(0, id);
  rob.got(0);
  rob.offer(0, {0, 1});
  EXPECT_EQ(rob.got(0), "1:0 1:1");
}

// L10. The next chunk may be unread. The repeated chunk must not get the same id in the next epoch.
TEST(SequencerWithList, ALastIdThatComesAgainAloneIsADuplicateWhereTheNextEpochHasItToo) {
  Rob rob(1, listed(16));
  for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
    for (std::uint32_t i = 0; i < 100; ++i) rob.list(epoch << 24 | i);
  }
  rob.offer(0, {0, 1, 2, 3, 4, 5, 5});
  rob.finish();
  EXPECT_EQ(rob.got(0), "0 1 2 3 4 5 duplicate");
}

// L16. Ids have 8 bits, and the list is an epoch ahead.
TEST(SequencerWithList, ALeapThatTheNextChunkDoesNotGoOnFromIsNotBelieved) {
  for (const bool again : {true, false}) {
    Rob rob(1, listed(8));
    for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
      for (std::uint32_t i = 0; i < 200; ++i) rob.list(epoch << 24 | i);
    }
    for (std::uint32_t id = 0; id < 100; ++id) rob.offer(0, id);
    rob.got(0);
    rob.offer(0, {again ? 99U : 34U, 116, 101, 102});
    EXPECT_EQ(rob.got(0), again ? "duplicate out 101 102" : "out out 101 102");
  }
}

// L8, L9
TEST(SequencerWithList, OfTwoEqualIdsTheLaterIsBelievedOnceTheListHasGoneOn) {
  Rob rob(1, listed());
  rob.list_run(0, 10);
  rob.offer(0, {0, 9, 9});
  EXPECT_EQ(rob.got(0), "0");
  rob.list(10);
  rob.settle();
  EXPECT_EQ(rob.got(0), "duplicate");
}

// L12
TEST(SequencerWithList, AnIdThatTheListMayHaveAgainSoonWaitsForTheList) {
  Rob rob(1, listed(16));
  rob.list_run(0, 100);
  rob.offer(0, {0, 20, 21});
  EXPECT_EQ(rob.got(0), "0");
  rob.list_run(100, 101 + 2 * kReach);
  rob.settle();
  EXPECT_EQ(rob.got(0), "20 21");
}

// L13, L18
TEST(SequencerWithList, ALeapOfALinkThatLeavesNothingOutWaitsForTheNextChunk) {
  Rob rob(1, listed(24));
  rob.list_run(0, 20);
  rob.run(0, 5);
  rob.offer(0, 18);
  rob.list_run(20, 21 + 2 * kReach);
  rob.settle();
  EXPECT_EQ(rob.got(0), "");
  rob.finish();
  EXPECT_EQ(rob.got(0), "18?");
}

// L14. The next epoch has the id, too.
TEST(SequencerWithList, AnIdThatWasDeliveredAndComesAgainAloneIsADuplicate) {
  Rob rob(1, listed(16));
  for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
    for (std::uint32_t i = 0; i < 100; ++i) rob.list(epoch << 24 | i);
  }
  rob.offer(0, {0, 1, 2, 3, 4, 5, 4});
  rob.sequencer.end_list();
  rob.finish();
  EXPECT_EQ(rob.got(0), "0 1 2 3 4 5 duplicate");
}

// L15
TEST(SequencerWithList, AnIdWhoseNextChunkIsNotListedYetWaitsForTheList) {
  Rob rob(1, listed());
  rob.list_run(0, 12);
  rob.run(0, 3);
  rob.offer(0, {8, 12});
  EXPECT_EQ(rob.got(0), "");
  rob.list(12);
  rob.settle();
  EXPECT_EQ(rob.got(0), "8");
}

TEST(SequencerWithList, LostEntriesOfTheListAreEventsAllTheSame) {
  Rob rob(1, listed());
  rob.list_run(0, 5);
  rob.list_run(7, 10);
  rob.offer(0, {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(rob.got(0), "0 1 2 3 4 5 6 7");
  EXPECT_EQ(rob.sequencer.trigger_entries().at(rob.oldest + 5).state, TriggerEntries::kSkipped);
  EXPECT_EQ(rob.sequencer.trigger_entries().at(rob.oldest + 7).state, TriggerEntries::kListed);
}

TEST(SequencerWithList, ALeapOfTheListIsBelievedWhenTheListGoesOnFromThere) {
  for (const std::uint32_t there : {2U << 24 | 40, 40U}) {
    Rob rob(1, listed());
    rob.list_run(0, 5);
    rob.list_run(there, there + 3);
    rob.list_run(5, 10);
    const auto last = [&] { return rob.sequencer.trigger_entries().at(rob.sequencer.trigger_entries().end() - 1); };
    EXPECT_EQ(last().l1id.value, 9);
    EXPECT_EQ(rob.sequencer.trigger_entries().end(), rob.sequencer.run_first() + 10);
    rob.list(there);
    rob.list_run(there + 2, there + 6);
    EXPECT_EQ(last().l1id.value, there + 5);
    EXPECT_EQ(last().bcid, (there + 5) & 0xfff);
    EXPECT_EQ(rob.sequencer.trigger_entries().at(rob.sequencer.trigger_entries().end() - 5).state, TriggerEntries::kSkipped);
    EXPECT_EQ(rob.sequencer.trigger_entries().at(rob.sequencer.trigger_entries().end() - 6).l1id.value, there);
  }
}

TEST(SequencerWithList, TheListWaitsForRoom) {
  Rob rob(1, listed());
  std::uint32_t id = 0;
  while (rob.sequencer.announce({id, 0, 0}, rob.now, rob.oldest)) {
    ++id;
    rob.oldest = rob.sequencer.run_first();
  }
  EXPECT_LE(id, 4096);
  EXPECT_GT(id, 4096 - 32);
  EXPECT_TRUE(rob.sequencer.announce({id, 0, 0}, rob.now, rob.oldest + 1));
}

}  // namespace
}  // namespace rodeo::test
