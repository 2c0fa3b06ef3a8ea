#include <string>
#include <vector>

#include "readout/sequence_rob.h"

namespace rodeo::test {
namespace {

using namespace sequencing;

// ---- the beginning of a run

// N5, N7
TEST(Sequencer, TheRunBeginsWhenMostLinksAgree) {
  Rob rob(3, settings());
  rob.offer(0, {5, 6, 7});
  EXPECT_FALSE(rob.sequencer.begun());
  rob.offer(1, {5, 6, 7});
  EXPECT_TRUE(rob.sequencer.begun());
  rob.offer(2, {4, 5});
  EXPECT_EQ(rob.got(0), "5 6 7");
  EXPECT_EQ(rob.got(1), "5 6 7");
  EXPECT_EQ(rob.got(2), "4 5");
}

// ---- a link whose place is not yet known

/// The run begins at 5, and link 2 has not come yet.
class BegunRob : public Rob {
 public:
  BegunRob() : Rob(3, settings()) {
    offer(0, {5, 6, 7});
    offer(1, {5, 6, 7});
    EXPECT_TRUE(sequencer.begun());
  }
};

// Links begin at different events, and the counter wraps between these.
TEST(Sequencer, TheRunBeginsWhereTheCounterComesRound) {
  for (const auto bits : std::initializer_list<std::uint8_t>{8, 16, 24}) {
    const std::uint32_t last = ids_of(bits).low_mask();
    for (const bool early_first : {true, false}) {
      Rob rob(2, settings(bits));
      const std::size_t early = early_first ? 0 : 1;
      if (early_first) rob.offer(early, {last, 0, 1});
      rob.offer(1 - early, {0, 1});
      if (!early_first) rob.offer(early, {last, 0, 1});
      rob.settle();
      const std::string all = rob.got(0) + " | " + rob.got(1);
      const auto at = [&](std::uint32_t i) { return std::to_string(last + i); };
      const std::string from_early = at(0) + " " + at(1) + " " + at(2);
      const std::string from_late = at(1) + " " + at(2);
      EXPECT_EQ(all, early_first ? from_early + " | " + from_late : from_late + " | " + from_early) << int{bits};
    }
  }
}

TEST(Sequencer, TheRunBeginsWhereTheResetCounterComesRound) {
  for (const bool early_first : {true, false}) {
    Rob rob(2, settings(32));
    if (early_first) rob.offer(0, {0xff000063, 0, 1});
    rob.offer(1, {0, 1});
    if (!early_first) rob.offer(0, {0xff000063, 0, 1});
    rob.settle();
    rob.run(2, 6);
    EXPECT_EQ(rob.link(0).position(), rob.link(1).position());
    EXPECT_EQ(rob.sequencer.waiting(0) + rob.sequencer.waiting(1), 0);
  }
}

// The first id of a group's link is just before the begin of the run. The link loses only this chunk.
TEST(Sequencer, ALinkThatBeginsJustBeforeTheRunGoesOnInIt) {
  for (const auto bits : std::initializer_list<std::uint8_t>{8, 16, 24, 32}) {
    Rob rob(3, settings(bits), true);
    rob.offer(2, {0, 3});
    rob.offer(0, {1, 4});
    EXPECT_EQ(rob.got(2), "0 3") << int{bits};
    rob.offer(1, {ids_of(bits).low_mask(), 2, 5, 8});
    EXPECT_EQ(rob.got(1), "out 2 5 8") << int{bits};
  }
}

// N2
TEST(Sequencer, OfTwoEqualIdsOfANewLinkTheLaterIsBelieved) {
  BegunRob rob;
  rob.offer(2, {5, 5, 6});
  EXPECT_EQ(rob.got(2), "duplicate 5 6");
}

// N4
TEST(Sequencer, AFirstChunkThatTheNextDoesNotGoOnFromIsOutOfSequence) {
  BegunRob rob;
  rob.offer(2, {900, 6, 7});
  EXPECT_EQ(rob.got(2), "out 6 7");
}

// N1, N6
TEST(Sequencer, TheOnlyChunkOfALinkWhoseIdIsOutOfReachIsOutOfSequence) {
  BegunRob rob;
  rob.offer(2, 900);
  rob.finish();
  EXPECT_EQ(rob.got(2), "out");
}

// ---- a link that is present

// H1
TEST(Sequencer, TheExpectedIdIsTakenAtOnce) {
  Started rob;
  rob.offer(0, {10, 11});
  EXPECT_EQ(rob.got(0), "10 11");
}

// H2, H10
TEST(Sequencer, AnotherIdWaitsForTheNextChunkUntilHalfOfTheTimeOut) {
  Started rob;
  rob.offer(0, 12);
  rob.now += kTimeout / 2 - 1;
  rob.settle();
  EXPECT_EQ(rob.got(0), "");
  EXPECT_EQ(rob.sequencer.waiting(0), 1);
  rob.now += 1;
  rob.settle();
  EXPECT_EQ(rob.got(0), "12");
  rob.offer(0, {15, 16});
  EXPECT_EQ(rob.got(0), "15 16");
}

// H3
TEST(Sequencer, AnIdThatWasDeliveredIsADuplicate) {
  Started rob;
  rob.offer(0, {9, 10});
  EXPECT_EQ(rob.got(0), "duplicate 10");
}

// H4
TEST(Sequencer, OfTwoEqualIdsTheLaterIsBelieved) {
  Started rob;
  rob.offer(0, {12, 12, 13});
  EXPECT_EQ(rob.got(0), "duplicate 12 13");
}

// H6
TEST(Sequencer, AnIdThatTheLinkHasLatelyLeftOutIsLate) {
  Started rob;
  rob.offer(0, {11, 12, 10, 13});
  EXPECT_EQ(rob.got(0), "11 12 late 13");
}

// H7
TEST(Sequencer, AnIdLongBehindIsOutOfSequenceWhileItsEventIsOpenAndLateAfter) {
  Started rob;
  rob.run(11, 80);
  rob.offer(0, {10, 80});
  EXPECT_EQ(rob.got(0), "out 80");
}

// H6
TEST(Sequencer, AnIdBehindWhoseEventIsClosedIsLate) {
  Started rob;
  rob.offer(0, {15, 16});
  rob.oldest += 15;
  rob.offer(0, {14, 17});
  EXPECT_EQ(rob.got(0), "15 16 late 17");
}

// H5
TEST(Sequencer, AGroupsOpenGapIsFilledByWhoeverBringsIt) {
  Started rob(2, settings(), true);
  rob.offer(0, {10, 14, 16});  // 12 is missing
  rob.offer(1, {11, 13, 15, 12, 17, 19});
  EXPECT_EQ(rob.got(0), "10 14 16");
  EXPECT_EQ(rob.got(1), "11 13 15 12 17 19");
  rob.offer(1, {12, 21});
  EXPECT_EQ(rob.got(1), "duplicate 21");
}

// H8
TEST(Sequencer, ASkipIsBelievedUpToTheReachBeyondTheForemostOfTheOthers) {
  Started rob;
  rob.offer(0, {10 + kReach, 11 + kReach});
  EXPECT_EQ(rob.got(0), "26 27");
  rob.offer(1, {10 + 18 + kReach, 11 + 18 + kReach});  // the other link has already reached 28
  EXPECT_EQ(rob.got(1), "44 45");
}

// H14
TEST(Sequencer, ASkipBeyondTheReachGoesAway) {
  Started rob;
  rob.offer(0, {11 + kReach, 12 + kReach});
  EXPECT_EQ(rob.got(0), "");
  EXPECT_FALSE(rob.link(0).here.load());
}

TEST(Sequencer, ASkipOfAStepIsBelievedHoweverFarTheOthersAreBehind) {
  Started rob;
  for (std::uint32_t id = 10; id < 40; ++id) rob.offer(0, id);
  rob.got(0);
  rob.offer(0, {40 + kStep, 41 + kStep});
  EXPECT_EQ(rob.got(0), "48 49");
  rob.offer(0, {51 + kStep, 52 + kStep});  // the next id would be 50
  EXPECT_EQ(rob.got(0), "");
}

// H9
TEST(Sequencer, AnIdThatTheNextChunkSaysIsWrongIsOutOfSequence) {
  Started rob;
  rob.offer(0, {0x400a, 11, 12});
  EXPECT_EQ(rob.got(0), "out 11 12");
  rob.offer(0, {20, 14, 15});
  EXPECT_EQ(rob.got(0), "out 14 15");
}

// H12
TEST(Sequencer, ALeapOfALinkThatLeavesNothingOutIsNotBelievedIfTheNextChunkMakesNoSense) {
  Started rob;
  rob.offer(0, {8 + kReach, 0x7000, 12, 13, 14});
  EXPECT_EQ(rob.got(0), "out out 12 13 14");
  rob.offer(0, {16, 0x7000, 17, 18});
  EXPECT_EQ(rob.got(0), "16 out 17 18") << "a step is not a jump";
}

// H13
TEST(Sequencer, ALinkMaySkipMostEvents) {
  Started rob;
  rob.offer(0, {13, 25});
  EXPECT_EQ(rob.got(0), "13");
}

// H10, H16
TEST(Sequencer, AtTheEndOfTheRunAReachableIdIsTaken) {
  Started rob;
  rob.offer(0, 12);
  rob.offer(1, 4000);
  rob.finish();
  EXPECT_EQ(rob.got(0), "12");
  EXPECT_EQ(rob.got(1), "out");
}

// H11
TEST(Sequencer, AnIdThatNothingSpeaksForIsOutOfSequence) {
  Started rob;
  rob.offer(0, {20, 19, 10});
  EXPECT_EQ(rob.got(0), "out out 10");
}

TEST(Sequencer, AnEventBeyondTheWindowWaitsUntilMostLinksHavePassedWhatItWouldClose) {
  Started rob;
  const std::uint32_t last = 9 + kWindow;  // this event would close event 9, which both links have passed
  for (std::uint32_t id = 10; id <= last; ++id) rob.offer(0, id);
  EXPECT_EQ(rob.sequencer.waiting(0), 0);
  rob.offer(0, last + 1);
  EXPECT_EQ(rob.sequencer.waiting(0), 1);
  rob.got(0);
  rob.now += kTimeout;
  rob.offer(0, last + 2);
  EXPECT_EQ(rob.got(0), "");
  rob.now += 1;  // the other link is silent now
  rob.settle();
  EXPECT_EQ(rob.got(0), "266 267");
}

// ---- a link that is absent

// A1, A2, A7
TEST(Sequencer, WhatALinkBringsElsewhereIsKeptAside) {
  Started rob;
  rob.offer(0, {500, 501, 502, 506, 507});
  EXPECT_EQ(rob.sequencer.waiting(0), 5);
}

// A3
TEST(Sequencer, ALinkThatComesBackLosesWhatLiesAside) {
  Started rob;
  rob.offer(0, {500, 501, 10, 11});
  EXPECT_EQ(rob.got(0), "out out 10 11");
}

// A6
TEST(Sequencer, AFlippedIdOfALinkThatIsAwayIsOutOfSequence) {
  Started rob(3);
  rob.offer(0, {500, 501, 0x7000, 503, 504});
  rob.offer(1, {500, 501});
  EXPECT_EQ(rob.got(0), "500 501 out 503 504");
}

// A5
TEST(Sequencer, AChunkThatIsSentTwiceByALinkThatIsAwayIsADuplicate) {
  Started rob(3);
  rob.offer(0, {500, 501, 501, 502});
  rob.offer(1, {500, 501});
  EXPECT_EQ(rob.got(0), "500 501 duplicate 502");
}

// A4
TEST(Sequencer, OfTwoEqualIdsOfALinkThatIsAwayTheLaterIsBelieved) {
  Started rob(3);
  rob.offer(0, {500, 501, 505, 505, 506});
  rob.offer(1, {500, 501});
  EXPECT_EQ(rob.got(0), "500 501 duplicate 505 506");
}

// A8
TEST(Sequencer, TheLastIdOfALinkThatIsAwayIsOutOfSequenceIfItIsElsewhere) {
  Started rob(3);
  rob.offer(0, {500, 501, 0x7000});
  for (std::uint32_t id = 10; id < 30; ++id) {
    rob.offer(1, id);
    rob.offer(2, id);
  }
  rob.finish();
  EXPECT_EQ(rob.got(0), "out out out");
}

// A10, A11
TEST(Sequencer, ALinkThatGoesElsewhereAgainLosesWhatLiesAside) {
  Started rob;
  rob.offer(0, {500, 501});
  for (std::uint32_t id = 3000; id < 3000 + kStep; ++id) rob.offer(0, id);
  EXPECT_EQ(rob.got(0), "") << "it may come back";
  rob.offer(0, 3000 + kStep);
  EXPECT_EQ(rob.got(0), "out out");
  EXPECT_EQ(rob.sequencer.waiting(0), kStep + 1);
}

// A9
TEST(Sequencer, FlippedIdsInARowDoNotTakeALinkThatIsAwayElsewhere) {
  Started rob(3);
  rob.offer(0, {500, 501, 0x7000, 0x7001, 502, 503});
  rob.offer(1, {500, 501});
  EXPECT_EQ(rob.got(0), "500 501 out out 502 503");
}

TEST(Sequencer, AFlippedIdBehindAChunkThatGoesOnDoesNotCostThatChunk) {
  Started rob(3);
  rob.offer(0, {500, 501, 0x7000, 503, 0x7002, 505, 506});
  rob.offer(1, {500, 501});
  EXPECT_EQ(rob.got(0), "500 501 out 503 out 505 506");
}

TEST(Sequencer, AnIdBeforeTheFirstOfAnEpochIsNoPlaceToGoTo) {
  Started rob(3);
  rob.offer(0, {0x00ffffff, 0x01000000, 0x01000001});
  rob.offer(1, {0x01000000, 0x01000001});
  EXPECT_EQ(rob.got(0), "out 1:0 1:1");
}

TEST(Sequencer, AnExpectedIdIsOfALaterRoundWhereHalfARoundWasClosed) {
  Started rob(2, settings(8));
  for (std::uint32_t event = 10; event < 10 + 2 * 256; ++event) {
    rob.now += 10;
    rob.offer(0, event & 0xff);
    rob.oldest = rob.link(0).position() - 1;  // the other link is silent, so its events are closed
  }
  rob.offer(1, {10, 11});
  EXPECT_EQ(rob.link(1).position(), rob.link(0).position() + 2);
}

// A12
TEST(Sequencer, MostLinksAreFollowedAtOnce) {
  Started rob(3);
  rob.offer(0, {0x1000000, 0x1000001});
  EXPECT_EQ(rob.got(0), "");
  rob.offer(1, {0x1000000, 0x1000001});
  EXPECT_EQ(rob.got(0), "1:0 1:1");
  EXPECT_EQ(rob.got(1), "1:0 1:1");
  rob.offer(2, {10, 11, 0x1000000, 0x1000001});
  EXPECT_EQ(rob.got(2), "10 11 1:0 1:1");
  EXPECT_EQ(rob.sequencer.skipped(), 0);
}

TEST(Sequencer, AJumpTooLongForTheWindowIsCounted) {
  Started rob(1);
  rob.offer(0, {5000, 5001, 5002});
  EXPECT_EQ(rob.got(0), "5000 5001 5002");
  EXPECT_EQ(rob.sequencer.skipped() + kReach, 5000 - 10);  // the last events before the new ones are built empty
}

TEST(Sequencer, ALinkThatNobodyContradictsIsFollowedWhenItHasLasted) {
  Started rob;
  for (std::uint32_t i = 0; i < 2 * kReach + kStep; ++i) rob.offer(0, 500 + i);
  EXPECT_EQ(rob.got(0), "");
  rob.offer(0, 500 + 2 * kReach + kStep);
  EXPECT_EQ(rob.got(0).substr(0, 7), "500 501");
}

TEST(Sequencer, ALinkThatNobodyContradictsIsFollowedAfterATimeOut) {
  Started rob;
  rob.offer(0, {500, 501});
  rob.expect_after_time_out("500 501");
}

TEST(Sequencer, ALinkThatNobodyContradictsIsFollowedAtTheEndOfTheRun) {
  Started rob;
  rob.offer(0, {500, 501});
  rob.finish();
  EXPECT_EQ(rob.got(0), "500 501");
}

TEST(Sequencer, ALinkIsNotFollowedOnceTheOthersHaveGoneOn) {
  Started rob;
  rob.offer(0, {500, 501});
  for (std::uint32_t id = 10; id < 11 + kStep; ++id) rob.offer(1, id);
  for (std::uint32_t id = 502; id < 700; ++id) rob.offer(0, id);
  rob.now += 2 * kTimeout;
  rob.settle();
  rob.finish();
  EXPECT_EQ(rob.got(0).substr(0, 7), "out out");
}

TEST(Sequencer, ALinkThatWasContradictedIsNoWitnessOfALaterReset) {
  Started rob(3, settings(24));
  rob.offer(0, {0, 1, 2});
  for (std::uint32_t id = 10; id < 60; ++id) {
    rob.offer(1, id);
    rob.offer(2, id);
    rob.offer(0, id - 7);
  }
  rob.got(1);
  rob.offer(1, {0, 1, 2});
  EXPECT_EQ(rob.got(1), "");
  rob.offer(2, {0, 1, 2});
  EXPECT_EQ(rob.got(1), "1:0 1:1 1:2");
  EXPECT_EQ(rob.got(0), "");
}

// A12
TEST(Sequencer, WhatLiesAsideIsTakenWhenTheOthersComeWithinReach) {
  Started rob;
  rob.offer(0, {30, 31});
  for (std::uint32_t id = 10; id < 31 - kReach; ++id) rob.offer(1, id);
  EXPECT_EQ(rob.got(0), "");
  rob.offer(1, 31 - kReach);
  rob.settle();
  EXPECT_EQ(rob.got(0), "30 31");
}

TEST(Sequencer, WhatHasNoRoomAsideIsOutOfSequence) {
  Started rob(3);
  rob.offer(0, {100'000, 100'001});
  for (std::uint32_t id = 10; id < 30; ++id) {
    rob.offer(1, id);
    rob.offer(2, id);
  }
  for (std::uint32_t i = 2; i <= kAside; ++i) rob.offer(0, 100'000 + i);
  EXPECT_EQ(rob.got(0), "out");
  EXPECT_EQ(rob.sequencer.waiting(0), kAside);
}

TEST(Sequencer, ARemovedLinkHasNoVote) {
  Started rob(3);
  rob.offer(0, {500, 501});
  rob.remove(0);
  EXPECT_EQ(rob.got(0), "out out");
  rob.remove(2);
  rob.offer(1, {500, 501});
  EXPECT_EQ(rob.got(1), "500 501");
  rob.sequencer.restore(0, rob.link(1).position());
  rob.offer(0, {502, 503});
  EXPECT_EQ(rob.got(0), "502 503");
}

TEST(Sequencer, HiddenResetsShowAsARestartNearZero) {
  for (const std::uint8_t bits : {std::uint8_t{16}, std::uint8_t{24}}) {
    Rob rob(2, settings(bits));
    rob.run(0, 100);
    rob.offer(0, {0, 1});
    rob.offer(1, {0, 1});
    EXPECT_EQ(rob.got(0), "1:0 1:1");
  }
}

TEST(Sequencer, ALinkThatWasSilentForMoreThanHalfAPeriodComesBackToTheWindow) {
  Rob rob(3, settings(16));
  rob.run(0, 100);
  for (std::uint32_t id = 100; id < 40'100; ++id) {
    rob.offer(1, id);
    rob.offer(2, id);
    rob.oldest = rob.sequencer.run_first() + id - 20;
  }
  rob.offer(0, {40'100, 40'101});
  EXPECT_EQ(rob.got(0), "40100 40101");
}

TEST(Sequencer, IdsWrap) {
  Rob rob(2, settings(8));
  for (std::uint32_t id = 0; id < 600; ++id) {
    rob.offer(0, id & 0xff);
    rob.offer(1, id & 0xff);
    if (id > 20) rob.oldest = rob.sequencer.run_first() + id - 20;
  }
  EXPECT_EQ(rob.got(0).substr(std::string("0 1 2 3").size()).find("out"), std::string::npos);
  EXPECT_EQ(rob.link(0).position() - rob.sequencer.run_first(), 600);
}

TEST(Sequencer, TheLinksOfAGroupMayBeDealtTheEventsAnew) {
  Rob rob(3, settings(), true);
  rob.run(0, 60);
  // One link is gone: two links send all events.
  for (std::uint32_t id = 60; id < 100; ++id) rob.offer(id % 2, id);
  rob.settle();
  EXPECT_EQ(rob.link(0).stride, 2);
  EXPECT_EQ(rob.came.head() - rob.sequencer.run_first(), 100);
  EXPECT_FALSE(rob.came.has_gap());
}

TEST(Sequencer, ARunFedAtOnceIsARunFedChunkByChunk) {
  std::vector<std::uint32_t> ids;
  for (std::uint32_t id = 0; id < 400; ++id) {
    if (id % 50 != 7 && (id < 200 || id > 230)) ids.push_back(id == 120 ? 0x5000 : id < 300 ? id : 0x1000000 + id - 300);
  }
  Rob slow(1, settings());
  Rob fast(1, settings());
  std::string at_once;
  for (std::size_t i = 0; i < ids.size();) {
    LinkSequence& link = fast.link(0);
    const std::uint64_t room = link.end > link.position() ? link.end - link.position() : 0;
    const auto most = static_cast<std::uint32_t>(std::min<std::uint64_t>(room, ids.size() - i));
    const std::uint32_t n = settings().format.count_consecutive(ids.data() + i, most, link.expected);
    at_once += fast.got(0) + " ";
    for (std::uint32_t k = 0; k < n; ++k) {
      const std::uint64_t resets = link.resets - 256;
      at_once += (resets == 0 ? "" : std::to_string(resets) + ":") + std::to_string(link.position() + k - link.base) + " ";
    }
    if (n != 0) {
      link.advance(n, settings().format);
      i += n;
    } else {
      fast.offer(0, ids[i++]);
    }
  }
  for (const std::uint32_t id : ids) slow.offer(0, id);
  slow.finish();
  fast.finish();
  at_once += fast.got(0);
  std::string words;
  for (std::size_t i = 0; i < at_once.size(); ++i) {
    if (at_once[i] != ' ' || (!words.empty() && words.back() != ' ')) words += at_once[i];
  }
  while (!words.empty() && words.back() == ' ') words.pop_back();
  EXPECT_EQ(words, slow.got(0));
}

}  // namespace
}  // namespace rodeo::test
