// The rules that hold only for a C-RORC (table in README.md), with an emulated card.
#include <algorithm>

#include <gtest/gtest.h>

#include "emulated_card.h"

namespace rodeo::card {
namespace {

using emulator::FaultKind;
namespace crorc = card_registers::crorc;

class EmulatedCrorc : public EmulatedCard {
 protected:
  void SetUp() override { set_up(kCrorc); }
};

TEST_F(EmulatedCrorc, HasOneSuperpageInFlightAnd128InEachQueue) {
  inject(FaultKind::stuck_fifo, kCrorc.channel);
  open_and_start();
  EXPECT_EQ(channel_->transfer_capacity(), 128U);
  EXPECT_EQ(channel_->ready_capacity(), 128U);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(push(), PushStatus::done);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(channel_->fill());
  EXPECT_EQ(channel_->outstanding(), 1U);
  EXPECT_EQ(channel_->transfer_room(), 126U);
  EXPECT_EQ(card_->read(crorc::reg("superpage_push"), kCrorc.channel), kSize << 8 | 1U) << "size and push count read back";
  inject(FaultKind::stuck_fifo, kCrorc.channel);
  wait_ready(3);
  EXPECT_EQ(emulator_->report().functions[0].superpages, 3U);
}

TEST_F(EmulatedCrorc, CompletionsComeThroughTheInformationBufferInOrder) {
  open_and_start();
  for (unsigned i = 0; i < 600; ++i) {  // the 8-bit count wraps twice
    ASSERT_EQ(push(), PushStatus::done);
    wait_ready(1);
    const auto page = channel_->pop();
    ASSERT_EQ(page->offset, i % kPieces * kSize);
    ASSERT_EQ(page->link, static_cast<int>(kCrorc.channel));
  }
}

TEST_F(EmulatedCrorc, ACountThatIsNotTheNextIsAnError) {
  open_and_start();
  inject(FaultKind::size_index_mismatch, kCrorc.channel);
  ASSERT_EQ(push(), PushStatus::done);
  ASSERT_TRUE(eventually([&] { return !channel_->fill(); }));
  EXPECT_EQ(channel_->read(DmaCounter::count_jumps), 1U);
  EXPECT_TRUE(channel_->stop());
  EXPECT_EQ(pop_all().size(), 1U);
}

TEST_F(EmulatedCrorc, AStopReportsWhatIsInFlightWithItsTrueSize) {
  inject(FaultKind::stuck_fifo, kCrorc.channel);
  open_and_start();
  ASSERT_EQ(push(), PushStatus::done);
  ASSERT_EQ(push(), PushStatus::done);
  ASSERT_TRUE(channel_->fill());
  ASSERT_TRUE(channel_->stop());
  const auto all = pop_all();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_TRUE(all[0].ready) << "flushed";
  EXPECT_EQ(all[0].received, 0U);
  EXPECT_FALSE(all[1].ready);
}

TEST_F(EmulatedCrorc, ALostSuperpageComesBackAtTheStopWhichWaitsNoLongerThanItMust) {
  inject(FaultKind::dropped_superpage, kCrorc.channel);
  open_and_start();
  ASSERT_EQ(push(), PushStatus::done);
  ASSERT_TRUE(channel_->fill());
  ASSERT_TRUE(eventually([&] {
    const auto report = emulator_->report();
    return std::ranges::any_of(report.functions[0].counters,
                               [](const auto& counter) { return counter.name == "superpages_lost"; });
  }));
  ASSERT_TRUE(channel_->stop());
  const auto all = pop_all();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_FALSE(all[0].ready);
}

TEST_F(EmulatedCrorc, ItsChannelsHaveOwnersAndDataOfTheirOwn) {
  open_and_start();
  DmaMemory memory = DmaMemory::create(kPieces * kSize).value();
  const auto other = open_card();
  auto second = DmaChannel::open(*other, 5, memory.shared(), internal());
  ASSERT_TRUE(second) << second.error().message();
  ASSERT_TRUE((*second)->start());
  ASSERT_EQ(push(), PushStatus::done);
  ASSERT_EQ((*second)->push(piece(0)), PushStatus::done);
  wait_ready(1);
  ASSERT_TRUE(eventually([&] { return (*second)->fill() && (*second)->ready_size() == 1; }));
  EXPECT_EQ(channel_->pop()->link, 2);
  EXPECT_EQ((*second)->pop()->link, 5);
  EXPECT_EQ(DmaChannel::open(*card_, 6, memory_.shared(), internal()).error().code, "card.bad_dma");
}

TEST_F(EmulatedCrorc, DetectorDataNeedALinkThatAnswers) {
  inject(FaultKind::link_down, kCrorc.channel);
  open({{.source = DataSource::fee}});
  EXPECT_EQ(channel_->start().error().code, "card.no_answer");
  inject(FaultKind::link_up, kCrorc.channel);
  start();
  ASSERT_EQ(push(), PushStatus::done);
  wait_ready(1);
}

}  // namespace
}  // namespace rodeo::card
