#include "card/dma/felix_channel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "formats/temporary_directory.h"
#include "scripted_cards.h"

namespace rodeo::card {
namespace {

namespace felix = card_registers::felix;
using doubles::ScriptedFelix;

constexpr std::uint32_t kSize = 64 << 10;
constexpr std::uint64_t kRing = 256 << 10;

class FelixChannelTest : public testing::Test {
 protected:
  void start() {
    auto opened = DmaChannel::open(*felix_.card, 0, memory_.shared());
    ASSERT_TRUE(opened) << opened.error().message();
    channel_ = std::move(*opened);
    ASSERT_TRUE(channel_->start());
  }
  PushStatus push(std::uint64_t number, std::uint32_t bytes = kSize) {
    Superpage page;
    page.offset = number * kSize;
    page.bytes = bytes;
    return channel_->push(page);
  }
  void push_all() {
    for (std::uint64_t i = 0; i < kRing / kSize; ++i) ASSERT_EQ(push(i), PushStatus::done);
    ASSERT_TRUE(channel_->fill());
  }
  std::uint64_t read_pointer() { return felix_.read("dma_read_pointer") - felix_.read("dma_start"); }
  test::TemporaryDirectory directory_;
  ScriptedFelix felix_{directory_.file("card.lock")};
  DmaMemory memory_ = DmaMemory::create(kRing).value();
  std::unique_ptr<DmaChannel> channel_;
};

TEST_F(FelixChannelTest, TheCardBeginsWhenItHasAllOfTheRing) {
  start();
  for (std::uint64_t i = 0; i < 3; ++i) {
    ASSERT_EQ(push(i), PushStatus::done);
    ASSERT_TRUE(channel_->fill());
    EXPECT_FALSE(felix_.enabled) << "its first round would not stop at the read pointer";
  }
  ASSERT_EQ(push(3), PushStatus::done);
  ASSERT_TRUE(channel_->fill());
  EXPECT_TRUE(felix_.enabled);
  EXPECT_EQ(read_pointer(), 0u);
  EXPECT_EQ(felix_.read("dma_end") - felix_.read("dma_start"), kRing);
  EXPECT_EQ(felix_.read("dma_pointer_gap"), 0u) << "rounds of such a small ring are detected, too";
}

TEST_F(FelixChannelTest, PacketsAreAsLongAsTheHostTakesThem) {
  const auto packet = [&] { return 4 * (felix_.read("dma_control") & felix::kTlpWords.mask()); };
  start();
  EXPECT_EQ(packet(), 128u) << "a function that does not report a length";
  ASSERT_TRUE(channel_->stop());
  for (const unsigned bytes : {128U, 256U, 512U, 1024U, 4096U}) {
    felix_.f->set_express(bytes);
    ASSERT_TRUE(channel_->start());
    EXPECT_EQ(packet(), std::min(bytes, 1024U)) << "no longer than a block";
    ASSERT_TRUE(channel_->stop());
  }
}

TEST_F(FelixChannelTest, NeverFreesAWholeLapInOneStep) {
  start();
  push_all();
  while (felix_.write_block()) {
  }
  ASSERT_TRUE(channel_->fill());
  EXPECT_EQ(channel_->ready_size(), kRing / kSize) << "the whole first round";
  while (channel_->pop()) {
  }
  push_all();
  EXPECT_EQ(read_pointer(), kRing - 1024);
  ASSERT_TRUE(felix_.write_block());
  ASSERT_TRUE(channel_->fill());
  EXPECT_EQ(read_pointer(), 0u) << "the card has moved: now all pushed superpages are free";
}

TEST_F(FelixChannelTest, NothingIsWrittenOverHoweverSlowTheReader) {
  start();
  std::mt19937 random(7);
  std::uint64_t pushed = 0, popped = 0, written = 0;
  for (int step = 0; step < 20'000; ++step) {
    while (push(pushed % 4) == PushStatus::done) ++pushed;
    ASSERT_TRUE(channel_->fill());
    for (auto blocks = random() % 300; blocks > 0 && felix_.write_block(); --blocks) written += 1024;
    ASSERT_LE(written, popped * kSize + kRing) << "an unpopped superpage was overwritten";
    ASSERT_TRUE(channel_->fill());
    for (auto pages = random() % 5; pages > 0 && channel_->pop(); --pages) ++popped;
  }
  EXPECT_GT(popped, 100u);
  EXPECT_EQ(channel_->read(DmaCounter::position_errors), 0u);
}

TEST_F(FelixChannelTest, ASuperpageIsReadyWhenTheCardHasGoneBeyondItAndGrowsBefore) {
  start();
  push_all();
  felix_.advance(kSize - 1024);
  ASSERT_TRUE(channel_->fill());
  EXPECT_FALSE(channel_->pop());
  EXPECT_EQ(channel_->growing(), kSize - 1024);
  felix_.advance(3072);
  ASSERT_TRUE(channel_->fill());
  const auto ready = channel_->pop();
  ASSERT_TRUE(ready);
  EXPECT_EQ(ready->offset, 0u);
  EXPECT_TRUE(ready->filled());
  EXPECT_EQ(channel_->growing(), 2048u);
}

TEST_F(FelixChannelTest, SuperpagesFollowEachOtherRoundTheRing) {
  start();
  ASSERT_EQ(push(0), PushStatus::done);
  EXPECT_EQ(push(2), PushStatus::out_of_order);
  EXPECT_EQ(push(0), PushStatus::out_of_order);
  ASSERT_EQ(push(1, 2 * kSize), PushStatus::done);
  EXPECT_EQ(push(3, 2 * kSize), PushStatus::outside) << "a superpage must not cross the end";
  ASSERT_EQ(push(3), PushStatus::done);
  std::uint64_t next = 4;
  std::uint64_t expected = 0;
  for (int lap = 0; lap < 40; ++lap) {
    while (push(next % 4) == PushStatus::done) ++next;
    ASSERT_TRUE(channel_->fill());
    felix_.advance(kSize);
    ASSERT_TRUE(channel_->fill());
    while (const auto page = channel_->pop()) {
      EXPECT_TRUE(page->filled());
      EXPECT_EQ(page->offset, expected % kRing);
      expected += page->bytes;
    }
  }
  EXPECT_EQ(expected, 40 * kSize);
}

TEST_F(FelixChannelTest, APieceOfTheRingIsGivenToTheCardOnceUntilItIsPopped) {
  start();
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(push(i), PushStatus::done);
  EXPECT_EQ(push(0), PushStatus::full) << "the superpage waits for the card";
  ASSERT_TRUE(channel_->fill());
  EXPECT_EQ(push(0), PushStatus::full) << "the card has it";
  felix_.advance(kSize);
  ASSERT_TRUE(channel_->fill());
  EXPECT_EQ(push(0), PushStatus::full) << "it is ready, but not yet read";
  ASSERT_TRUE(channel_->pop());
  EXPECT_EQ(push(0), PushStatus::done);
  EXPECT_EQ(push(1), PushStatus::full);
}

TEST_F(FelixChannelTest, AStopReturnsTheBeginOfTheLastSuperpage) {
  start();
  push_all();
  felix_.advance(kSize + 4096);
  ASSERT_TRUE(channel_->stop());
  EXPECT_FALSE(felix_.enabled);
  EXPECT_TRUE(channel_->pop()->filled());
  const auto partial = channel_->pop();
  EXPECT_TRUE(partial->ready);
  EXPECT_EQ(partial->received, 4096u);
  for (int unused = 0; unused < 2; ++unused) EXPECT_FALSE(channel_->pop()->ready);
  EXPECT_FALSE(channel_->pop());
}

TEST_F(FelixChannelTest, StartsAgainAtTheBeginOfTheRing) {
  start();
  push_all();
  felix_.advance(8192);
  ASSERT_TRUE(channel_->stop());
  while (channel_->pop()) {
  }
  ASSERT_TRUE(channel_->start());
  EXPECT_EQ(push(1), PushStatus::out_of_order);
  push_all();
  ASSERT_TRUE(channel_->fill());
  EXPECT_EQ(channel_->growing(), 0u) << "no data of the previous run";
}

TEST_F(FelixChannelTest, APositionThatCannotBeIsAnError) {
  for (const std::uint64_t wrong : {std::uint64_t{512}, kRing + 1024, std::uint64_t{kSize}, ~std::uint64_t{0} - 1023}) {
    start();
    push_all();
    felix_.advance(2 * kSize);
    ASSERT_TRUE(channel_->fill());
    felix_.write(felix_.read("dma_start") + wrong);
    EXPECT_EQ(channel_->fill().error().code, "card.misbehaved") << wrong;
    EXPECT_EQ(channel_->read(DmaCounter::position_errors), 1u);
    EXPECT_EQ(channel_->state(), DmaState::failed);
    ASSERT_TRUE(channel_->stop());
    EXPECT_FALSE(felix_.enabled) << "the card cannot write to superpages that came back";
    EXPECT_EQ(channel_->ready_size(), kRing / kSize);
    channel_.reset();
  }
}

TEST_F(FelixChannelTest, ACardThatDoesNotObeyIsAnErrorAndNoHang) {
  start();
  felix_.obeys = false;
  for (std::uint64_t i = 0; i < kRing / kSize; ++i) ASSERT_EQ(push(i), PushStatus::done);
  EXPECT_EQ(channel_->fill().error().code, "card.timeout");
}

TEST_F(FelixChannelTest, ADescriptorThatDoesNotStopKeepsItsSuperpages) {
  start();
  push_all();
  const std::uint32_t status = card_registers::felix::reg("dma_status").offset;
  felix_.f->before_read = [&](unsigned bar, std::uint64_t offset) {
    if (bar == 0 && offset == status) felix_.f->words[{0, status}] = UINT32_MAX;
    if (bar == 2 && offset == felix::reg("register_map_version").offset) felix_.f->words[{2, offset}] = UINT32_MAX;
    if (bar == 0 && offset == felix::reg("dma_enable").offset) felix_.f->words[{0, offset}] = UINT32_MAX;
  };
  EXPECT_EQ(channel_->stop().error().code, "card.all_ones");
  EXPECT_EQ(channel_->ready_size(), 0u);
  EXPECT_TRUE(felix_.f->dma.empty());
}

TEST_F(FelixChannelTest, SuperpagesAreWholeBlocks) {
  ScriptedFelix wide(directory_.file("wide.lock"), 3 * 1024);
  DmaMemory memory = DmaMemory::create(192 << 10).value();
  auto channel = DmaChannel::open(*wide.card, 0, memory.shared());
  ASSERT_TRUE(channel) << channel.error().message();
  EXPECT_EQ((*channel)->granule(), 96u << 10);
  ASSERT_TRUE((*channel)->start());
  Superpage page;
  page.bytes = 64 << 10;
  EXPECT_EQ((*channel)->push(page), PushStatus::not_a_multiple);
  page.bytes = 96 << 10;
  EXPECT_EQ((*channel)->push(page), PushStatus::done);
}

TEST_F(FelixChannelTest, HasFourChannelsAndARingOfTwoAtLeast) {
  EXPECT_EQ(DmaChannel::open(*felix_.card, 4, memory_.shared()).error().code, "card.bad_dma");
  EXPECT_EQ(DmaChannel::open(*felix_.card, 0, memory_.shared(), {.source = DataSource::ddg}).error().code, "card.bad_dma");
  DmaMemory small = DmaMemory::create(32 << 10).value();
  EXPECT_EQ(DmaChannel::open(*felix_.card, 0, small.shared()).error().code, "card.dma_memory");
}

}  // namespace
}  // namespace rodeo::card
