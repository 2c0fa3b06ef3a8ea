#include <gtest/gtest.h>

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "readout/sequence/event_set.h"
#include "readout/sequence/segments.h"
#include "readout/sequence/sequencer.h"
#include "readout/sequence/trigger_book.h"
#include "readout/sequence/turns.h"
#include "readout/sequence_scenarios.h"

namespace rodeo::test {
namespace {

using readout::Decision;
using readout::EventSet;
using readout::IdFormat;
using readout::LinkSequence;
using readout::Place;
using readout::Segments;
using readout::Sequencer;
using readout::TriggerBook;
using readout::Turns;
using readout::Verdict;

IdFormat ids_of(std::uint8_t bits) {
  TriggerFields fields;
  fields.l1id_bits = std::min<std::uint8_t>(bits, 24);
  fields.has_ecr = bits == 32;
  return IdFormat(fields);
}

constexpr std::uint64_t kReach = 16;
constexpr std::uint64_t kStep = 8;
constexpr std::uint64_t kWindow = 256;
constexpr std::uint64_t kTimeout = 1000;
constexpr std::size_t kAside = 512;

Sequencer::Settings settings(std::uint8_t bits = 32) {
  return {.format = ids_of(bits),
          .has_bcid = false,
          .reach = kReach,
          .step = kStep,
          .window = kWindow,
          .timeout_ns = kTimeout,
          .aside = kAside,
          .listed = false,
          .several_threads = false,
          .list_entries = 0};
}

Sequencer::Settings listed(std::uint8_t bits = 32) {
  Sequencer::Settings of = settings(bits);
  of.listed = true;
  of.list_entries = 4096;
  return of;
}

/// The links of one ROB or one group, and what was decided on their chunks: "5" a chunk taken for index 5 of the first segment, "1:5" of the
/// next, "5?" flagged, and the reason for others.
class Rob {
 public:
  /// `readers` have as many links each, one after the other.
  Rob(std::size_t links, const Sequencer::Settings& settings, bool full = false, std::size_t readers = 1)
      : sequencer(settings), came(kWindow), got_(links) {
    for (std::size_t i = 0; i < links; ++i) {
      links_.push_back(std::make_unique<LinkSequence>());
      sequencer.add(*links_.back(), full ? static_cast<std::uint16_t>(links) : 1, i * readers / links);
    }
    if (full) sequencer.set_events(came);
    full_ = full;
  }

  void offer(std::size_t link, std::uint32_t id, std::uint16_t bcid = 0) {
    sequencer.offer(link, id, bcid, now, oldest, decisions_);
    collect(link);
    if (version_ != sequencer.version()) settle();
  }
  void offer(std::size_t link, std::initializer_list<std::uint32_t> ids) {
    for (const std::uint32_t id : ids) offer(link, id);
  }
  void settle() {
    do {
      version_ = sequencer.version();
      for (std::size_t i = 0; i < links_.size(); ++i) {
        sequencer.settle(i, now, oldest, decisions_);
        collect(i);
      }
    } while (version_ != sequencer.version());
  }
  void finish() {
    for (int round = 0; round < 2; ++round) {
      for (std::size_t i = 0; i < links_.size(); ++i) {
        sequencer.finish(i, now, oldest, decisions_);
        collect(i);
      }
    }
    for (std::size_t i = 0; i < links_.size(); ++i) {
      sequencer.give_up(i, decisions_);
      collect(i);
    }
  }
  void remove(std::size_t link) {
    sequencer.remove(link, decisions_);
    collect(link);
  }
  /// All links bring these events, FULL: in turn.
  void run(std::uint32_t from, std::uint32_t to) {
    for (std::uint32_t id = from; id < to; ++id) {
      for (std::size_t i = 0; i < links_.size(); ++i) {
        if (!full_ || id % links_.size() == i) offer(i, id);
      }
    }
    for (std::string& got : got_) got.clear();
  }
  void list(std::uint32_t id, std::uint16_t bcid = 0) {
    EXPECT_TRUE(sequencer.announce({id, bcid, 0}, now, oldest));
    if (version_ != sequencer.version()) settle();
  }
  void list_run(std::uint32_t from, std::uint32_t to) {
    for (std::uint32_t id = from; id < to; ++id) list(id, static_cast<std::uint16_t>(id & 0xfff));
  }
  std::string got(std::size_t link) { return std::exchange(got_[link], {}); }
  LinkSequence& link(std::size_t i) { return *links_[i]; }

  Sequencer sequencer;
  EventSet came;
  std::uint64_t now = 1;
  Sequence oldest = 0;

 private:
  void collect(std::size_t link) {
    if (oldest == 0 && sequencer.begun()) {
      oldest = sequencer.run_first();
      came.begin(oldest);
    }
    for (const Decision& decision : decisions_) {
      constexpr const char* kReasons[] = {"", "late", "duplicate", "out", "unlisted"};
      std::string text = kReasons[static_cast<std::size_t>(decision.verdict)];
      if (decision.verdict == Verdict::take) {
        if (full_) came.add(decision.sequence);
        if (first_ == 0) first_ = decision.resets;
        if (decision.resets != first_) text = std::to_string(decision.resets - first_) + ":";
        text += std::to_string(decision.sequence - decision.base) + (decision.doubtful ? "?" : "");
      }
      got_[link] += (got_[link].empty() ? "" : " ") + text;
    }
    decisions_.clear();
  }

  std::vector<std::unique_ptr<LinkSequence>> links_;
  std::vector<Decision> decisions_;
  std::vector<std::string> got_;
  std::uint64_t version_ = 0;
  std::uint32_t first_ = 0;
  bool full_ = false;
};

/// Links that have brought the events 0 to 9.
struct Started : Rob {
  explicit Started(std::size_t links = 2, const Sequencer::Settings& of = settings(), bool full = false,
                   std::size_t readers = 1)
      : Rob(links, of, full, readers) {
    run(0, 10 - static_cast<std::uint32_t>(full ? 10 % links : 0));
  }
};

// ---- a link that is here

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

TEST(Sequencer, TheExpectedIdIsTakenAtOnce) {
  Started rob;
  rob.offer(0, {10, 11});
  EXPECT_EQ(rob.got(0), "10 11");
}

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

TEST(Sequencer, AnIdThatWasDeliveredIsADuplicate) {
  Started rob;
  rob.offer(0, {9, 10});
  EXPECT_EQ(rob.got(0), "duplicate 10");
}

TEST(Sequencer, OfTwoEqualIdsTheLaterIsBelieved) {
  Started rob;
  rob.offer(0, {12, 12, 13});
  EXPECT_EQ(rob.got(0), "duplicate 12 13");
}

TEST(Sequencer, AnIdThatTheLinkHasLatelyLeftOutIsLate) {
  Started rob;
  rob.offer(0, {11, 12, 10, 13});
  EXPECT_EQ(rob.got(0), "11 12 late 13");
}

TEST(Sequencer, AnIdLongBehindIsOutOfSequenceWhileItsEventIsOpenAndLateAfter) {
  Started rob;
  rob.run(11, 80);
  rob.offer(0, {10, 80});
  EXPECT_EQ(rob.got(0), "out 80");
}

TEST(Sequencer, AnIdBehindWhoseEventIsClosedIsLate) {
  Started rob;
  rob.offer(0, {15, 16});
  rob.oldest += 15;
  rob.offer(0, {14, 17});
  EXPECT_EQ(rob.got(0), "15 16 late 17");
}

TEST(Sequencer, AGroupsOpenGapIsFilledByWhoeverBringsIt) {
  Started rob(2, settings(), true);
  rob.offer(0, {10, 14, 16});  // 12 is missing
  rob.offer(1, {11, 13, 15, 12, 17, 19});
  EXPECT_EQ(rob.got(0), "10 14 16");
  EXPECT_EQ(rob.got(1), "11 13 15 12 17 19");
  rob.offer(1, {12, 21});
  EXPECT_EQ(rob.got(1), "duplicate 21");
}

TEST(Sequencer, ASkipIsBelievedUpToTheReachBeyondTheForemostOfTheOthers) {
  Started rob;
  rob.offer(0, {10 + kReach, 11 + kReach});
  EXPECT_EQ(rob.got(0), "26 27");
  rob.offer(1, {10 + 18 + kReach, 11 + 18 + kReach});  // the other has come to 28
  EXPECT_EQ(rob.got(1), "44 45");
}

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
  rob.offer(0, {51 + kStep, 52 + kStep});  // 50 was expected
  EXPECT_EQ(rob.got(0), "");
}

TEST(Sequencer, AnIdThatTheNextChunkSaysIsWrongIsOutOfSequence) {
  Started rob;
  rob.offer(0, {0x400a, 11, 12});
  EXPECT_EQ(rob.got(0), "out 11 12");
  rob.offer(0, {20, 14, 15});
  EXPECT_EQ(rob.got(0), "out 14 15");
}

TEST(Sequencer, ALinkMaySkipMostEvents) {
  Started rob;
  rob.offer(0, {13, 25});
  EXPECT_EQ(rob.got(0), "13");
}

TEST(Sequencer, AtTheEndOfTheRunAReachableIdIsTaken) {
  Started rob;
  rob.offer(0, 12);
  rob.offer(1, 4000);
  rob.finish();
  EXPECT_EQ(rob.got(0), "12");
  EXPECT_EQ(rob.got(1), "out");
}

TEST(Sequencer, AnIdThatNothingSpeaksForIsOutOfSequence) {
  Started rob;
  rob.offer(0, {20, 19, 10});
  EXPECT_EQ(rob.got(0), "out out 10");
}

TEST(Sequencer, AnEventBeyondTheWindowWaitsUntilMostLinksHavePassedWhatItWouldClose) {
  Started rob;
  const std::uint32_t last = 9 + kWindow;  // it would close event 9, which both have passed
  for (std::uint32_t id = 10; id <= last; ++id) rob.offer(0, id);
  EXPECT_EQ(rob.sequencer.waiting(0), 0);
  rob.offer(0, last + 1);
  EXPECT_EQ(rob.sequencer.waiting(0), 1);
  rob.got(0);
  rob.now += kTimeout;
  rob.offer(0, last + 2);
  EXPECT_EQ(rob.got(0), "");
  rob.now += 1;  // the other is silent now
  rob.settle();
  EXPECT_EQ(rob.got(0), "266 267");
}

// ---- a link that is away

TEST(Sequencer, WhatALinkBringsElsewhereIsKeptAside) {
  Started rob;
  rob.offer(0, {500, 501, 502, 506, 507});
  EXPECT_EQ(rob.sequencer.waiting(0), 5);
}

TEST(Sequencer, ALinkThatComesBackLosesWhatLiesAside) {
  Started rob;
  rob.offer(0, {500, 501, 10, 11});
  EXPECT_EQ(rob.got(0), "out out 10 11");
}

TEST(Sequencer, AFlippedIdOfALinkThatIsAwayIsOutOfSequence) {
  Started rob(3);
  rob.offer(0, {500, 501, 0x7000, 503, 504});
  rob.offer(1, {500, 501});
  EXPECT_EQ(rob.got(0), "500 501 out 503 504");
}

TEST(Sequencer, AChunkThatIsSentTwiceByALinkThatIsAwayIsADuplicate) {
  Started rob(3);
  rob.offer(0, {500, 501, 501, 502});
  rob.offer(1, {500, 501});
  EXPECT_EQ(rob.got(0), "500 501 duplicate 502");
}

TEST(Sequencer, ALinkThatGoesElsewhereAgainLosesWhatLiesAside) {
  Started rob;
  rob.offer(0, {500, 501});
  for (std::uint32_t id = 3000; id < 3000 + kStep; ++id) rob.offer(0, id);
  EXPECT_EQ(rob.got(0), "") << "it may come back";
  rob.offer(0, 3000 + kStep);
  EXPECT_EQ(rob.got(0), "out out");
  EXPECT_EQ(rob.sequencer.waiting(0), kStep + 1);
}

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
    rob.oldest = rob.link(0).position() - 1;  // the other is silent: its events are closed
  }
  rob.offer(1, {10, 11});
  EXPECT_EQ(rob.link(1).position(), rob.link(0).position() + 2);
}

// ---- several readers

TEST(Sequencer, NobodyIsFollowedAgainstLinksThatHaveNotBeenRead) {
  Started rob(4, settings(), false, 2);
  const auto last = static_cast<std::uint32_t>(600 + 2 * kReach + kStep);
  for (std::uint32_t id = 600; id <= last; ++id) {
    rob.offer(0, id);
    rob.offer(1, id);
  }
  EXPECT_EQ(rob.got(0), "");
  EXPECT_TRUE(rob.sequencer.may_be_told(0, 1, 2));
  EXPECT_FALSE(rob.sequencer.may_be_told(0, 0, 1)) << "its own reader has told all it has";
  EXPECT_TRUE(rob.sequencer.someone_is_held_up());
  rob.sequencer.looked(1);
  EXPECT_FALSE(rob.sequencer.may_be_told(0, 1, 2));
  rob.offer(0, last + 1);
  EXPECT_EQ(rob.got(0).substr(0, 11), "600 601 602");
}

TEST(Sequencer, ALinkThatJumpsAloneIsNotFollowedOnceTheOthersAreRead) {
  Started rob(4, settings(), false, 2);
  for (std::uint32_t id = 600; id < 700; ++id) rob.offer(0, id);
  EXPECT_EQ(rob.got(0), "");
  for (std::uint32_t id = 10; id < 60; ++id) {
    for (std::size_t link = 1; link < 4; ++link) rob.offer(link, id);
  }
  EXPECT_FALSE(rob.sequencer.may_be_told(0, 1, 2));
  rob.finish();
  EXPECT_EQ(rob.got(0).substr(0, 11), "out out out");
}

TEST(Sequencer, ALinkThatFillsTheWindowWaitsForThoseThatAreReadLater) {
  Started rob(2, settings(), false, 2);
  constexpr std::uint32_t kFull = 10 + kWindow;  // event 10 is the first that the other has not passed
  constexpr std::uint32_t kLast = kFull + 2 * kReach + kStep;
  for (std::uint32_t id = 10; id < kLast; ++id) rob.offer(0, id);
  EXPECT_EQ(rob.link(0).position(), rob.oldest + kFull);
  EXPECT_TRUE(rob.sequencer.may_be_told(0, 1, 2));
  EXPECT_EQ(rob.link(0).end, 0) << "it asks again";
  rob.sequencer.looked(1);  // the other has nothing: it has stood still while this one filled the window and went on
  rob.offer(0, kLast);
  EXPECT_EQ(rob.sequencer.waiting(0), 0U);
}

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
  EXPECT_EQ(rob.sequencer.skipped() + kReach, 5000 - 10);  // the last before it are built empty
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
  rob.now += kTimeout;
  rob.offer(1, 10);
  rob.settle();
  EXPECT_EQ(rob.got(0), "");
  rob.now += 1;
  rob.settle();
  EXPECT_EQ(rob.got(0), "500 501");
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
  rob.sequencer.take_back(0, rob.link(1).position());
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
  // One is gone: two bring them all.
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
    const std::uint32_t n = settings().format.consecutive(ids.data() + i, most, link.expected);
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

// ---- with the trigger's list

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
  rob.sequencer.hold_list(true);
  rob.now += 2 * kTimeout;
  rob.settle();
  EXPECT_EQ(rob.got(0), "");
  rob.sequencer.hold_list(false);
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

TEST(SequencerWithList, AnIdThatWasDeliveredIsADuplicate) {
  Rob rob(2, listed());
  rob.list_run(0, 30);
  rob.offer(0, {0, 1, 2, 1, 3});
  EXPECT_EQ(rob.got(0), "0 1 2 duplicate 3");
  rob.offer(0, {5, 5, 6});
  EXPECT_EQ(rob.got(0), "duplicate 5 6");
}

TEST(SequencerWithList, AnIdThatIsNotListedIsLostOnceTheNextGoesOn) {
  Rob rob(2, listed());
  rob.list_run(0, 30);
  rob.offer(0, {0, 1, 0x4002});
  EXPECT_EQ(rob.got(0), "0 1");
  rob.offer(0, 3);
  rob.offer(0, 4);
  EXPECT_EQ(rob.got(0), "unlisted 3 4");
}

TEST(SequencerWithList, AnIdThatIsNotListedWaitsForTheListToGoOnByTwiceTheReach) {
  Rob rob(2, listed());
  rob.list_run(0, 10);
  rob.run(0, 2);
  rob.offer(0, {0x4000, 0x5000});
  rob.list_run(10, 10 + 2 * kReach);
  rob.settle();
  EXPECT_EQ(rob.got(0), "");
  rob.list(10 + 2 * kReach);
  rob.settle();
  EXPECT_EQ(rob.got(0), "unlisted unlisted");
}

TEST(SequencerWithList, AnIdThatIsNotListedWaitsForATimeOut) {
  Rob rob(2, listed());
  rob.list_run(0, 10);
  rob.run(0, 2);
  rob.offer(0, {0x4000, 0x5000});
  rob.now += kTimeout;
  rob.settle();
  EXPECT_EQ(rob.got(0), "");
  rob.now += 1;
  rob.settle();
  EXPECT_EQ(rob.got(0), "unlisted unlisted");
}

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

TEST(SequencerWithList, AnIdFarAheadOfOneLinkIsOutOfSequenceAfterATimeOut) {
  Rob rob(2, listed());
  rob.list_run(0, 200);
  rob.run(0, 10);
  rob.offer(0, {9 + kReach + kStep, 10 + kReach + kStep});  // the second is the last within reach
  EXPECT_EQ(rob.got(0), "33 34");
  rob.offer(0, {100, 101});
  rob.now += kTimeout;
  rob.offer(1, 10);
  rob.settle();
  EXPECT_EQ(rob.got(0), "");
  rob.now += 1;
  rob.settle();
  EXPECT_EQ(rob.got(0), "out out");
}

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

TEST(SequencerWithList, LostEntriesOfTheListAreEventsAllTheSame) {
  Rob rob(1, listed());
  rob.list_run(0, 5);
  rob.list_run(7, 10);
  rob.offer(0, {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(rob.got(0), "0 1 2 3 4 5 6 7");
  EXPECT_EQ(rob.sequencer.book().at(rob.oldest + 5).state, TriggerBook::kSkipped);
  EXPECT_EQ(rob.sequencer.book().at(rob.oldest + 7).state, TriggerBook::kListed);
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

// ---- runs that once were lost or wrong

struct Case {
  std::uint32_t bits = 32;
  bool full = false;
  bool listed = false;
  std::size_t links = 1;
  std::vector<std::uint32_t> epochs;
  std::function<bool(std::size_t, std::size_t)> lost = [](std::size_t, std::size_t) { return false; };  // event, link
  std::function<std::size_t(std::size_t)> turn = nullptr;
  std::function<std::uint32_t(std::size_t, std::size_t, std::uint32_t)> id = nullptr;  // event, link, true id
  double list_behind = 0;
  std::uint32_t epoch = 0;
};

Judged result_of(const Case& c) {
  Scenario s;
  s.bits = c.bits;
  s.full = c.full;
  s.listed = c.listed;
  s.links = c.links;
  s.reach = 16;
  s.window = std::bit_ceil(4 * s.reach + 2 * kScenarioStep * (c.full ? c.links : 1));
  s.timeout = 8 * s.reach + 40;
  for (std::size_t e = 0; e < c.epochs.size(); ++e) {
    for (std::uint32_t i = 0; i < c.epochs[e]; ++i) {
      s.truth.push_back(((c.epoch + static_cast<std::uint32_t>(e)) & 0xff) << 24 | i);
      s.epoch.push_back(e);
    }
  }
  s.bcids.resize(s.truth.size());
  for (std::size_t link = 0; link < c.links; ++link) {
    double last = 0;
    for (std::size_t g = 0; g < s.truth.size(); ++g) {
      if ((c.full && (c.turn ? c.turn(g) : g % c.links) != link) || c.lost(g, link)) continue;
      last = std::max(last, static_cast<double>(g + (g / 24 * 7 + link * 5) % 8) + static_cast<double>(link) * 1e-3 + 1);
      const std::uint32_t truth = c.id ? c.id(g, link, s.truth[g]) : s.truth[g];
      s.chunks.push_back({static_cast<std::uint64_t>(last * 1000), link, g, id_of(truth, c.bits), 0, 0});
    }
  }
  std::stable_sort(s.chunks.begin(), s.chunks.end(), [](const SentChunk& x, const SentChunk& y) { return x.at < y.at; });
  if (c.listed) {
    for (std::size_t g = 0; g < s.truth.size(); ++g) {
      const double at = std::max(0.0, static_cast<double>(g) + 1 + c.list_behind);
      s.list.push_back({static_cast<std::uint64_t>(at * 1000), 0, g, s.truth[g], 0, 0});
    }
  }
  return ScenarioRun(s).run();
}

void expect_all_built(const Case& c, std::uint64_t empty = 0, std::uint64_t skipped = 0) {
  const Judged judged = result_of(c);
  EXPECT_EQ(judged.lost, 0);
  EXPECT_EQ(judged.right, judged.chunks);
  EXPECT_EQ(judged.empty, empty);
  EXPECT_EQ(judged.skipped, skipped);
  EXPECT_EQ(judged.silent + judged.spurious + judged.without_fate + judged.head, 0);
}

TEST(SequenceCases, AGroupMayChangeTurnsAtASeam) {
  const Judged judged =
      result_of({.full = true, .links = 3, .epochs = {3005}, .turn = [](std::size_t g) { return g % 601 % 3; }});
  EXPECT_EQ(judged.lost, 0);
  EXPECT_EQ(judged.right + judged.flagged, 3005);
  EXPECT_LE(judged.flagged, 300);
}

TEST(SequenceCases, WhatALoneLinkLosesIsCounted) {
  for (const std::size_t lost : {64, 65}) {
    expect_all_built(
        {.full = true, .epochs = {2000}, .lost = [=](std::size_t g, std::size_t) { return g >= 500 && g < 500 + lost; }},
        lost);
  }
}

TEST(SequenceCases, WhatAllLinksLoseIsCounted) {
  for (const bool full : {true, false}) {
    const Judged judged =
        result_of({.full = full, .links = full ? 3U : 1U, .epochs = {9000}, .lost = [](std::size_t g, std::size_t) {
                     return g >= 500 && g < 5500;
                   }});
    EXPECT_EQ(judged.lost, 0);
    EXPECT_EQ(judged.right, 4000);
    EXPECT_EQ(judged.empty + judged.skipped + judged.tail, 5000);
    EXPECT_EQ(judged.silent, 0);
  }
}

TEST(SequenceCases, OneChunkInAHundredMayBeLost) {
  expect_all_built({.bits = 24, .epochs = {9000}, .lost = [](std::size_t g, std::size_t) { return g % 100 == 3; }}, 90);
}

TEST(SequenceCases, TheEndOfARunThatAGroupDoesNotBringIsNotKnown) {
  const Judged judged =
      result_of({.full = true, .links = 2, .epochs = {2000}, .lost = [](std::size_t g, std::size_t) { return g >= 1500; }});
  EXPECT_EQ(judged.right, 1500);
  EXPECT_EQ(judged.tail, 500);
}

TEST(SequenceCases, TheListMayBeAheadOrBehind) {
  for (const double behind : {-300.0, -16.0, 0.0, 16.0}) {
    for (const std::uint32_t bits : {16U, 24U, 32U}) {
      SCOPED_TRACE(behind);
      expect_all_built({.bits = bits, .listed = true, .links = 4, .epochs = {500, 700, 300, 900}, .list_behind = behind});
      expect_all_built(
          {.bits = bits, .full = true, .listed = true, .links = 2, .epochs = {500, 700, 300, 900}, .list_behind = behind});
    }
    expect_all_built({.bits = 8, .full = true, .listed = true, .links = 2, .epochs = {3000}, .list_behind = behind});
  }
}

TEST(SequenceCases, EpochsMayBeShort) {
  std::vector<std::uint32_t> epochs(60, 16);
  epochs.push_back(1);
  expect_all_built({.bits = 16, .listed = true, .links = 4, .epochs = epochs});
  expect_all_built({.bits = 32, .listed = true, .links = 4, .epochs = epochs});
  expect_all_built({.bits = 32, .links = 4, .epochs = epochs});
}

TEST(SequenceCases, LinksThatSkipMostEventsWithHiddenResetsAndTheListAreRightOrFlagged) {
  const Judged judged = result_of(
      {.bits = 8, .listed = true, .links = 4, .epochs = {100, 80, 90, 110, 70}, .lost = [](std::size_t g, std::size_t i) {
         return (g * 7919 + i * 104'729) % 100 > 26;
       }});
  EXPECT_EQ(judged.wrong + judged.wrong_incomplete, 0);
  EXPECT_LE(judged.lost, judged.chunks / 50);
}

TEST(SequenceCases, LinksMayBeSilentAndReturnTogether) {
  const auto silent = [](std::size_t g, std::size_t) { return g >= 500 && g < 800; };
  const Judged judged = result_of({.links = 4, .epochs = {2000}, .lost = silent});
  EXPECT_EQ(judged.lost, 0);
  EXPECT_EQ(judged.empty + judged.skipped, 300);
  expect_all_built({.listed = true, .links = 4, .epochs = {2000}, .lost = silent}, 300);
}

TEST(SequenceCases, AllLinksMaySkipAHundredAtOnce) {
  const Judged judged =
      result_of({.links = 6, .epochs = {2000}, .lost = [](std::size_t g, std::size_t) { return g >= 500 && g < 600; }});
  EXPECT_EQ(judged.lost, 0);
  EXPECT_EQ(judged.empty + judged.skipped, 100);
}

TEST(SequenceCases, AFlippedIdCostsItsChunk) {
  const Judged judged =
      result_of({.bits = 24, .links = 8, .epochs = {2000}, .id = [](std::size_t g, std::size_t i, std::uint32_t truth) {
                   return (g == 400 && i == 2) || (g == 900 && i == 5) ? truth ^ 1U << 22 : truth;
                 }});
  EXPECT_EQ(judged.lost, 2);
  EXPECT_EQ(judged.right, 15'998);
  EXPECT_EQ(judged.skipped, 0);
}

TEST(SequenceCases, AGroupsIdsMayWrap) {
  const Judged judged = result_of(
      {.bits = 24, .full = true, .links = 3, .epochs = {600}, .id = [](std::size_t, std::size_t, std::uint32_t truth) {
         return (truth + (1U << 24) - 300) & 0xffffff;
       }});
  EXPECT_EQ(judged.lost, 0);
  EXPECT_EQ(judged.skipped, 0);
}

TEST(SequenceCases, AWholePeriodOfIdsThatAllLinksLoseIsNotSeen) {
  const Judged judged = result_of(
      {.bits = 8, .links = 4, .epochs = {2000}, .lost = [](std::size_t g, std::size_t) { return g >= 500 && g < 756; }});
  EXPECT_EQ(judged.lost, 0);
  EXPECT_EQ(judged.empty, 0);
}

TEST(SequenceCases, TheTailOfAnEpochThatAllLinksLoseIsNotSeen) {
  const Judged judged =
      result_of({.links = 4, .epochs = {500, 500}, .lost = [](std::size_t g, std::size_t) { return g >= 480 && g < 500; }});
  EXPECT_EQ(judged.right, judged.chunks);
  EXPECT_EQ(judged.tail, 20);
}

// ---- the parts

TEST(EventSet, KnowsWhatHasComeAndTheOldestThatHasNot) {
  EventSet set(64);
  set.begin(1000);
  EXPECT_FALSE(set.has_gap());
  set.add(1000);
  EXPECT_EQ(set.oldest(), 1001);
  set.add(1002);
  EXPECT_TRUE(set.has_gap());
  EXPECT_FALSE(set.came(1001));
  EXPECT_TRUE(set.came(1002));
  set.add(1001);
  EXPECT_EQ(set.oldest(), 1003);
  EXPECT_EQ(set.head(), 1003);
}

TEST(EventSet, PassesWhatDoesNotCome) {
  EventSet set(64);
  set.begin(0);
  set.add(1);
  set.add(2);
  set.pass();
  EXPECT_EQ(set.oldest(), 3);
  EXPECT_FALSE(set.beyond(66));
  EXPECT_TRUE(set.beyond(67));
}

TEST(EventSet, ForgetsARoundLater) {
  EventSet set(64);
  set.begin(0);
  for (Sequence number = 0; number < 70; ++number) set.add(number);
  EXPECT_TRUE(set.came(6));
  EXPECT_FALSE(set.came(5));
  set.raise(72);
  EXPECT_FALSE(set.came(71));
  EXPECT_TRUE(set.has_gap());
}

TEST(Segments, NumbersAndPlacesAreOneAnother) {
  Segments segments(8);
  segments.open({256, 5}, 1000);
  EXPECT_EQ(segments.number({256, 5}), Sequence{1000});
  EXPECT_EQ(segments.number({256, 4}), std::nullopt);
  EXPECT_EQ(segments.number({257, 0}), std::nullopt);
  segments.open({257, 0}, 1100);
  EXPECT_EQ(segments.number({257, 3}), Sequence{1103});
  EXPECT_EQ(segments.number({256, 104}), Sequence{1099});
  EXPECT_EQ(segments.number({256, 105}), std::nullopt);  // beyond its end
  EXPECT_EQ(segments.of(1099).place(1099), (Place{256, 104}));
  EXPECT_EQ(segments.of(1103).l1id(1103).value, 0x1000003U);
}

TEST(Segments, OneResetMayHaveTwo) {
  Segments segments(8);
  segments.open({256, 0}, 0);
  segments.open({256, 5000}, 100);
  EXPECT_EQ(segments.number({256, 5001}), Sequence{101});
  EXPECT_EQ(segments.number({256, 99}), Sequence{99});
  EXPECT_EQ(segments.number({256, 4999}), std::nullopt);
}

TEST(Segments, TheOldestAreForgotten) {
  Segments segments(2);
  segments.open({0, 0}, 0);
  segments.open({1, 0}, 10);
  EXPECT_TRUE(segments.full());
  segments.open({2, 0}, 20);
  EXPECT_EQ(segments.oldest().resets, 1);
  EXPECT_EQ(segments.find(3), 0);
  segments.forget(20);
  EXPECT_EQ(segments.size(), 1);
  segments.forget(1000);
  EXPECT_EQ(segments.size(), 1);
}

constexpr Sequence kFirst = Sequence{1} << 32;

TEST(Turns, AChunkOfAnothersTurnStraysOnceTheTurnIsAHabit) {
  Turns turns(2);
  for (Sequence number = 0; number < 17; ++number) turns.strays(number % 2, kFirst + number);
  EXPECT_FALSE(turns.strays(0, kFirst + 17));
  Turns grown(2);
  for (Sequence number = 0; number < 40; ++number) EXPECT_FALSE(grown.strays(number % 2, kFirst + number)) << number;
  EXPECT_TRUE(grown.strays(0, kFirst + 41));
  EXPECT_FALSE(grown.strays(1, kFirst + 41));
  EXPECT_EQ(grown.likely_link(kFirst + 43), 1);
}

TEST(Turns, TurnsThatAreDealtAnewAreLearnt) {
  Turns turns(2);
  for (Sequence number = 0; number < 40; ++number) turns.strays(number % 2, kFirst + number);
  std::uint32_t strays = 0;
  for (Sequence number = 40; number < 120; ++number) strays += turns.strays(1 - number % 2, kFirst + number) ? 1 : 0;
  EXPECT_LE(strays, 4);
  turns.set_removed(1, true);
  EXPECT_FALSE(turns.strays(0, kFirst + 120));
}

TEST(TriggerBook, WhatLiesBetweenIsNoEvent) {
  TriggerBook book(16);
  book.begin(100);
  book.append(100, {L1Id::of(0, 1), 7, 3, TriggerBook::kListed});
  book.append(104, {L1Id::of(1, 0), 8, 3, TriggerBook::kListed});
  EXPECT_EQ(book.end(), 105);
  EXPECT_EQ(book.at(100).bcid, 7);
  EXPECT_EQ(book.at(102).state, TriggerBook::kNot);
  EXPECT_EQ(book.at(104).l1id.value, L1Id::of(1, 0).value);
  EXPECT_EQ(book.size(), 16);
}

}  // namespace
}  // namespace rodeo::test
