#include "card/dma/cru_channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>

#include <thread>

#include "formats/temporary_directory.h"
#include "scripted_cards.h"

namespace rodeo::card {
namespace {

namespace cru = card_registers::cru;
using doubles::ScriptedCru;

constexpr std::uint32_t kSize = 64 << 10;

Superpage superpage(std::uint64_t number, std::uint32_t bytes = kSize) {
  Superpage page;
  page.offset = number * kSize;
  page.bytes = bytes;
  return page;
}

class CruChannelTest : public testing::Test {
 protected:
  void open(DmaSettings settings = {.source = DataSource::fee}) {
    auto opened = DmaChannel::open(*cru_.card, 0, memory_.shared(), settings);
    ASSERT_TRUE(opened) << opened.error().message();
    channel_ = std::move(*opened);
  }
  void start(DmaSettings settings = {.source = DataSource::fee}) {
    open(settings);
    const auto started = channel_->start();
    ASSERT_TRUE(started) << started.error().message();
  }
  void push_and_fill(int count) {
    for (int i = 0; i < count; ++i)
      ASSERT_EQ(channel_->push(superpage(static_cast<std::uint64_t>(next_++ % 16))), PushStatus::done);
    ASSERT_TRUE(channel_->fill());
  }
  test::TemporaryDirectory directory_;
  ScriptedCru cru_{directory_.file("card.lock")};
  DmaMemory memory_ = DmaMemory::create(1 << 20).value();
  std::unique_ptr<DmaChannel> channel_;
  int next_ = 0;
};

TEST_F(CruChannelTest, BringsAFilledSuperpageWithItsSizeLinkAndUserPointer) {
  start();
  int mine = 0;
  Superpage page = superpage(3);
  page.user = &mine;
  ASSERT_EQ(channel_->push(page), PushStatus::done);
  EXPECT_FALSE(channel_->transfer_empty());
  ASSERT_TRUE(channel_->fill());
  EXPECT_TRUE(channel_->transfer_empty());
  EXPECT_EQ(channel_->outstanding(), 1u);
  EXPECT_FALSE(channel_->pop());
  cru_.complete(0, kSize, 0x77);
  ASSERT_TRUE(channel_->fill());
  const auto ready = channel_->pop();
  ASSERT_TRUE(ready);
  EXPECT_TRUE(ready->ready);
  EXPECT_TRUE(ready->filled());
  EXPECT_EQ(ready->offset, 3 * std::uint64_t{kSize});
  EXPECT_EQ(ready->link, 0);
  EXPECT_EQ(ready->user, &mine);
  EXPECT_EQ(static_cast<int>(memory_.bytes()[ready->offset]), 0x77);
  EXPECT_EQ(static_cast<int>(memory_.bytes()[ready->offset + kSize - 1]), 0x77);
  EXPECT_EQ(channel_->read(DmaCounter::bytes), kSize);
}

TEST_F(CruChannelTest, ReportsTrueSizesOfPartialSuperpages) {
  start();
  push_and_fill(2);
  cru_.complete(0, 8192);
  cru_.complete(0, 0);
  ASSERT_TRUE(channel_->fill());
  const auto partial = channel_->pop();
  EXPECT_EQ(partial->received, 8192u);
  EXPECT_FALSE(partial->filled());
  EXPECT_TRUE(channel_->pop()->filled()) << "old firmware reports no size: the superpage counts as full";
  EXPECT_EQ(channel_->read(DmaCounter::size_unknown), 1u);
  EXPECT_EQ(channel_->read(DmaCounter::superpages_partial), 1u);
}

TEST_F(CruChannelTest, RefusesSuperpagesInTheOrderOfTheRules) {
  open();
  EXPECT_EQ(channel_->push(superpage(0)), PushStatus::not_started);
  ASSERT_TRUE(channel_->start());
  const auto push = [&](std::uint64_t offset, std::uint32_t bytes) {
    Superpage page;
    page.offset = offset;
    page.bytes = bytes;
    return channel_->push(page);
  };
  EXPECT_EQ(push(~std::uint64_t{0}, 0), PushStatus::empty);
  EXPECT_EQ(push(~std::uint64_t{0}, 16 << 10), PushStatus::not_a_multiple);
  EXPECT_EQ(push(0, kSize + 1024), PushStatus::not_a_multiple);
  EXPECT_EQ(push(~std::uint64_t{0}, 32 << 10), PushStatus::outside);
  EXPECT_EQ(push((1 << 20) - kSize + 1, kSize), PushStatus::outside);
  EXPECT_EQ(push(2, 32 << 10), PushStatus::misaligned);
  EXPECT_EQ(push((1 << 20) - kSize, kSize), PushStatus::done) << "a superpage may end at the last byte";
  EXPECT_EQ(push(4, 32 << 10), PushStatus::done) << "a superpage may begin at any word";
}

TEST_F(CruChannelTest, RefusesSuperpagesWhoseSizeDoesNotFitInto24Bits) {
  memory_ = DmaMemory::create(32 << 20).value();
  start();
  Superpage page;
  page.bytes = 16 << 20;
  EXPECT_EQ(channel_->push(page), PushStatus::too_large);
  page.bytes = (16 << 20) - (32 << 10);
  EXPECT_EQ(channel_->push(page), PushStatus::done);
}

TEST_F(CruChannelTest, QueuesHaveTheCardsDepthTimesTheLinks) {
  cru_.f->words[{2, cru::reg("datapath_enable").offset}] = 0b111;
  open();
  EXPECT_EQ(channel_->transfer_capacity(), 3 * 128u) << "known before the first start; a depth of 0 means 128";
  EXPECT_EQ(channel_->ready_capacity(), 16 * 128u);
  channel_.reset();
  cru_.f->words[{0, cru::reg("superpage_fifo_depth").offset}] = 4;
  start();
  EXPECT_EQ(channel_->transfer_capacity(), 12u);
  EXPECT_EQ(channel_->ready_capacity(), 64u);
  for (int i = 0; i < 12; ++i) EXPECT_EQ(channel_->push(superpage(0)), PushStatus::done);
  EXPECT_EQ(channel_->push(superpage(0)), PushStatus::full);
  ASSERT_TRUE(channel_->fill());
  EXPECT_EQ(channel_->transfer_room(), 12u);
  push_and_fill(5);
  EXPECT_EQ(channel_->transfer_room(), 7u) << "the links' queues are full";
  EXPECT_EQ(channel_->outstanding(), 12u);
}

TEST_F(CruChannelTest, GivesASuperpageToTheLinkWithTheFewest) {
  cru_.f->words[{2, cru::reg("datapath_enable").offset}] = 0b1001'0000'0000'0011;  // 0, 1, 12 (does not exist), 15
  start();
  push_and_fill(7);
  EXPECT_EQ(cru_.queue[0].size(), 3u);
  EXPECT_EQ(cru_.queue[1].size(), 2u);
  EXPECT_EQ(cru_.queue[15].size(), 2u);
  EXPECT_TRUE(cru_.queue[12].empty());
  cru_.complete(1, kSize);
  cru_.complete(1, kSize);
  push_and_fill(1);
  EXPECT_EQ(cru_.queue[1].size(), 1u);
  EXPECT_EQ(channel_->ready_size(), 2u);
}

TEST_F(CruChannelTest, CollectsOneOfEachLinkInTurn) {
  cru_.f->words[{2, cru::reg("datapath_enable").offset}] = 0b11;
  start();
  push_and_fill(6);
  for (const unsigned link : {1U, 0U, 0U, 0U, 1U}) cru_.complete(link, kSize);
  ASSERT_TRUE(channel_->fill());
  std::vector<int> links;
  while (const auto page = channel_->pop()) links.push_back(page->link);
  EXPECT_EQ(links, (std::vector<int>{0, 1, 0, 1, 0}));
}

TEST_F(CruChannelTest, TheCountOfALinkWrapsAndSoDoesTheIndex) {
  start();
  for (int i = 0; i < 300; ++i) {
    push_and_fill(1);
    cru_.complete(0, kSize);
    ASSERT_TRUE(channel_->fill()) << i;
    ASSERT_TRUE(channel_->pop());
  }
}

TEST_F(CruChannelTest, AFullReadyQueueLeavesSuperpagesWithTheCard) {
  cru_.f->words[{0, cru::reg("superpage_fifo_depth").offset}] = 1;
  start();
  for (int i = 0; i < 16; ++i) {
    push_and_fill(1);
    cru_.complete(0, kSize);
    ASSERT_TRUE(channel_->fill());
  }
  EXPECT_TRUE(channel_->ready_full());
  push_and_fill(1);
  cru_.complete(0, kSize);
  ASSERT_TRUE(channel_->fill());
  EXPECT_EQ(channel_->ready_size(), 16u);
  ASSERT_TRUE(channel_->pop());
  ASSERT_TRUE(channel_->fill());
  EXPECT_EQ(channel_->ready_size(), 16u);
}

TEST_F(CruChannelTest, StartsInTheOrderThatTheFirmwareNeeds) {
  open();
  cru_.log.clear();
  cru_.f->words[{2, cru::reg("user_control").offset}] = 1;  // still running
  ASSERT_TRUE(channel_->start());
  EXPECT_EQ(cru_.log, (std::vector<std::string>{"data_source=0", "user_control=0", "reset=2", "reset=1", "dma_control=1",
                                                "user_control=1"}))
      << "data taking is off before the reset";
  EXPECT_TRUE(cru_.f->bus_master);
}

TEST_F(CruChannelTest, TheInternalGeneratorNeedsNoLinks) {
  cru_.f->words[{2, cru::reg("datapath_enable").offset}] = 0;
  open({.source = DataSource::internal});
  cru_.log.clear();
  ASSERT_TRUE(channel_->start());
  EXPECT_EQ(cru_.log,
            (std::vector<std::string>{"debug=2", "data_source=1", "user_control=0", "reset=2", "reset=1", "dma_control=1"}));
  push_and_fill(1);
  EXPECT_EQ(cru_.queue[0].size(), 1u);
  ASSERT_TRUE(channel_->stop());
  cru_.f->words[{0, cru::reg("debug").offset}] = 256U << 20;  // the length of a time frame
  while (channel_->pop()) {
  }
  cru_.log.clear();
  ASSERT_TRUE(channel_->start());
  EXPECT_THAT(cru_.log, testing::Not(testing::Contains("debug=2"))) << "the length shares the register";
}

TEST_F(CruChannelTest, WithoutLinksThereIsNothingToStart) {
  cru_.f->words[{2, cru::reg("datapath_enable").offset}] = 0;
  open();
  EXPECT_EQ(channel_->start().error().code, "card.no_links");
  EXPECT_EQ(channel_->state(), DmaState::stopped);
}

TEST_F(CruChannelTest, AStopReturnsPartsAndUnusedSuperpages) {
  start();
  push_and_fill(3);
  cru_.complete(0, kSize);
  cru_.flush = {{0, 4096}};
  ASSERT_TRUE(channel_->stop());
  EXPECT_EQ(channel_->state(), DmaState::stopped);
  EXPECT_EQ(channel_->push(superpage(0)), PushStatus::not_started);
  EXPECT_TRUE(channel_->pop()->filled());
  EXPECT_EQ(channel_->pop()->received, 4096u);
  const auto unused = channel_->pop();
  ASSERT_TRUE(unused);
  EXPECT_FALSE(unused->ready);
  EXPECT_EQ(unused->received, 0u);
  EXPECT_FALSE(channel_->pop());
  EXPECT_EQ(channel_->read(DmaCounter::superpages_unused), 1u);
  EXPECT_TRUE(channel_->stop()) << "a second stop changes nothing";
  EXPECT_TRUE(channel_->fill());
}

TEST_F(CruChannelTest, AStopWaitsForWhatTheCardFlushesLate) {
  start();
  push_and_fill(3);
  int looks = 0;
  const auto before = cru_.f->before_read;
  cru_.f->before_read = [&](unsigned bar, std::uint64_t offset) {
    const bool stopped = cru::kDmaFlush.of(cru_.f->words[{0, cru::reg("dma_control").offset}]) != 0;
    if (bar == 0 && offset == cru::reg("superpages_done").offset && stopped && ++looks == 3) cru_.complete(0, 4096);
    before(bar, offset);
  };
  ASSERT_TRUE(channel_->stop());
  EXPECT_EQ(channel_->pop()->received, 4096u);
  EXPECT_FALSE(channel_->pop()->ready);
}

TEST_F(CruChannelTest, NoSuperpageComesBackBeforeTheCardCannotWriteToIt) {
  start();
  push_and_fill(3);
  EXPECT_TRUE(cru_.f->bus_master);
  ASSERT_TRUE(channel_->stop());
  EXPECT_FALSE(cru_.f->bus_master);
  while (channel_->pop()) {
  }
  ASSERT_TRUE(channel_->start());
  EXPECT_TRUE(cru_.f->bus_master);
}

TEST_F(CruChannelTest, ACardThatMayStillWriteKeepsItsSuperpages) {
  start();
  push_and_fill(3);
  cru_.f->command_fault = Error{"card.timeout", "it does not answer"};
  EXPECT_EQ(channel_->stop().error().code, "card.timeout");
  EXPECT_EQ(channel_->state(), DmaState::failed);
  EXPECT_EQ(channel_->ready_size(), 0u);
  EXPECT_TRUE(cru_.f->dma.empty()) << "the IOMMU refuses its writes";
  EXPECT_FALSE(channel_->start());
  cru_.f->command_fault.reset();
  ASSERT_TRUE(channel_->stop());
  EXPECT_EQ(channel_->ready_size(), 3u);
  while (channel_->pop()) {
  }
  ASSERT_TRUE(channel_->start());
  push_and_fill(1);
  cru_.complete(0, kSize);
  ASSERT_TRUE(channel_->fill());
  EXPECT_TRUE(channel_->pop()->filled());
}

TEST_F(CruChannelTest, WithoutAnIommuTheMemoryOfACardThatMayStillWriteStaysHeld) {
  cru_.f->iommu = false;
  start();
  push_and_fill(3);
  cru_.f->command_fault = Error{"card.timeout", "it does not answer"};
  EXPECT_FALSE(channel_->stop());
  channel_.reset();
  EXPECT_EQ(cru_.f->dma.size(), 1u);
}

TEST_F(CruChannelTest, TheCardForgetsOldSuperpagesBeforeItMayWriteAgain) {
  cru_.f->bus_master = true;  // left by a killed owner
  open();
  EXPECT_FALSE(cru_.f->bus_master);
  const auto after = cru_.f->after_write;
  cru_.f->after_write = [&](unsigned bar, std::uint64_t offset, std::uint32_t value) {
    EXPECT_FALSE(bar == 0 && offset == cru::reg("reset").offset && cru_.f->bus_master);
    after(bar, offset, value);
  };
  ASSERT_TRUE(channel_->start());
  EXPECT_TRUE(cru_.f->bus_master);
}

TEST_F(CruChannelTest, AStopReturnsWhatTheCardNeverGot) {
  start();
  for (std::uint64_t i = 0; i < 5; ++i) ASSERT_EQ(channel_->push(superpage(i)), PushStatus::done);
  ASSERT_TRUE(channel_->stop());
  for (std::uint64_t i = 0; i < 5; ++i) EXPECT_EQ(channel_->pop()->offset, i * kSize);
}

TEST_F(CruChannelTest, StartsAgainWithoutAnythingOfTheRunBefore) {
  start();
  push_and_fill(4);
  cru_.complete(0, kSize);
  ASSERT_TRUE(channel_->stop());
  EXPECT_EQ(channel_->start().error().code, "card.not_drained");
  while (channel_->pop()) {
  }
  ASSERT_TRUE(channel_->start());
  EXPECT_TRUE(channel_->start()) << "a second start changes nothing";
  EXPECT_EQ(channel_->outstanding(), 0u);
  push_and_fill(1);
  EXPECT_EQ(channel_->ready_size(), 0u);
  cru_.complete(0, 100 * 4);
  ASSERT_TRUE(channel_->fill());
  EXPECT_EQ(channel_->pop()->received, 400u) << "counts and indices restarted at 0";
}

TEST_F(CruChannelTest, ResetsOnlyWhileStopped) {
  start();
  EXPECT_EQ(channel_->reset(ResetLevel::internal).error().code, "card.not_stopped");
  ASSERT_TRUE(channel_->stop());
  cru_.log.clear();
  EXPECT_TRUE(channel_->reset(ResetLevel::nothing));
  EXPECT_TRUE(cru_.log.empty());
  EXPECT_TRUE(channel_->reset(ResetLevel::internal));
  EXPECT_EQ(cru_.log, (std::vector<std::string>{"reset=2", "reset=1"}));
  EXPECT_EQ(channel_->reset(ResetLevel::internal_siu).error().code, "card.bad_dma");
}

TEST_F(CruChannelTest, ACountThatGoesBackIsSaidToHaveGoneBack) {
  start();
  push_and_fill(2);
  cru_.done[0] -= 1;
  const auto filled = channel_->fill();
  ASSERT_FALSE(filled);
  EXPECT_EQ(filled.error().code, "card.misbehaved");
  EXPECT_NE(filled.error().what.find("went back"), std::string::npos) << filled.error().what;
  EXPECT_EQ(channel_->read(DmaCounter::count_jumps), 1u);
}

TEST_F(CruChannelTest, ACountThatJumpsIsAnErrorAndNoLoop) {
  start();
  push_and_fill(2);
  cru_.done[0] = 3;
  const auto filled = channel_->fill();
  ASSERT_FALSE(filled);
  EXPECT_EQ(filled.error().code, "card.misbehaved");
  EXPECT_EQ(channel_->read(DmaCounter::count_jumps), 1u);
  EXPECT_EQ(channel_->state(), DmaState::failed);
  EXPECT_EQ(channel_->push(superpage(0)), PushStatus::not_started);
  EXPECT_FALSE(channel_->fill());
  EXPECT_FALSE(channel_->start());
  EXPECT_TRUE(channel_->stop());
  EXPECT_FALSE(cru_.f->bus_master) << "the card cannot write to superpages that came back";
  EXPECT_EQ(channel_->ready_size(), 2u) << "no superpage is lost";
}

TEST_F(CruChannelTest, AnIndexThatIsNotTheNextIsAnErrorAndNoLoop) {
  start();
  push_and_fill(2);
  cru_.complete(0, kSize);
  cru_.sizes[0].front() += 1U << 24;
  EXPECT_EQ(channel_->fill().error().code, "card.misbehaved");
  EXPECT_EQ(channel_->read(DmaCounter::index_mismatches), 1u);
  EXPECT_TRUE(channel_->stop());
  EXPECT_FALSE(cru_.f->bus_master);
  EXPECT_EQ(channel_->ready_size(), 2u);
}

TEST_F(CruChannelTest, ASizeAboveTheSuperpagesIsAnError) {
  start();
  push_and_fill(1);
  cru_.complete(0, kSize + 4);
  EXPECT_EQ(channel_->fill().error().code, "card.misbehaved");
  EXPECT_EQ(channel_->read(DmaCounter::oversize), 1u);
}

TEST_F(CruChannelTest, ACardThatIsGoneIsAnErrorAndTheSuperpagesComeBack) {
  start();
  push_and_fill(3);
  cru_.f->fault = [] { return std::unexpected(Error{"card.gone", "the card's process hung up"}); };
  EXPECT_EQ(channel_->fill().error().code, "card.gone");
  EXPECT_TRUE(channel_->stop());
  EXPECT_EQ(channel_->ready_size(), 3u);
}

TEST_F(CruChannelTest, ADepthThatNoFirmwareHasIsRefused) {
  cru_.f->words[{0, cru::reg("superpage_fifo_depth").offset}] = 0x7fffffff;
  EXPECT_EQ(DmaChannel::open(*cru_.card, 0, memory_.shared()).error().code, "card.misbehaved");
}

TEST_F(CruChannelTest, HasOneOwner) {
  open();
  EXPECT_EQ(DmaChannel::open(*cru_.card, 0, memory_.shared()).error().code, "card.locked");
  channel_.reset();
  EXPECT_TRUE(DmaChannel::open(*cru_.card, 0, memory_.shared()));
}

TEST_F(CruChannelTest, HonoursTheNameThatUpstreamsToolsLock) {
  const auto theirs = pci::NameLock::acquire("lice_O2_RoC_DMA_3b:00.0_lock", "it");
  ASSERT_TRUE(theirs) << theirs.error().message();
  EXPECT_EQ(DmaChannel::open(*cru_.card, 0, memory_.shared(), {.upstream_lock = true}).error().code, "card.locked");
  EXPECT_TRUE(DmaChannel::open(*cru_.card, 0, memory_.shared())) << "an emulated card does not need them";
}

TEST_F(CruChannelTest, AnOpenStopsWhatAKilledOwnerLeftRunning) {
  cru_.f->words[{2, cru::reg("user_control").offset}] = 1;
  cru_.f->words[{0, cru::reg("dma_control").offset}] = 1;
  open();
  EXPECT_EQ((cru_.f->words[{2, cru::reg("user_control").offset}]), 0u);
  EXPECT_NE((cru_.f->words[{0, cru::reg("dma_control").offset}]) & 0x100, 0u);
}

TEST_F(CruChannelTest, ItsMemoryIsTheCardsOnlyWhileItIsOpen) {
  open();
  EXPECT_EQ(cru_.f->dma.size(), 1u);
  channel_.reset();
  EXPECT_TRUE(cru_.f->dma.empty());
}

TEST_F(CruChannelTest, RefusesWhatACruHasNot) {
  EXPECT_EQ(DmaChannel::open(*cru_.card, 1, memory_.shared()).error().code, "card.bad_dma");
  EXPECT_EQ(DmaChannel::open(*cru_.card, 0, memory_.shared(), {.source = DataSource::siu}).error().code, "card.bad_dma");
  EXPECT_EQ(DmaChannel::open(*cru_.card, 0, memory_.shared(), {.page_bytes = 4096}).error().code, "card.bad_dma");
  EXPECT_EQ(DmaChannel::open(*cru_.card, 0, {memory_.bytes().first(100), -1, 0}).error().code, "card.dma_memory");
}

TEST_F(CruChannelTest, OpensOnlyWithFirmwareThatTheTableHas) {
  cru_.f->words[{2, cru::reg("firmware_hash").offset}] = 0x0abc;
  cru_.f->words[{2, cru::reg("serial").offset}] = 0x33333230;
  const auto refused = DmaChannel::open(*cru_.card, 0, memory_.shared());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, "card.firmware");
  EXPECT_NE(refused.error().what.find("firmware abc of the CRU with serial number 0233, endpoint 0"), std::string::npos)
      << refused.error().what;
  EXPECT_TRUE(DmaChannel::open(*cru_.card, 0, memory_.shared(), {.check_firmware = false}));
  FirmwareTable table = FirmwareTable::built_in();
  ASSERT_TRUE(table.add("00000abc", "mine"));
  EXPECT_TRUE(DmaChannel::open(*cru_.card, 0, memory_.shared(), {.firmware = &table}));
}

TEST(FirmwareTable, GivesNamesToHashes) {
  FirmwareTable table = FirmwareTable::built_in();
  EXPECT_EQ(table.name_of(0xf6b5d742), "v3.19.4");
  EXPECT_EQ(table.name_of(0x4a412c71), "v3.13.0 (old)");
  EXPECT_FALSE(table.compatible(0x4a412c71));
  EXPECT_EQ(table.name_of(0x00abcdef), "abcdef");
  EXPECT_EQ(table.add("xyz", "a").error().code, "card.bad_firmware_table");
  EXPECT_FALSE(table.add("", "a"));
  EXPECT_FALSE(table.add("123456789", "a"));
}

TEST_F(CruChannelTest, TellsHowTheCardIs) {
  cru_.f->words[{2, cru::reg("temperature").offset}] = 0x1b0;
  cru_.f->words[{2, cru::reg("datapath_dropped_packets").offset}] = 17;
  start();
  auto health = channel_->health();
  ASSERT_TRUE(health);
  EXPECT_EQ(health->dropped_packets, 17u);
  EXPECT_NEAR(*health->temperature_celsius, 27.4, 0.1);
  EXPECT_TRUE(health->fifos_healthy);
  cru_.f->words[{0, cru::reg("fifo_empty_count").offset}] = 1;
  EXPECT_FALSE(channel_->health()->fifos_healthy);
  EXPECT_TRUE(channel_->health()->fifos_healthy) << "since the last call";
  cru_.f->words[{2, cru::reg("datapath_dropped_packets").offset}] = UINT32_MAX;
  EXPECT_EQ(channel_->health()->dropped_packets, UINT32_MAX);
  cru_.f->words[{2, cru::reg("firmware_hash").offset}] = UINT32_MAX;
  EXPECT_EQ(channel_->health().error().code, "card.all_ones");
}

TEST_F(CruChannelTest, APushFromAnotherThreadDuringAStopIsRefusedOrReturned) {
  start();
  std::atomic<bool> end{false};
  std::uint64_t accepted = 0;
  std::thread pusher([&] {
    while (!end) {
      if (channel_->push(superpage(0)) == PushStatus::done) ++accepted;
    }
  });
  while (channel_->transfer_empty()) std::this_thread::yield();
  ASSERT_TRUE(channel_->stop());
  end = true;
  pusher.join();
  std::uint64_t returned = 0;
  while (channel_->pop()) ++returned;
  EXPECT_EQ(returned, accepted);
}

TEST(DataSources, HaveNamesInAnyCase) {
  EXPECT_EQ(data_source_of("INTERNAL"), DataSource::internal);
  EXPECT_EQ(data_source_of("Fee"), DataSource::fee);
  EXPECT_FALSE(data_source_of("feee"));
}

}  // namespace
}  // namespace rodeo::card
