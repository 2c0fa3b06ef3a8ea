// The rules of the book of kept fragments, first one by one, then all together against a slow twin.
#include "readout/retention/fragment_book.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <vector>

#include "formats/event_ids.h"
#include "readout/fragment_pool.h"

namespace rodeo::readout {
namespace {

using Answer = FragmentBook::Answer;
using Outcome = FragmentBook::Outcome;
constexpr std::uint64_t kMs = 1'000'000;

class FragmentBookTest : public testing::Test {
 protected:
  FragmentPtr make(std::uint64_t id) const {
    FragmentPtr fragment = pool_.make(id);
    fragment->global_id = id;
    return fragment;
  }
  Outcome take(std::uint64_t id, std::uint64_t now_ns = 0) {
    FragmentPtr fragment = make(id);
    return book_.keep(fragment, now_ns);
  }
  Answer ask(std::uint64_t id) const { return book_.find(id).answer; }
  void clear(std::uint64_t id, std::uint64_t now_ns = 0) { book_.clear(id, now_ns); }
  const FragmentBook::Counts& counts() const { return book_.counts(); }

  test::FragmentPool pool_;
  FragmentBook book_{{.most_fragments = 8,
                      .reorder_fragments = 4,
                      .reorder_ns = 100 * kMs,
                      .garbage_ns = 1000 * kMs,
                      .most_early_clears = 3}};
};

TEST_F(FragmentBookTest, WhatComesIsThereUntilItIsCleared) {
  EXPECT_EQ(take(100), Outcome::kept);
  ASSERT_EQ(ask(100), Answer::kept);
  EXPECT_EQ((*book_.find(100).fragment)->l1id, L1Id{100});
  EXPECT_EQ(book_.bytes(), (*book_.find(100).fragment)->payload_bytes());
  EXPECT_EQ(pool_.out(), 1u);
  clear(100);
  EXPECT_EQ(pool_.out(), 0u);
  EXPECT_EQ(book_.size(), 0u);
  EXPECT_EQ(book_.bytes(), 0u);
  EXPECT_EQ(counts().cleared, 1u);
}

TEST_F(FragmentBookTest, BeforeAnythingHasComeEverythingIsPending) {
  EXPECT_EQ(ask(0), Answer::pending);
  EXPECT_EQ(ask(0xffffffff), Answer::pending);
}

TEST_F(FragmentBookTest, TheFirstIdIsKnownWhenOlderOnesHadTimeToCome) {
  EXPECT_FALSE(book_.first());
  take(105, 10 * kMs);
  take(103, 20 * kMs);
  book_.advance(109 * kMs);
  EXPECT_FALSE(book_.first());
  book_.advance(110 * kMs);
  EXPECT_EQ(book_.first(), 103u);
  clear(103, 120 * kMs);
  take(200, 120 * kMs);
  EXPECT_EQ(book_.first(), 103u) << "the cleared ones had come";
}

TEST_F(FragmentBookTest, TheFirstIdIsKnownInAFullBookAndAtTheEnd) {
  for (std::uint64_t id = 10; id < 18; ++id) take(id);
  EXPECT_EQ(take(18), Outcome::full);
  book_.set_waiting_outside(true);
  book_.advance(100 * kMs);
  EXPECT_EQ(book_.first(), 10u);
  FragmentBook short_run{{}};
  FragmentPtr fragment = make(7);
  short_run.keep(fragment, 0);
  short_run.end();
  EXPECT_EQ(short_run.first(), 7u);
  short_run.release_all();
}

TEST_F(FragmentBookTest, TheSameFragmentAgainIsLetGo) {
  take(5);
  EXPECT_EQ(take(5), Outcome::released);
  EXPECT_EQ(counts().duplicates, 1u);
  EXPECT_EQ(pool_.out(), 1u);
  EXPECT_EQ(counts().arrived, 2u);
}

TEST_F(FragmentBookTest, AFullBookLeavesTheFragmentWithItsCaller) {
  for (std::uint64_t id = 0; id < 8; ++id) take(id);
  FragmentPtr more = make(8);
  EXPECT_EQ(book_.keep(more, 0), Outcome::full);
  ASSERT_TRUE(more);
  EXPECT_EQ(ask(8), Answer::pending);
  clear(3);
  EXPECT_EQ(book_.keep(more, 0), Outcome::kept);
  EXPECT_FALSE(more);
}

TEST_F(FragmentBookTest, WhatIsClearedBeforeItComesIsLetGoWhenItComes) {
  clear(7);
  EXPECT_EQ(ask(7), Answer::lost);
  EXPECT_EQ(take(7), Outcome::released);
  EXPECT_EQ(counts().cleared_early, 1u);
  EXPECT_EQ(pool_.out(), 0u);
  EXPECT_EQ(take(7), Outcome::released) << "a second copy";
  EXPECT_EQ(counts().duplicates, 1u);
  EXPECT_EQ(ask(7), Answer::lost);
}

TEST_F(FragmentBookTest, WhatIsClearedEarlyComesEvenIntoAFullBook) {
  clear(8);
  for (std::uint64_t id = 0; id < 8; ++id) take(id);
  EXPECT_EQ(take(8), Outcome::released);
}

TEST_F(FragmentBookTest, AClearThatComesTwiceDoesNothingMore) {
  take(1);
  take(9);
  clear(1);
  clear(1);
  EXPECT_EQ(counts().cleared_again, 1u) << "the book knows that it was here";
  EXPECT_EQ(ask(1), Answer::lost);
  clear(20);
  clear(20);
  EXPECT_EQ(counts().cleared_again, 2u);
  for (std::uint64_t id = 10; id < 15; ++id) take(id);
  clear(1);
  EXPECT_EQ(counts().cleared_again, 3u) << "it is before the line: the book does not wait for it";
  EXPECT_EQ(counts().cleared, 1u);
}

TEST_F(FragmentBookTest, OfTooManyEarlyClearsTheOldestIsForgotten) {
  for (std::uint64_t id = 101; id <= 104; ++id) clear(id);
  EXPECT_EQ(counts().early_forgotten, 1u);
  EXPECT_EQ(take(101), Outcome::kept);
  EXPECT_EQ(take(102), Outcome::released);
}

TEST_F(FragmentBookTest, AMissingIdIsPendingUntilEnoughHaveOvertakenIt) {
  take(10);
  take(12);  // 11 is missing
  for (std::uint64_t id = 13; id < 16; ++id) {
    EXPECT_EQ(ask(11), Answer::pending) << id;
    take(id);
  }
  EXPECT_EQ(ask(11), Answer::pending) << "the line is at 10: 12 to 15 are the last four";
  take(16);
  EXPECT_EQ(ask(11), Answer::lost);
  EXPECT_EQ(ask(17), Answer::pending);
}

TEST_F(FragmentBookTest, AMissingIdIsPendingUntilTimeHasGoneBy) {
  take(10, 1 * kMs);
  take(12, 2 * kMs);
  book_.advance(101 * kMs);
  EXPECT_EQ(ask(11), Answer::pending);
  EXPECT_EQ(ask(9), Answer::lost);
  book_.advance(102 * kMs);
  EXPECT_EQ(ask(11), Answer::lost);
  EXPECT_EQ(ask(13), Answer::pending);
}

TEST_F(FragmentBookTest, WhileItIsFullTimeMakesNothingLost) {
  for (std::uint64_t id = 1; id <= 8; ++id) take(id == 8 ? 9 : id, 0);
  book_.advance(5000 * kMs);
  EXPECT_EQ(ask(8), Answer::pending) << "it may be waiting outside";
  clear(1);
  book_.advance(5099 * kMs);
  EXPECT_EQ(ask(8), Answer::pending) << "it may come now";
  EXPECT_EQ(ask(1), Answer::lost) << "the book knows that it was here";
  book_.advance(5100 * kMs);
  EXPECT_EQ(ask(8), Answer::lost);
  EXPECT_EQ(ask(1), Answer::lost);
}

TEST_F(FragmentBookTest, WhileSomeWaitOutsideTimeMakesNothingLost) {
  take(1, 0);
  take(3, 0);
  book_.set_waiting_outside(true);
  book_.advance(5000 * kMs);
  EXPECT_EQ(ask(2), Answer::pending);
  book_.set_waiting_outside(false);
  book_.advance(5099 * kMs);
  EXPECT_EQ(ask(2), Answer::pending) << "the builder had to wait, too";
  EXPECT_EQ(take(2, 5099 * kMs), Outcome::kept);
  EXPECT_EQ(counts().late, 0u);
  book_.advance(5200 * kMs);
  EXPECT_EQ(ask(0), Answer::lost);
}

TEST_F(FragmentBookTest, WhatHasOvertakenMakesLostWhoeverWaitsOutside) {
  book_.set_waiting_outside(true);
  for (const std::uint64_t id : {10, 12, 13, 14, 15, 16}) {
    take(id);
    book_.advance(0);
  }
  EXPECT_EQ(ask(11), Answer::lost);
}

TEST_F(FragmentBookTest, TheLineIsAtTheNewestHoweverTheyAreReordered) {
  take(20);
  for (const std::uint64_t id : {15, 14, 13, 12}) take(id);
  EXPECT_EQ(ask(19), Answer::lost) << "four have come after 20";
  EXPECT_EQ(ask(12), Answer::kept);
}

TEST_F(FragmentBookTest, WhatComesBehindTheLineIsKeptAndCounted) {
  for (std::uint64_t id = 10; id < 16; ++id) take(id);
  EXPECT_EQ(ask(9), Answer::lost);
  EXPECT_EQ(take(9), Outcome::kept);
  EXPECT_EQ(counts().late, 1u);
  EXPECT_EQ(ask(9), Answer::kept);
}

TEST_F(FragmentBookTest, AnEventCounterResetIsNoGap) {
  take(0x01000fff, 0);
  take(0x02000000, 0);
  EXPECT_EQ(ask(0x01001000), Answer::pending) << "it may still come";
  EXPECT_EQ(ask(0x02000001), Answer::pending);
  book_.advance(100 * kMs);
  EXPECT_EQ(ask(0x01001000), Answer::lost);
  EXPECT_EQ(ask(0x02000001), Answer::pending);
}

TEST_F(FragmentBookTest, IdsWhoseLowerHalvesAreTheSameAreDifferentEvents) {
  take(0xff000005, 0);
  book_.advance(100 * kMs);
  EXPECT_EQ(ask(0xff000004), Answer::lost);
  EXPECT_EQ(ask(0x100000000), Answer::pending) << "the next epoch";
  EXPECT_EQ(take(0x1ff000005, 100 * kMs), Outcome::kept) << "the reset counter wrapped";
  EXPECT_EQ(counts().duplicates, 0u);
  clear(0xff000005, 100 * kMs);
  EXPECT_EQ(ask(0x1ff000005), Answer::kept);
  book_.advance(200 * kMs);
  EXPECT_EQ(ask(0x100000000), Answer::lost);
  EXPECT_EQ(ask(0x1ff000006), Answer::pending);
}

TEST(FragmentBookWraps, AHundredThousandEventsAreHeldOverAWrapOf24AndOf32Bits) {
  constexpr std::uint64_t kHeld = 100'000;
  test::FragmentPool pool({.links = 1, .chunk_bytes = 8, .links_per_part = 1});
  for (const unsigned bits : {24U, 32U}) {
    const formats::IdLayout ids{.bits = static_cast<std::uint8_t>(bits), .has_resets = false};
    FragmentBook book({.most_fragments = kHeld, .reorder_fragments = 16, .id_step = ids.step_at_start()});
    const std::uint64_t first = (std::uint64_t{1} << bits) - kHeld / 2;
    for (std::uint64_t id = first; id < first + kHeld; ++id) {
      FragmentPtr fragment = pool.make(id);
      fragment->l1id = ids.l1id(0, static_cast<std::int64_t>(id));  // ids in headers are narrow: a wrapped id looks old
      ASSERT_EQ(book.keep(fragment, 0), Outcome::kept) << id;
    }
    EXPECT_EQ(book.counts().late, 0u) << bits;
    EXPECT_EQ(book.find(first + kHeld).answer, Answer::pending);
    for (std::uint64_t id = first; id < first + kHeld; ++id) {
      ASSERT_EQ(book.find(id).answer, Answer::kept) << id;
      book.clear(id, 0);
      ASSERT_EQ(book.find(id).answer, Answer::lost) << id;
    }
    EXPECT_EQ(book.counts().cleared, kHeld);
    EXPECT_EQ(pool.out(), 0u);
  }
}

class BookOfAReadoutThatJoins : public FragmentBookTest {
 protected:
  static constexpr std::uint64_t kRounds = std::uint64_t{3} << 32;
};

TEST_F(BookOfAReadoutThatJoins, TakesTheFarmsIdsFromTheFirstThatItNames) {
  take(0x05000100);
  take(0x05000101);
  book_.align(kRounds + 0x050000f0);
  EXPECT_EQ(ask(kRounds + 0x05000100), Answer::kept);
  EXPECT_EQ(book_.newest(), kRounds + 0x05000101);
  take(0x06000000);
  EXPECT_EQ(ask(kRounds + 0x06000000), Answer::kept);
  clear(kRounds + 0x05000100);
  EXPECT_EQ(counts().cleared, 1u);
  std::vector<std::uint64_t> held;
  book_.for_each_id([&](std::uint64_t id) { held.push_back(id); });
  EXPECT_EQ(held, (std::vector<std::uint64_t>{kRounds + 0x05000101, kRounds + 0x06000000}));
  book_.align(0);
  EXPECT_EQ(ask(kRounds + 0x06000000), Answer::kept) << "the first id decides";
}

TEST_F(BookOfAReadoutThatJoins, IsToldBeforeItsFirstFragment) {
  book_.align(kRounds + 0xff000000);
  clear(kRounds + 0x1'00000001);
  EXPECT_EQ(take(0), Outcome::kept) << "the reset counter has just wrapped";
  EXPECT_EQ(ask(kRounds + 0x1'00000000), Answer::kept);
  EXPECT_EQ(take(1), Outcome::released) << "it was cleared early under the farm's id";
}

TEST_F(BookOfAReadoutThatJoins, StaysAsItIsInARunThatItHasSeenFromTheBegin) {
  take(5);
  book_.align(100'000);
  EXPECT_EQ(ask(5), Answer::kept);
  EXPECT_EQ(book_.offset(), 0u);
}

TEST_F(BookOfAReadoutThatJoins, WithoutAResetCounterItLacksWrapsOf24Bits) {
  FragmentBook book({.most_fragments = 8, .reorder_fragments = 4, .id_step = std::uint64_t{1} << 24});
  FragmentPtr fragment = make(0x000010);
  book.keep(fragment, 0);
  book.align(0x06fffff0);
  EXPECT_EQ(book.find(0x07000010).answer, Answer::kept);
}

TEST_F(BookOfAReadoutThatJoins, TheNewestPositionBeforeItsFirstFragmentCounts) {
  FragmentBook book({.most_fragments = 8, .reorder_fragments = 4, .id_step = std::uint64_t{1} << 16});
  book.align(10);
  book.align(70'000);
  FragmentPtr fragment = make(70'002 - 65'536);
  book.keep(fragment, 0);
  EXPECT_EQ(book.find(70'002).answer, Answer::kept);
}

TEST_F(BookOfAReadoutThatJoins, Of16BitsItLacksRoundsOf65536) {
  FragmentBook book({.most_fragments = 8, .reorder_fragments = 4, .id_step = std::uint64_t{1} << 16});
  FragmentPtr fragment = make(0x10);
  book.keep(fragment, 0);
  book.align(0x2fffe);
  EXPECT_EQ(book.find(0x30010).answer, Answer::kept);
}

// Fragments come out of order by up to 64. So ids of 8 bits do not show their round.
class BookOfShortIds : public FragmentBookTest {
 protected:
  static constexpr std::uint64_t kSettled = 100 * kMs;

  void take_short(std::uint64_t id) {
    FragmentPtr fragment = make(id);
    short_.keep(fragment, 0);
  }
  Answer ask_short(std::uint64_t id) const { return short_.find(id).answer; }

  FragmentBook short_{{.most_fragments = 1000, .reorder_fragments = 64, .reorder_ns = kSettled, .id_step = 256}};
};

TEST_F(BookOfShortIds, OfAReadoutThatJoinedHaveNoPlace) {
  short_.align(3);
  take_short(44);  // 300
  EXPECT_EQ(ask_short(44), Answer::pending);
  EXPECT_FALSE(short_.has_newest()) << "nothing is told";
  short_.advance(kSettled);
  EXPECT_FALSE(short_.unplaced()) << "the position was that before its first fragment";
  short_.align(250);
  EXPECT_EQ(ask_short(44), Answer::pending) << "an older event that a node asks for";
  short_.align(303, true);
  EXPECT_TRUE(short_.unplaced());
  EXPECT_EQ(ask_short(44), Answer::lost);
  EXPECT_FALSE(short_.first());
  short_.set_alone();
  EXPECT_EQ(ask_short(44), Answer::lost);
}

TEST_F(BookOfShortIds, OfAReadoutThatBeginsWithTheRunAreRightHoweverSlowItIs) {
  short_.align(900, true);
  take_short(0);
  take_short(1);
  EXPECT_EQ(ask_short(1), Answer::pending);
  short_.advance(kSettled);
  EXPECT_EQ(ask_short(1), Answer::kept);
  EXPECT_EQ(short_.first(), 0u);
}

TEST_F(BookOfShortIds, ThatAreZeroByChanceHaveNoPlaceInALongRun) {
  short_.align(5120, true);
  take_short(0);
  short_.advance(kSettled);
  EXPECT_TRUE(short_.unplaced());
}

TEST_F(BookOfShortIds, AreRightWhileTheFarmIsInItsFirstRound) {
  take_short(77);
  short_.advance(kSettled);
  short_.align(90, true);
  EXPECT_EQ(ask_short(77), Answer::kept);
  short_.align(900, true);
  EXPECT_EQ(ask_short(77), Answer::kept) << "proven once";
}

TEST_F(BookOfShortIds, AreRightAsLongAsTheFarmHasNoOthers) {
  take_short(77);
  short_.set_alone();
  EXPECT_EQ(ask_short(77), Answer::pending) << "others may not have told theirs";
  short_.advance(kSettled);
  short_.set_alone();
  short_.align(900);
  EXPECT_EQ(ask_short(77), Answer::kept) << "a node asks for one of its own";
  short_.align(900, true);
  EXPECT_TRUE(short_.unplaced());
}

TEST_F(BookOfShortIds, AreNotJudgedByTheIdOfOneRequest) {
  take_short(77);
  short_.advance(kSettled);
  short_.align(std::uint64_t{1} << 40);
  EXPECT_FALSE(short_.unplaced());
  short_.align(90, true);
  EXPECT_EQ(ask_short(77), Answer::kept);
}

// A readout that joins later takes its round from this one. Then it names a higher position.
TEST_F(BookOfShortIds, StayRightWhereAnotherReadoutJoinsLater) {
  for (std::uint64_t id = 77; id < 400; ++id) take_short(id);
  short_.advance(kSettled);
  short_.set_alone();
  short_.align(401, true);
  EXPECT_FALSE(short_.unplaced());
  EXPECT_EQ(ask_short(399), Answer::kept);
}

TEST_F(FragmentBookTest, WhenAllHaveComeTheRestIsLost) {
  take(1);
  book_.end();
  EXPECT_EQ(ask(1), Answer::kept);
  EXPECT_EQ(ask(2), Answer::lost);
  clear(2);
  EXPECT_EQ(counts().cleared_again, 1u) << "nothing to wait for";
}

TEST_F(FragmentBookTest, WhatNoClearNamesIsGarbageWhenMuchYoungerOnesAreCleared) {
  take(1, 0);
  take(2, 500 * kMs);
  take(3, 1001 * kMs);
  book_.advance(100'000 * kMs);
  EXPECT_EQ(counts().garbage, 0u) << "time alone is no reason: there may be no client that clears";
  clear(3, 100'000 * kMs);
  book_.advance(100'000 * kMs);
  EXPECT_EQ(counts().garbage, 1u);
  EXPECT_EQ(ask(1), Answer::lost);
  EXPECT_EQ(ask(2), Answer::kept);
}

TEST_F(FragmentBookTest, AnEarlyClearIsForgottenAfterAWhileForIdsComeAgain) {
  clear(9, 0);
  book_.advance(999 * kMs);
  EXPECT_EQ(ask(9), Answer::lost);
  book_.advance(1000 * kMs);
  EXPECT_EQ(ask(9), Answer::pending);
  EXPECT_EQ(counts().early_forgotten, 1u);
  EXPECT_EQ(take(9, 1000 * kMs), Outcome::kept);
}

TEST_F(FragmentBookTest, WhatIsLeftOverIsLetGoAndCounted) {
  for (std::uint64_t id = 0; id < 5; ++id) take(id);
  clear(2);
  book_.release_all();
  EXPECT_EQ(counts().left_over, 4u);
  EXPECT_EQ(pool_.out(), 0u);
}

TEST_F(FragmentBookTest, IdsAreShownInTheOrderInWhichTheyCame) {
  for (const std::uint64_t id : {5, 3, 9, 4}) take(id);
  clear(9);
  std::vector<std::uint64_t> ids;
  book_.for_each_id([&](std::uint64_t id) { ids.push_back(id); });
  EXPECT_EQ(ids, (std::vector<std::uint64_t>{5, 3, 4}));
}

/// The same rules written directly: the twin searches its lists from end to end.
class SlowBook {
 public:
  explicit SlowBook(const FragmentBook::Settings& settings) : settings_(settings) {}

  Outcome keep(std::uint64_t id, std::uint64_t now_ns) {
    const bool again = kept_.contains(id) || is_gone(id);
    const auto early = std::ranges::find(early_, id, &Early::id);
    const bool cleared = !again && early != early_.end();
    if (!again && !cleared && kept_.size() == settings_.most_fragments) return Outcome::full;
    if (!again && !cleared && behind(id)) ++counts.late;
    newest_ = came_.empty() ? id : std::max(newest_, id);
    came_.push_back({newest_, now_ns});
    ++counts.arrived;
    if (again) return ++counts.duplicates, Outcome::released;
    if (cleared) {
      // The place in the ring stays occupied.
      early->used = true;
      early->id = kUsed;
      note_gone(id, now_ns);
      return ++counts.cleared_early, Outcome::released;
    }
    kept_[id] = {now_ns, ++arrivals_};
    return Outcome::kept;
  }

  Answer find(std::uint64_t id) const {
    if (kept_.contains(id)) return Answer::kept;
    if (behind(id) || is_gone(id) || std::ranges::find(early_, id, &Early::id) != early_.end()) return Answer::lost;
    return Answer::pending;
  }

  void clear(std::uint64_t id, std::uint64_t now_ns) {
    if (const auto found = kept_.find(id); found != kept_.end()) {
      cleared_came_ns_ = std::max(cleared_came_ns_, found->second.came_ns);
      kept_.erase(found);
      ++counts.cleared;
      note_gone(id, now_ns);
    } else if (behind(id) || is_gone(id) || std::ranges::find(early_, id, &Early::id) != early_.end()) {
      ++counts.cleared_again;
    } else {
      if (early_.size() == settings_.most_early_clears) forget();
      early_.push_back({id, now_ns, false});
    }
  }

  void advance(std::uint64_t now_ns) {
    if (outside || kept_.size() == settings_.most_fragments) held_up_ns_.push_back(now_ns);
    const auto over = [&](std::uint64_t at_ns) {
      return at_ns + settings_.reorder_ns <= now_ns && std::ranges::none_of(held_up_ns_, [&](std::uint64_t held_ns) {
               return held_ns + settings_.reorder_ns > now_ns;
             });
    };
    while (line_ < came_.size() && over(came_[line_].at_ns)) ++line_;
    while (!gone_.empty() && over(gone_.front().at_ns)) gone_.pop_front();
    while (!early_.empty() && early_.front().at_ns + settings_.garbage_ns <= now_ns) forget();
    for (;;) {
      const auto oldest = std::ranges::min_element(kept_, {}, [](const auto& one) { return one.second.arrival; });
      if (oldest == kept_.end() || oldest->second.came_ns + settings_.garbage_ns >= cleared_came_ns_) return;
      kept_.erase(oldest);
      ++counts.garbage;
    }
  }

  std::size_t size() const { return kept_.size(); }
  FragmentBook::Counts counts;
  bool outside = false;

 private:
  static constexpr std::uint64_t kUsed = ~std::uint64_t{0};
  struct Kept {
    std::uint64_t came_ns;
    std::uint64_t arrival;
  };
  struct Came {
    std::uint64_t newest;
    std::uint64_t at_ns;
  };
  struct Early {
    std::uint64_t id;
    std::uint64_t at_ns;
    bool used;
  };

  bool behind(std::uint64_t id) const {
    std::size_t line = line_;
    if (came_.size() > settings_.reorder_fragments) line = std::max(line, came_.size() - settings_.reorder_fragments);
    return line > 0 && id <= came_[line - 1].newest;
  }
  bool is_gone(std::uint64_t id) const { return std::ranges::find(gone_, id, &Early::id) != gone_.end(); }
  void note_gone(std::uint64_t id, std::uint64_t now_ns) {
    if (behind(id)) return;
    if (gone_.size() == std::max(settings_.reorder_fragments, 1U)) gone_.pop_front();
    gone_.push_back({id, now_ns, false});
  }
  void forget() {
    if (!early_.front().used) ++counts.early_forgotten;
    early_.pop_front();
  }

  const FragmentBook::Settings settings_;
  std::map<std::uint64_t, Kept> kept_;
  std::vector<Came> came_;
  std::deque<Early> early_;
  std::deque<Early> gone_;
  std::vector<std::uint64_t> held_up_ns_;
  std::size_t line_ = 0;
  std::uint64_t newest_ = 0;
  std::uint64_t arrivals_ = 0;
  std::uint64_t cleared_came_ns_ = 0;
};

TEST_F(FragmentBookTest, AgreesWithItsSlowTwin) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint64_t n) { return random() % n; };
    const FragmentBook::Settings settings{.most_fragments = 1 + below(40),
                                          .reorder_fragments = static_cast<std::uint32_t>(below(12)),
                                          .reorder_ns = 1 + below(200),
                                          .garbage_ns = 1 + below(2000),
                                          .most_early_clears = 1 + below(20)};
    FragmentBook book(settings);
    SlowBook twin(settings);
    std::uint64_t next = (seed % 3 == 0 ? 0xfffffff0 : 0) + below(100);
    std::uint64_t now = 0;
    const auto some_id = [&] { return next + below(30) - std::min<std::uint64_t>(next, 20 + below(20)); };
    for (int step = 0; step < 2000; ++step) {
      now += below(4) == 0 ? below(100) : 0;
      switch (below(6)) {
        case 0:
        case 1: {
          const std::uint64_t id = below(8) == 0 ? some_id() : next;
          next = id == next ? next + 1 + (below(20) == 0 ? below(5) : 0) : next;
          if (below(200) == 0) next = ((next >> 24) + 1) << 24;
          FragmentPtr fragment = make(id);
          ASSERT_EQ(book.keep(fragment, now), twin.keep(id, now)) << step;
          break;
        }
        case 2:
        case 3: {
          const std::uint64_t id = some_id();
          book.clear(id, now);
          twin.clear(id, now);
          break;
        }
        case 4:
          if (below(5) == 0) twin.outside = !twin.outside;
          book.set_waiting_outside(twin.outside);
          book.advance(now);
          twin.advance(now);
          break;
        default: {
          const std::uint64_t id = below(50) == 0 ? random() : some_id();
          ASSERT_EQ(book.find(id).answer, twin.find(id)) << step << " " << id;
        }
      }
      ASSERT_EQ(book.size(), twin.size()) << step;
      ASSERT_EQ(pool_.out(), book.size());
    }
    const FragmentBook::Counts& counts = book.counts();
    EXPECT_EQ(counts.arrived, book.size() + counts.cleared + counts.cleared_early + counts.duplicates + counts.garbage);
    EXPECT_EQ(counts, twin.counts);
  }
}

}  // namespace
}  // namespace rodeo::readout
