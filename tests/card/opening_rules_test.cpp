// The rules for opening a channel (table in README.md), with emulated cards: settings, memory, firmware, and one owner.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <map>

#include "emulated_card.h"

namespace rodeo::card {
namespace {

TEST_P(EmulatedCard, PagesHave8KiB) {
  auto settings = internal();
  settings.page_bytes = 4096;
  EXPECT_EQ(DmaChannel::open(*card_, kind_.channel, memory_.shared(), settings).error().code, "card.bad_dma");
}

TEST_P(EmulatedCard, SourcesThatACardHasNotAreRefused) {
  const std::map<emulator::CardType, std::vector<DataSource>> not_there{
      {emulator::CardType::cru, {DataSource::siu, DataSource::diu}},
      {emulator::CardType::crorc, {DataSource::ddg}},
      {emulator::CardType::felix, {DataSource::siu, DataSource::diu, DataSource::ddg}}};
  for (const DataSource source : not_there.at(kind_.type)) {
    EXPECT_EQ(DmaChannel::open(*card_, kind_.channel, memory_.shared(), {.source = source}).error().code, "card.bad_dma");
  }
}

TEST_P(EmulatedCard, MemoryWithoutAFileOrNotInWholePagesIsRefused) {
  const auto code = [&](SharedMemory memory) {
    return DmaChannel::open(*card_, kind_.channel, memory, internal()).error().code;
  };
  EXPECT_EQ(code({memory_.bytes(), -1, 0}), "card.dma_memory");
  EXPECT_EQ(code({memory_.bytes().first(4096 * 3 + 100), memory_.shared().fd, 0}), "card.dma_memory");
}

TEST_P(EmulatedCard, FirmwareThatTheTableHasNotIsRefused) {
  const FirmwareTable empty{};
  auto settings = internal();
  settings.firmware = &empty;
  EXPECT_EQ(DmaChannel::open(*card_, kind_.channel, memory_.shared(), settings).error().code, "card.firmware");
  settings.check_firmware = false;
  EXPECT_TRUE(DmaChannel::open(*card_, kind_.channel, memory_.shared(), settings));
}

TEST_P(EmulatedCard, AChannelHasOneOwnerWhicheverHandleIsUsed) {
  open();
  const auto other = open_card();
  DmaMemory memory = DmaMemory::create(kPieces * kSize).value();
  EXPECT_EQ(DmaChannel::open(*other, kind_.channel, memory.shared(), internal()).error().code, "card.locked");
  channel_.reset();
  EXPECT_TRUE(DmaChannel::open(*other, kind_.channel, memory.shared(), internal()));
}

TEST_P(EmulatedCard, UpstreamsNameIsHonouredWhereItExists) {
  const bool crorc_card = kind_.type == emulator::CardType::crorc;
  const auto theirs = pci::NameLock::acquire(
      crorc_card ? "lice_O2_RoC_DMA_3b:00.0_chan2_lock" : "lice_O2_RoC_DMA_3b:00.0_lock", "a channel");
  ASSERT_TRUE(theirs) << theirs.error().message();
  auto settings = internal();
  settings.upstream_lock = true;
  const auto opened = DmaChannel::open(*card_, kind_.channel, memory_.shared(), settings);
  if (kind_.type == emulator::CardType::felix) {
    EXPECT_TRUE(opened) << "upstream has no such card";
  } else {
    EXPECT_EQ(opened.error().code, "card.locked");
  }
}

TEST_P(EmulatedCard, WhatAKilledOwnerLeftIsCleanedByTheNext) {
  const pid_t child = ::fork();
  if (child == 0) {
    // The child has only this thread: it opens its own connection, memory and channel.
    const auto card = open_card();
    DmaMemory memory = DmaMemory::create(kPieces * kSize).value();
    auto channel = DmaChannel::open(*card, kind_.channel, memory.shared(), internal());
    if (!channel || !(*channel)->start()) ::_exit(1);
    for (std::uint64_t i = 0; i < kPieces; ++i) (void)(*channel)->push(piece(i));
    for (int i = 0; i < 20; ++i) (void)(*channel)->fill();
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << "the child could not start DMA";
  open_and_start();
  push_some(4);
  wait_ready(1);
  EXPECT_TRUE(channel_->pop()->ready);
}

}  // namespace
}  // namespace rodeo::card
