#include "dispatch/clear_book.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <vector>

namespace {

using namespace rodeo::dispatch;

struct Book : ClearBook {
  explicit Book(std::uint32_t readouts = 1, Settings settings = {.count = 3, .after_ns = 100}) : ClearBook(settings) {
    for (std::uint32_t i = 0; i < readouts; ++i) connected(add_readout());
  }
  void decided(std::uint64_t id, std::uint64_t now_ns = 0) { add({.id = id}, now_ns); }
  /// Sends a readout its next clears; returns the sequence numbers.
  std::vector<std::uint64_t> tell(std::uint32_t readout) {
    std::vector<std::uint64_t> told;
    while (const auto batch = next(readout)) {
      told.push_back(batch->sequence);
      sent(readout, batch->sequence);
    }
    return told;
  }
  std::vector<std::uint64_t> over() {
    std::vector<std::uint64_t> ids;
    take_over([&](const Entry& entry) { ids.push_back(entry.id); }, [](std::uint64_t) {});
    return ids;
  }
};

using Ids = std::vector<std::uint64_t>;

TEST(ClearBook, ABatchIsClosedByCount) {
  Book book;
  book.decided(1);
  book.decided(2);
  EXPECT_EQ(book.tell(0), Ids{});
  book.decided(3);
  EXPECT_EQ(book.tell(0), Ids{0});
}

TEST(ClearBook, ABatchIsClosedByTime) {
  Book book;
  book.decided(1, 50);
  EXPECT_EQ(book.due_ns(), 150U);
  book.flush(149);
  EXPECT_EQ(book.batches_closed(), 0U);
  book.flush(150);
  EXPECT_EQ(book.batches_closed(), 1U);
  EXPECT_EQ(book.due_ns(), UINT64_MAX);
}

TEST(ClearBook, IsOverWhenEachReadoutHasAnswered) {
  Book book(2);
  book.decided(1);
  book.flush(0, true);
  EXPECT_EQ(book.tell(0), Ids{0});
  EXPECT_EQ(book.tell(1), Ids{0});
  book.answered(0, 0);
  EXPECT_EQ(book.over(), Ids{});
  book.answered(0, 0);  // a second answer does not count
  EXPECT_EQ(book.over(), Ids{});
  book.answered(1, 0);
  EXPECT_EQ(book.over(), Ids{1});
  EXPECT_EQ(book.entries(), 0U);
}

TEST(ClearBook, BatchesAreOverInTheirOrder) {
  Book book;
  book.decided(1);
  book.flush(0, true);
  book.decided(2);
  book.flush(0, true);
  book.tell(0);
  book.answered(0, 1);
  EXPECT_EQ(book.over(), Ids{});
  book.answered(0, 0);
  EXPECT_EQ(book.over(), (Ids{1, 2}));
}

TEST(ClearBook, WaitsForAReadoutThatIsAwayAndTellsItAgain) {
  Book book;
  book.decided(1);
  book.flush(0, true);
  EXPECT_EQ(book.tell(0), Ids{0});
  book.disconnected(0);
  book.decided(2);
  book.flush(0, true);
  EXPECT_EQ(book.tell(0), Ids{});
  EXPECT_EQ(book.over(), Ids{});
  EXPECT_EQ(book.behind(0), 2U);
  book.connected(0);
  EXPECT_EQ(book.tell(0), (Ids{0, 1}));
}

TEST(ClearBook, WhatItHasClearedItIsNotToldAgain) {
  Book book(2);
  book.decided(1);
  book.flush(0, true);
  book.tell(0);
  book.answered(0, 0);
  book.disconnected(0);
  book.connected(0);
  EXPECT_EQ(book.tell(0), Ids{});
  EXPECT_EQ(book.tell(1), Ids{0});
}

TEST(ClearBook, DoesNotWaitForAReadoutThatHasDied) {
  Book book(2);
  book.decided(1);
  book.flush(0, true);
  book.answered(1, 0);
  book.died(0);
  EXPECT_EQ(book.over(), Ids{1});
  book.decided(2);
  book.flush(0, true);
  book.answered(1, 1);
  EXPECT_EQ(book.over(), Ids{2});
}

TEST(ClearBook, AReadoutThatLivesAgainIsToldWhatIsStillHere) {
  Book book(2);
  book.died(0);
  book.decided(1);
  book.flush(0, true);
  book.answered(1, 0);
  EXPECT_EQ(book.over(), Ids{1});
  book.decided(2);
  book.flush(0, true);
  book.connected(0);
  EXPECT_EQ(book.tell(0), Ids{1});
  book.answered(1, 1);
  EXPECT_EQ(book.over(), Ids{});
  book.answered(0, 1);
  EXPECT_EQ(book.over(), Ids{2});
}

TEST(ClearBook, WithoutReadoutsNobodyIsWaitedFor) {
  Book book(0);
  book.decided(1);
  book.flush(0, true);
  EXPECT_EQ(book.over(), Ids{1});
}

TEST(ClearBook, ABatchWithNothingToClearIsOverInItsTurnAndToldNobody) {
  Book book;
  book.decided(1);
  book.flush(0, true);
  book.decided(ClearBook::kNoId);
  book.flush(0, true);
  EXPECT_EQ(book.tell(0), Ids{0});
  EXPECT_EQ(book.over(), Ids{});
  book.answered(0, 0);
  EXPECT_EQ(book.over(), (Ids{1, ClearBook::kNoId}));
}

TEST(ClearBook, AnswersThatNobodyWaitsForChangeNothing) {
  Book book;
  book.answered(0, 0);
  book.answered(0, 77);
  book.decided(1);
  book.flush(0, true);
  EXPECT_EQ(book.over(), Ids{});
}

// Readouts come, go, die and answer at random. When an event is over, all live readouts have cleared it. Each event is over
// once; at the end all are.
TEST(ClearBook, HoldsUnderAnyCourse) {
  std::mt19937_64 random(4);
  for (int course = 0; course < 200; ++course) {
    constexpr std::uint32_t kReadouts = 3;
    Book book(kReadouts, {.count = 1 + static_cast<std::uint32_t>(random() % 4), .after_ns = 50});
    std::map<std::uint64_t, std::set<std::uint32_t>> cleared;  // by batch
    std::set<std::uint64_t> unanswered[kReadouts];
    bool here[kReadouts] = {true, true, true};
    bool lives[kReadouts] = {true, true, true};
    std::vector<std::uint64_t> over;
    std::uint64_t id = 0;
    std::uint64_t now = 0;
    const auto take = [&] {
      book.take_over([&](const ClearBook::Entry& entry) { over.push_back(entry.id); },
                     [&](std::uint64_t batch) {
                       for (std::uint32_t r = 0; r < kReadouts; ++r) ASSERT_TRUE(!lives[r] || cleared[batch].contains(r));
                     });
    };
    for (int step = 0; step < 300; ++step, now += random() % 40) {
      const auto r = static_cast<std::uint32_t>(random() % kReadouts);
      switch (random() % 9) {
        case 0:
        case 1:
        case 2: book.decided(id++, now); break;
        case 3: book.flush(now); break;
        case 4:
          for (const std::uint64_t batch : book.tell(r)) unanswered[r].insert(batch);
          break;
        case 5:
        case 6:
          if (!here[r] || unanswered[r].empty()) break;
          cleared[*unanswered[r].begin()].insert(r);
          book.answered(r, *unanswered[r].begin());
          unanswered[r].erase(unanswered[r].begin());
          break;
        case 7:
          here[r] = false;
          unanswered[r].clear();
          book.disconnected(r);
          if (random() % 2 == 0) {
            lives[r] = false;
            book.died(r);
          }
          break;
        default:
          here[r] = lives[r] = true;
          unanswered[r].clear();
          book.connected(r);
      }
      take();
    }
    book.flush(now, true);
    for (std::uint32_t r = 0; r < kReadouts; ++r) {
      book.connected(r);
      lives[r] = true;
      for (const std::uint64_t batch : book.tell(r)) {
        cleared[batch].insert(r);
        book.answered(r, batch);
      }
    }
    take();
    ASSERT_EQ(over.size(), id);
    for (std::uint64_t i = 0; i < id; ++i) ASSERT_EQ(over[i], i);
    ASSERT_EQ(book.entries(), 0U);
  }
}

}  // namespace
