// The rules of a channel's states (table in README.md), with emulated cards: start, stop, reset, and a card that is gone.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <set>
#include <thread>

#include "emulated_card.h"

namespace rodeo::card {
namespace {

using namespace std::chrono_literals;

TEST_P(EmulatedCard, StartAndStopTwiceAreIgnoredAndResetIsForAStoppedChannel) {
  open();
  EXPECT_EQ(channel_->state(), DmaState::stopped);
  EXPECT_TRUE(channel_->stop());
  EXPECT_TRUE(channel_->reset(ResetLevel::nothing));
  EXPECT_TRUE(channel_->reset(ResetLevel::internal));
  start();
  EXPECT_EQ(channel_->state(), DmaState::started);
  ASSERT_EQ(push(), PushStatus::done);
  ASSERT_TRUE(channel_->fill());
  start();
  EXPECT_EQ(channel_->outstanding() + channel_->ready_size(), 1U) << "a second start changes nothing";
  EXPECT_EQ(channel_->reset(ResetLevel::internal).error().code, "card.not_stopped");
  ASSERT_TRUE(channel_->stop());
  ASSERT_TRUE(channel_->stop());
  EXPECT_EQ(channel_->ready_size(), 1U);
  if (kind_.type != emulator::CardType::crorc) {
    EXPECT_EQ(channel_->reset(ResetLevel::internal_siu).error().code, "card.bad_dma");
  } else {
    EXPECT_TRUE(channel_->reset(ResetLevel::internal_siu));
  }
}

TEST_P(EmulatedCard, AStopReturnsEverySuperpageOnceFilledOrNotReady) {
  open_and_start();
  const std::uint64_t pushed = push_some(kPieces - 1);
  wait_ready(1);
  ASSERT_TRUE(channel_->stop());
  EXPECT_EQ(push(), PushStatus::not_started);
  EXPECT_TRUE(channel_->fill());
  EXPECT_EQ(channel_->outstanding(), 0U);
  std::set<std::uint64_t> offsets;
  for (const Superpage& page : pop_all()) {
    EXPECT_TRUE(offsets.insert(page.offset).second) << "twice";
    if (!page.ready) {
      EXPECT_EQ(page.received, 0U);
      EXPECT_EQ(page.link, -1);
    }
    EXPECT_LE(page.received, page.bytes);
  }
  EXPECT_EQ(offsets.size(), pushed);
}

TEST_P(EmulatedCard, TheReadyQueueIsDrainedBeforeTheNextStart) {
  open_and_start();
  ASSERT_EQ(push(), PushStatus::done);
  ASSERT_TRUE(channel_->fill());
  ASSERT_TRUE(channel_->stop());
  EXPECT_EQ(channel_->start().error().code, "card.not_drained");
  pop_all();
  EXPECT_TRUE(channel_->start());
}

TEST_P(EmulatedCard, ARunHasNothingOfTheOneBefore) {
  open_and_start();
  std::vector<std::byte> first;
  for (int run = 0; run < 3; ++run) {
    next_ = 0;
    push_some(4);
    wait_ready(1);
    const auto page = channel_->pop();
    ASSERT_GE(page->received, 4096U);
    EXPECT_EQ(page->offset, 0U);
    if (kind_.type != emulator::CardType::felix) {
      // The generator restarts: it sends the same bytes.
      const auto begin = bytes_of(*page).first(4096);
      if (run == 0) first.assign(begin.begin(), begin.end());
      EXPECT_TRUE(std::ranges::equal(first, begin)) << "run " << run;
    }
    ASSERT_TRUE(channel_->stop());
    pop_all();
    std::memset(memory_.bytes().data(), 0, memory_.bytes().size());
    std::this_thread::sleep_for(2ms);
    EXPECT_TRUE(std::ranges::all_of(memory_.bytes(), [](std::byte b) { return b == std::byte{0}; }))
        << "the card wrote after it had answered the stop";
    start();
  }
}

TEST_P(EmulatedCard, APushOfAnotherThreadDuringAStopIsRefusedOrReturned) {
  open_and_start();
  std::atomic<bool> end{false};
  std::uint64_t accepted = 0;
  std::thread pusher([&] {
    while (!end) {
      if (push() == PushStatus::done) ++accepted;
    }
  });
  while (channel_->transfer_empty()) std::this_thread::yield();
  ASSERT_TRUE(channel_->stop());
  end = true;
  pusher.join();
  EXPECT_EQ(pop_all().size(), accepted);
}

TEST_P(EmulatedCard, ACardThatIsGoneIsAnErrorAndTheSuperpagesComeBack) {
  open_and_start();
  const std::uint64_t pushed = push_some(5);
  ASSERT_TRUE(channel_->fill());
  std::size_t have = pop_all().size();
  emulator_.reset();
  // A FELIX's queue is memory that still exists: the stop is the first call that notices the missing card.
  for (int i = 0; i < 100 && channel_->state() == DmaState::started; ++i) {
    (void)channel_->fill();
    have += pop_all().size();
    if (kind_.type != emulator::CardType::cru) break;
  }
  (void)channel_->stop();
  EXPECT_EQ(channel_->state(), DmaState::stopped);
  EXPECT_EQ(have + pop_all().size(), pushed);
}

}  // namespace
}  // namespace rodeo::card
