#include "card/dma/crorc_channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/temporary_directory.h"
#include "memory_policy.h"
#include "scripted_cards.h"

namespace rodeo::card {
namespace {

namespace crorc = card_registers::crorc;
using doubles::ScriptedCrorc;

constexpr std::uint32_t kSize = 64 << 10;
constexpr unsigned kChannel = 2;

class CrorcChannelTest : public testing::Test {
 protected:
  void start(DataSource source = DataSource::internal) {
    auto opened = DmaChannel::open(*crorc_.card, kChannel, memory_.shared(), {.source = source});
    ASSERT_TRUE(opened) << opened.error().message();
    channel_ = std::move(*opened);
    const auto started = channel_->start();
    ASSERT_TRUE(started) << started.error().message();
  }
  PushStatus push(std::uint64_t number) {
    Superpage page;
    page.offset = number * kSize;
    page.bytes = kSize;
    return channel_->push(page);
  }
  test::TemporaryDirectory directory_;
  ScriptedCrorc crorc_{kChannel, directory_.file("card.lock")};
  DmaMemory memory_ = DmaMemory::create(1 << 20).value();
  std::unique_ptr<DmaChannel> channel_;
};

TEST_F(CrorcChannelTest, AWriteThatTheCardLosesIsMadeAgain) {
  start();
  ASSERT_EQ(push(3), PushStatus::done);
  crorc_.loses_addresses = 1;
  ASSERT_TRUE(channel_->fill());
  ASSERT_EQ(crorc_.queue.size(), 1u);
  EXPECT_EQ(crorc_.queue.front().address & 0xffffffff, std::uint64_t{3} * kSize);
  EXPECT_EQ(channel_->read(DmaCounter::lost_writes), 1u);
}

TEST_F(CrorcChannelTest, ACardThatKeepsLosingWritesIsGivenNothing) {
  start();
  ASSERT_EQ(push(3), PushStatus::done);
  crorc_.loses_addresses = 100;
  EXPECT_EQ(channel_->fill().error().code, "card.misbehaved");
  EXPECT_TRUE(crorc_.queue.empty());
  ASSERT_TRUE(channel_->stop());
  EXPECT_FALSE(channel_->pop()->ready) << "the superpage comes back";
}

TEST_F(CrorcChannelTest, ASizeThatTheCardLosesIsAnErrorAndIsNotPushedTwice) {
  start();
  ASSERT_EQ(push(0), PushStatus::done);
  crorc_.loses_size = true;
  EXPECT_EQ(channel_->fill().error().code, "card.misbehaved");
  EXPECT_EQ(crorc_.queue.size(), 1u);
}

TEST_F(CrorcChannelTest, HasOneSuperpageInFlight) {
  start();
  EXPECT_EQ(channel_->transfer_capacity(), 128u);
  EXPECT_EQ(channel_->ready_capacity(), 128u);
  ASSERT_EQ(push(0), PushStatus::done);
  ASSERT_EQ(push(1), PushStatus::done);
  ASSERT_TRUE(channel_->fill());
  ASSERT_TRUE(channel_->fill());
  ASSERT_EQ(crorc_.queue.size(), 1u);
  EXPECT_EQ(crorc_.queue.front().bytes, kSize) << "in bytes";
  crorc_.complete(kSize);
  ASSERT_TRUE(channel_->fill());
  EXPECT_EQ(channel_->ready_size(), 1u);
  EXPECT_EQ(crorc_.queue.size(), 1u) << "the next push follows at once";
  crorc_.complete(400);
  ASSERT_TRUE(channel_->fill());
  EXPECT_TRUE(channel_->pop()->filled());
  const auto partial = channel_->pop();
  EXPECT_EQ(partial->received, 400u);
  EXPECT_EQ(partial->offset, kSize);
  EXPECT_EQ(partial->link, static_cast<int>(kChannel));
}

TEST_F(CrorcChannelTest, TheInformationBufferLiesOnTheCardsNode) {
  if (!test::takes_policies()) GTEST_SKIP() << "host: the kernel takes no memory policy";
  start();
  ASSERT_EQ(crorc_.f->dma.size(), 2u);
  std::size_t small = 0;
  for (const auto& [iova, memory] : crorc_.f->dma) {
    if (memory.size() != 4096) continue;
    ++small;
    EXPECT_EQ(test::policy_of(memory), MPOL_PREFERRED);
  }
  EXPECT_EQ(small, 1U);
}

TEST_F(CrorcChannelTest, TheCountWrapsAt256) {
  start();
  for (std::uint64_t i = 0; i < 600; ++i) {
    ASSERT_EQ(push(i % 16), PushStatus::done);
    ASSERT_TRUE(channel_->fill());
    crorc_.complete(kSize);
    ASSERT_TRUE(channel_->fill()) << i;
    ASSERT_TRUE(channel_->pop()) << i;
  }
}

TEST_F(CrorcChannelTest, ACountThatIsNotTheNextIsAnError) {
  start();
  ASSERT_EQ(push(0), PushStatus::done);
  ASSERT_TRUE(channel_->fill());
  crorc_.complete(kSize, 5);
  EXPECT_EQ(channel_->fill().error().code, "card.misbehaved");
  EXPECT_EQ(channel_->read(DmaCounter::count_jumps), 1u);
  ASSERT_TRUE(channel_->stop());
  EXPECT_EQ(crorc_.log.back(), "csr=3") << "the card keeps no address";
  EXPECT_EQ(crorc_.toggles & crorc::kRxToggle.mask(), 0u);
  EXPECT_EQ((crorc_.f->words[{kChannel, crorc::reg("time_frame").offset}]) & crorc::kFlush.mask(), 0u);
  EXPECT_FALSE(channel_->pop()->ready);
}

TEST_F(CrorcChannelTest, ASizeAboveTheSuperpagesIsAnError) {
  start();
  ASSERT_EQ(push(0), PushStatus::done);
  ASSERT_TRUE(channel_->fill());
  crorc_.complete(kSize + 4);
  EXPECT_EQ(channel_->fill().error().code, "card.misbehaved");
  EXPECT_EQ(channel_->read(DmaCounter::oversize), 1u);
}

TEST_F(CrorcChannelTest, AStopFlushesWhatIsInFlight) {
  start();
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(push(i), PushStatus::done);
  ASSERT_TRUE(channel_->fill());
  crorc_.flush = 1234 * 4;
  ASSERT_TRUE(channel_->stop());
  EXPECT_EQ(channel_->pop()->received, 1234 * 4u);
  EXPECT_FALSE(channel_->pop()->ready);
  EXPECT_FALSE(channel_->pop()->ready);
  EXPECT_FALSE(channel_->pop());
  EXPECT_EQ(crorc_.log.back(), "csr=3") << "the card keeps no address";
}

TEST_F(CrorcChannelTest, AStopWaitsNoLongerThanItMustForASilentCard) {
  start();
  ASSERT_EQ(push(0), PushStatus::done);
  ASSERT_TRUE(channel_->fill());
  ASSERT_TRUE(channel_->stop());
  EXPECT_FALSE(channel_->pop()->ready);
}

TEST_F(CrorcChannelTest, StartsAgainAndCountsFromZero) {
  start();
  ASSERT_EQ(push(0), PushStatus::done);
  ASSERT_TRUE(channel_->fill());
  crorc_.complete(kSize);
  ASSERT_TRUE(channel_->fill());
  ASSERT_TRUE(channel_->stop());
  while (channel_->pop()) {
  }
  crorc_.count = 0;
  ASSERT_TRUE(channel_->start());
  ASSERT_EQ(push(1), PushStatus::done);
  ASSERT_TRUE(channel_->fill());
  EXPECT_EQ(channel_->ready_size(), 0u);
  crorc_.complete(kSize);
  ASSERT_TRUE(channel_->fill());
  EXPECT_EQ(channel_->ready_size(), 1u);
}

TEST_F(CrorcChannelTest, DetectorDataNeedALinkThatAnswers) {
  crorc_.answering = false;
  auto opened = DmaChannel::open(*crorc_.card, kChannel, memory_.shared(), {.source = DataSource::fee});
  ASSERT_TRUE(opened);
  EXPECT_EQ((*opened)->start().error().code, "card.no_answer");
  crorc_.answering = true;
  ASSERT_TRUE((*opened)->start());
  EXPECT_THAT(crorc_.log, testing::Contains("ddl_command=20"));
  EXPECT_NE(crorc_.toggles & crorc::kRxToggle.mask(), 0u);
  crorc_.log.clear();
  ASSERT_TRUE((*opened)->stop());
  EXPECT_THAT(crorc_.log, testing::Contains("ddl_command=180"));
  EXPECT_EQ(crorc_.toggles & crorc::kRxToggle.mask(), 0u);
}

TEST_F(CrorcChannelTest, TheSiuIsResetOnRequest) {
  start();
  ASSERT_TRUE(channel_->stop());
  crorc_.log.clear();
  ASSERT_TRUE(channel_->reset(ResetLevel::internal_siu));
  EXPECT_EQ(crorc_.log, (std::vector<std::string>{"csr=3", "ddl_command=241"}));
}

TEST_F(CrorcChannelTest, EachChannelHasAnOwnerOfItsOwn) {
  start();
  EXPECT_EQ(DmaChannel::open(*crorc_.card, kChannel, memory_.shared()).error().code, "card.locked");
  EXPECT_TRUE(DmaChannel::open(*crorc_.card, 3, memory_.shared()));
  EXPECT_EQ(DmaChannel::open(*crorc_.card, 6, memory_.shared()).error().code, "card.bad_dma");
  EXPECT_EQ(DmaChannel::open(*crorc_.card, 4, memory_.shared(), {.source = DataSource::ddg}).error().code, "card.bad_dma");
}

}  // namespace
}  // namespace rodeo::card
