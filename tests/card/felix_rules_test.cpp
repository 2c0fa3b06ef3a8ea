// The rules that hold only for a FELIX card (table in README.md), with an emulated card.
#include <gtest/gtest.h>

#include <thread>

#include "emulated_card.h"

namespace rodeo::card {
namespace {

using namespace std::chrono_literals;

class EmulatedFelix : public EmulatedCard {
 protected:
  void SetUp() override { set_up(kFelix); }
};

TEST_F(EmulatedFelix, SuperpagesFollowEachOtherRoundTheRing) {
  open_and_start();
  ASSERT_EQ(push(0, kSize), PushStatus::done);
  EXPECT_EQ(push(2 * kSize, kSize), PushStatus::out_of_order);
  EXPECT_EQ(push(0, kSize), PushStatus::out_of_order);
  next_ = 1;
  push_some(0);
  for (unsigned i = 0; i < 5 * kPieces; ++i) {
    if (i > 0) {
      ASSERT_EQ(push(), PushStatus::done);
    }
    wait_ready(1);
    const auto page = channel_->pop();
    ASSERT_EQ(page->offset, i % kPieces * kSize);
    ASSERT_TRUE(page->filled());
  }
}

TEST_F(EmulatedFelix, AFullRingHoldsTheCardBackAndLosesNothing) {
  open_and_start();
  for (std::uint64_t i = 0; i < kPieces; ++i) ASSERT_EQ(push(), PushStatus::done);
  ASSERT_TRUE(channel_->fill());
  wait_ready(kPieces - 2);
  std::this_thread::sleep_for(5ms);
  ASSERT_TRUE(channel_->fill());
  EXPECT_LE(channel_->ready_size(), kPieces) << "the card does not write to a full superpage before it is returned";
  const auto report = emulator_->report();
  for (const auto& [name, count] : report.functions[0].counters) EXPECT_NE(name, "blocks_lost") << count;
}

}  // namespace
}  // namespace rodeo::card
