// The four parts of a Sequencer, each asked alone.
#include <memory>
#include <vector>

#include "readout/sequence_rob.h"

namespace rodeo::test {
namespace {

using namespace sequencing;
using readout::Credibility;
using readout::kRunFirst;
using readout::Link;
using readout::LinkPhase;
using readout::Links;
using readout::Numbers;
using readout::Place;
using readout::Room;
using readout::SequencerSettings;
using readout::Silences;
using readout::TriggerNumbers;
using readout::Waits;

constexpr std::uint64_t kResets = readout::kResetsOrigin;

/// Links that are here, in a run that has begun at index 0. Each of `readers` has the same number of successive links and a
/// window of its own.
struct Parts {
  explicit Parts(std::size_t count, const SequencerSettings& of = sequencing::settings(), std::size_t readers = 1)
      : settings(of) {
    for (std::size_t i = 0; i < count; ++i) {
      sequences.push_back(std::make_unique<LinkSequence>());
      links.add(*sequences.back(), i * readers / count, i * readers / count);
      waits.add_window(i * readers / count);
    }
    links.begin_run();
    numbers.begin({kResets, 0});
    for (Link& link : links) {
      links.on_chunk(link, 1);
      put(link, 0);
    }
  }
  /// The link is here, and next brings the event with this index of the newest segment.
  void put(Link& link, std::uint64_t index) const {
    const readout::Segment& segment = numbers.segments().newest();
    link.sequence.next = segment.base + index;
    link.sequence.here = true;
    numbers.enter_segment(link.sequence, segment);
  }
  /// The link has gone away, and has brought `chunks` chunks from this place on.
  void go_away(Link& link, const Place& place, std::size_t chunks) {
    link.left = link.sequence.place();
    link.sequence.here = false;
    links.set_phase(link, LinkPhase::away);
    credibility.on_leave(link);
    waits.on_departure(link);
    for (std::size_t i = 0; i < chunks; ++i) {
      links.add_chunk(link).since = 1;
      readout::PendingChunk& chunk = link.chunks.place_next();
      chunk.fate = readout::PendingChunk::Fate::aside;
      chunk.place = {place.resets, place.index + static_cast<std::int64_t>(i)};
    }
    link.chunks_there = chunks;
    link.going = {place.resets, place.index + static_cast<std::int64_t>(chunks)};
  }

  const SequencerSettings settings;
  std::vector<std::unique_ptr<LinkSequence>> sequences;
  Links links{settings};
  Numbers numbers{settings};
  TriggerNumbers list{settings, links, numbers};
  Silences silences{settings, links, numbers};
  Credibility credibility{settings, links, numbers, list, silences};
  Waits waits{settings, links, numbers, credibility};
  Room room{settings, links, numbers, waits};
};

// ---- what number is this id

TEST(Numbers, AnIdIsOfTheRoundInWhichTheLinkIs) {
  const SequencerSettings of = settings(8);
  const Numbers numbers(of);
  EXPECT_EQ(numbers.resolve({kResets, 250}, 3, 1), (Place{kResets, 259}));
  EXPECT_EQ(numbers.resolve({kResets, 259}, 250, 1), (Place{kResets, 250})) << "a little behind";
}

TEST(Numbers, AnIdNearZeroIsARestartWhereIdsHaveManyBits) {
  const SequencerSettings of = settings(16);
  const Numbers numbers(of);
  EXPECT_EQ(numbers.resolve({kResets, 5000}, 2, 1), (Place{kResets + 1, 2}));
  EXPECT_EQ(numbers.resolve_restart({kResets, 40}, 2, 3, 1), (Place{kResets + 1, 2}));
  EXPECT_EQ(numbers.resolve_restart({kResets, 40}, 2, 41, 1), (Place{kResets, 2})) << "the next id does not go on from it";
}

TEST(Numbers, AResetCounterIsOfTheNearestRound) {
  EXPECT_EQ(Numbers::extended({kResets + 5, 100}, 6 << 24), (Place{kResets + 6, 0}));
  EXPECT_EQ(Numbers::extended({kResets + 5, 100}, 4 << 24 | 7), (Place{kResets + 4, 7}));
  EXPECT_EQ(Numbers::extended({kResets + 255, 100}, 1), (Place{kResets + 256, 1}));
}

TEST(Numbers, ASegmentBeginsWhereTheGapIsTooLongForTheWindow) {
  Parts parts(1);
  parts.numbers.open({kResets, 100}, kRunFirst + 10, kRunFirst + 10, 1);
  EXPECT_EQ(parts.numbers.segments().size(), 1);
  parts.numbers.open({kResets, 5000}, kRunFirst + 10, kRunFirst + 10, 1);
  EXPECT_EQ(parts.numbers.segments().size(), 2);
  EXPECT_EQ(parts.numbers.skipped() + kReach, 5000 - 10);
  EXPECT_EQ(parts.numbers.number({kResets, 5000 - kReach}), kRunFirst + 10 + kReach + 2 * kStep);
}

TEST(Numbers, OfTheNumbersWithAnIdTheNearestIsFound) {
  Parts parts(1, settings(8));
  EXPECT_EQ(parts.numbers.nearest_number(kRunFirst + 1000, 132), kRunFirst + 900);
  EXPECT_EQ(parts.numbers.nearest_number(kRunFirst + 1000, 39), kRunFirst + 1063);
}

TEST(Numbers, IdsRepeatAfterTheLastEpochWhereTheyDoNotShowResets) {
  Parts parts(1, settings(16));
  EXPECT_EQ(parts.numbers.unambiguous_period(kRunFirst), 65'536);
  parts.numbers.open({kResets + 1, 0}, kRunFirst + 500, kRunFirst + 500, 1);
  const Sequence end = parts.numbers.segments().newest().first;
  EXPECT_EQ(parts.numbers.unambiguous_period(end + 10), end - kRunFirst);
}

// ---- is the link credible

TEST(Credibility, LinksThatHaveGoneToOnePlaceVoteForIt) {
  Parts parts(3);
  parts.go_away(parts.links[0], {kResets, 500}, 2);
  EXPECT_FALSE(parts.credibility.votes(parts.links[0]).is_majority());
  parts.go_away(parts.links[1], {kResets, 498}, 1);
  const readout::Votes votes = parts.credibility.votes(parts.links[0]);
  EXPECT_TRUE(votes.is_majority());
  EXPECT_EQ(votes.in_favor, 2);
  EXPECT_EQ(votes.live, 3);
  EXPECT_EQ(parts.credibility.group_begin(parts.links[0]), (Place{kResets, 498}));
  parts.go_away(parts.links[2], {kResets, 9000}, 2);
  EXPECT_EQ(parts.credibility.votes(parts.links[0]).in_favor, 2) << "the third has gone elsewhere";
}

TEST(Credibility, ALinkThatLeftWhileMostGoOnIsAloneUntilItBringsAnEventOfTheirs) {
  Parts parts(3);
  Link& link = parts.links[0];
  parts.go_away(link, {kResets, 500}, 2);
  EXPECT_FALSE(parts.credibility.is_alone(link));
  for (const std::size_t other : {1, 2}) parts.put(parts.links[other], kStep + 2);
  EXPECT_TRUE((link.alone = parts.credibility.is_alone(link)));
  link.left.reset();
  EXPECT_TRUE(parts.credibility.is_alone(link));
  link.alone = false;  // it has brought an event of theirs
  EXPECT_FALSE(parts.credibility.is_alone(link));
}

TEST(Credibility, ALinkThatLostItsPlaceIsWhereItsPeersAreAndInDoubtUntilTheyProveIt) {
  Parts parts(3, settings(16));
  Link& link = parts.links[0];
  for (const std::size_t other : {1, 2}) parts.put(parts.links[other], 70'000);
  link.sequence.lost = true;
  ASSERT_TRUE(parts.credibility.loses_place(link, 70'001 % 65'536));
  parts.credibility.lose_place(link);
  EXPECT_TRUE(link.sequence.doubtful);
  EXPECT_EQ(parts.credibility.find_place(link, 70'001 % 65'536), (Place{kResets, 70'001}));
  EXPECT_EQ(parts.credibility.prove(link, kRunFirst + 70'001, 70'001 % 65'536, 0), kRunFirst + 70'001);
  EXPECT_FALSE(link.sequence.doubtful);
}

TEST(Credibility, AFirstIdIsBesideALinkThatHasCome) {
  Parts parts(2, settings(16));
  EXPECT_EQ(parts.credibility.first_place(parts.links[1], 3), (Place{kResets, 3}));
  parts.go_away(parts.links[0], {kResets, 65'530}, 2);
  EXPECT_EQ(parts.credibility.first_place(parts.links[1], 3), (Place{kResets, 65'539}));
}

// ---- is there room

TEST(Room, TheWindowMovesOnceMoreLinksHavePassedItsEndThanHaveStillToCome) {
  Parts parts(3);
  const Link& link = parts.links[0];
  parts.links.oldest = kRunFirst;
  EXPECT_TRUE(parts.room.has_room(link, kRunFirst + kWindow - 1));
  EXPECT_FALSE(parts.room.has_room(link, kRunFirst + kWindow));
  parts.put(parts.links[0], 1);
  EXPECT_FALSE(parts.room.has_room(link, kRunFirst + kWindow));
  parts.put(parts.links[1], 1);
  EXPECT_TRUE(parts.room.has_room(link, kRunFirst + kWindow));
}

TEST(Room, ALinkMayComeToAReachBeyondTheForemostOther) {
  Parts parts(2);
  parts.put(parts.links[1], 10);
  EXPECT_EQ(parts.room.reachable(parts.links[0], {kResets, 10 + kReach}), kRunFirst + 10 + kReach);
  EXPECT_FALSE(parts.room.reachable(parts.links[0], {kResets, 11 + kReach}));
  EXPECT_FALSE(parts.room.reachable(parts.links[0], {kResets + 1, 0})) << "of no segment";
  parts.put(parts.links[0], 100);
  EXPECT_TRUE(parts.room.reachable(parts.links[0], {kResets, 100 + kStep})) << "near its own place";
}

TEST(Room, ALinkThatHasWaitedLongDoesNotWaitForLinksThatStandStill) {
  Parts parts(2);
  Link& link = parts.links[0];
  parts.put(link, kWindow);
  parts.waits.block(link);
  EXPECT_FALSE(parts.room.make_room(link, kRunFirst + kWindow));
  link.offered = 2 * kReach + kStep;
  EXPECT_TRUE(parts.room.make_room(link, kRunFirst + kWindow));
}

// ---- who waits for whom

TEST(Waits, ALinkThatIsAwayWaitsForReadersThatHaveNotReadSoFar) {
  Parts parts(2, settings(), 2);
  const Link& link = parts.links[0];
  EXPECT_FALSE(parts.waits.may_be_resolved(link, 0, 2)) << "it is here";
  parts.go_away(parts.links[0], {kResets + 1, 0}, 2);
  EXPECT_TRUE(parts.waits.may_be_resolved(link, 0, 2));
  EXPECT_FALSE(parts.waits.may_be_resolved(link, 0, 1)) << "its own reader";
  parts.put(parts.links[1], kStep + 1);
  EXPECT_FALSE(parts.waits.may_be_resolved(link, 0, 2)) << "the other has gone on from where it left";
  parts.put(parts.links[1], kStep);
  EXPECT_TRUE(parts.waits.may_be_resolved(link, 0, 2));
  parts.waits.set_drained(1);
  EXPECT_FALSE(parts.waits.may_be_resolved(link, 0, 2)) << "the other has nothing to read";
}

TEST(Waits, OfReadersThatWaitForEachOtherTheOneBehindGoesOn) {
  Parts parts(2, settings(), 2);
  for (Link& link : parts.links) parts.waits.block(link);
  const auto waits_for_others = [&](std::size_t link) { return parts.waits.may_be_resolved(parts.links[link], 0, 2); };
  parts.waits.note_oldest(1, kRunFirst + 5);
  parts.links.reader(0).waits_for_link = 0;
  EXPECT_TRUE(waits_for_others(0));
  EXPECT_TRUE(waits_for_others(1));
  parts.links.reader(1).waits_for_link = 1;
  EXPECT_FALSE(waits_for_others(0)) << "it is behind";
  EXPECT_TRUE(waits_for_others(1));
  EXPECT_TRUE(parts.waits.any_reader_proceeds());
  parts.links.reader(1).waits_for_link = readout::Reader::kConsumers;
  EXPECT_TRUE(waits_for_others(0));
}

}  // namespace
}  // namespace rodeo::test
