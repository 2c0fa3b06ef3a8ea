// The rules of DMA channels (README.md has the table) with the driver that is in use against the cards that are emulated, in one process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <deque>
#include <map>
#include <set>
#include <thread>

#include "card/bench/data_check.h"
#include "card/dma/channel.h"
#include "emulator/emulator.h"
#include "formats/temporary_directory.h"

namespace rodeo::card {
namespace {

using namespace std::chrono_literals;
using emulator::FaultKind;
namespace cru = card_registers::cru;
namespace crorc = card_registers::crorc;

constexpr std::uint32_t kSize = 64 << 10;
constexpr std::uint64_t kPieces = 16;

struct Kind {
  emulator::CardType type;
  unsigned channel;
  const char* name;
};
constexpr Kind kCru{emulator::CardType::cru, 0, "Cru"};
constexpr Kind kCrorc{emulator::CardType::crorc, 2, "Crorc"};
constexpr Kind kFelix{emulator::CardType::felix, 0, "Felix"};

class EmulatedCard : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override { set_up(GetParam()); }

  void set_up(const Kind& kind) {
    kind_ = kind;
    emulator::CardSettings card;
    card.type = kind.type;
    card.name = "card";
    card.address = "3b:00.0";
    if (kind.type == emulator::CardType::crorc) card.rdh.payload = formats::PagePattern::words;
    card.felix.links = 2;
    card.felix.elinks_per_link = 3;
    emulator::EmulatorSettings settings;
    settings.directory = directory_.file("cards");
    settings.cards.push_back(card);
    settings.trigger.wait_for = 0;
    emulator_ = std::make_unique<emulator::Emulator>(settings);
    card_ = open_card();
  }

  std::unique_ptr<Card> open_card() {
    pci::FoundFunction found;
    found.address = pci::Address::parse("0000:3b:00.0").value();
    found.back_end = pci::BackEnd::vfio_user;
    found.place = directory_.file("cards/0000:3b:00.0.sock");
    found.lock_file = directory_.file("cards/0000:3b:00.0.lock");
    auto card = Card::open(found);
    EXPECT_TRUE(card) << (card ? "" : card.error().message());
    return card ? std::move(*card) : nullptr;
  }

  DmaSettings internal() const { return {.source = DataSource::internal, .links = links_}; }

  void open(std::optional<DmaSettings> settings = {}) {
    auto opened = DmaChannel::open(*card_, kind_.channel, memory_.shared(), settings.value_or(internal()));
    ASSERT_TRUE(opened) << opened.error().message();
    channel_ = std::move(*opened);
  }
  void start() {
    const auto started = channel_->start();
    ASSERT_TRUE(started) << started.error().message();
  }
  void open_and_start(std::optional<DmaSettings> settings = {}) {
    open(std::move(settings));
    start();
  }
  static Superpage piece(std::uint64_t number) {
    Superpage page;
    page.offset = number % kPieces * kSize;
    page.bytes = kSize;
    return page;
  }
  PushStatus push() {
    const PushStatus status = channel_->push(piece(next_));
    if (status == PushStatus::done) ++next_;
    return status;
  }
  PushStatus push(std::uint64_t offset, std::uint32_t bytes) {
    Superpage page;
    page.offset = offset;
    page.bytes = bytes;
    return channel_->push(page);
  }
  /// Fills until so many superpages are ready.
  void wait_ready(std::size_t count) {
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    while (channel_->ready_size() < count) {
      const auto filled = channel_->fill();
      ASSERT_TRUE(filled) << filled.error().message();
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << channel_->ready_size() << " of " << count << " are ready";
    }
  }
  std::vector<Superpage> pop_all() {
    std::vector<Superpage> all;
    while (const auto page = channel_->pop()) all.push_back(*page);
    return all;
  }
  void inject(FaultKind kind, unsigned link) {
    ASSERT_TRUE(emulator_->inject("card", {.kind = kind, .link = link}).has_value());
  }
  /// Waits for something that the card does by itself.
  template <typename Condition>
  static bool eventually(Condition&& condition) {
    for (const auto end = std::chrono::steady_clock::now() + 20s; std::chrono::steady_clock::now() < end;) {
      if (condition()) return true;
      std::this_thread::sleep_for(1ms);
    }
    return false;
  }
  std::span<const std::byte> bytes_of(const Superpage& page) const {
    return memory_.bytes().subspan(page.offset, page.received);
  }

  test::TemporaryDirectory directory_;
  Kind kind_{};
  std::uint32_t links_ = 0;
  DmaMemory memory_ = DmaMemory::create(kPieces * kSize).value();
  std::unique_ptr<emulator::Emulator> emulator_;
  std::unique_ptr<Card> card_;
  std::unique_ptr<DmaChannel> channel_;
  std::uint64_t next_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Kinds, EmulatedCard, testing::Values(kCru, kCrorc, kFelix),
                         [](const auto& kind) { return std::string(kind.param.name); });

// What may be pushed, and when.

TEST_P(EmulatedCard, SuperpagesAreRefusedInTheOrderOfTheRules) {
  open();
  EXPECT_EQ(push(0, kSize), PushStatus::not_started);
  start();
  constexpr std::uint64_t kNowhere = ~std::uint64_t{0};
  EXPECT_EQ(push(kNowhere, 0), PushStatus::empty);
  EXPECT_EQ(push(kNowhere, 16 << 10), PushStatus::not_a_multiple);
  EXPECT_EQ(push(kNowhere, (32 << 10) + 4), PushStatus::not_a_multiple);
  EXPECT_EQ(push(kNowhere, 32 << 10), PushStatus::outside);
  EXPECT_EQ(push(kPieces * kSize - kSize + 4, kSize), PushStatus::outside);
  EXPECT_EQ(push(2, 32 << 10), PushStatus::misaligned);
  EXPECT_EQ(push(0, 32 << 10), PushStatus::done) << "32 KiB is the smallest";
  wait_ready(kind_.type == emulator::CardType::felix ? 0 : 1);
}

TEST_P(EmulatedCard, PagesHave8KiB) {
  auto settings = internal();
  settings.page_bytes = 4096;
  EXPECT_EQ(DmaChannel::open(*card_, kind_.channel, memory_.shared(), settings).error().code, "card.bad_dma");
}

TEST_P(EmulatedCard, TheTransferQueueIsKnownBeforeTheFirstStartAndRefusesOneTooMany) {
  open();
  const std::size_t capacity = channel_->transfer_capacity();
  EXPECT_EQ(channel_->transfer_room(), capacity);
  start();
  EXPECT_EQ(channel_->transfer_capacity(), capacity);
  for (std::size_t i = 0; i < capacity; ++i) ASSERT_EQ(push(), PushStatus::done) << i;
  EXPECT_NE(push(), PushStatus::done);
  if (kind_.type != emulator::CardType::felix) {
    EXPECT_EQ(push(), PushStatus::full);
  }
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

// Data.

TEST_P(EmulatedCard, EveryByteOfManySuperpagesIsRight) {
  links_ = kind_.type == emulator::CardType::cru ? 0b111 : 0;
  open_and_start();
  auto check = make_data_check(*card_, kind_.channel,
                               {.source = DataSource::internal, .superpage_bytes = kSize, .superpages = kPieces});
  ASSERT_TRUE(check) << check.error().message();
  std::deque<std::uint64_t> mine;  // links fill at their own pace: superpages come back in another order than they went
  for (std::uint64_t i = 0; i < kPieces - 1; ++i) mine.push_back(i * kSize);
  if (kind_.type == emulator::CardType::felix) mine.push_back((kPieces - 1) * kSize);
  // Beyond 256 of each link: counts and indices wrap.
  for (int round = 0; round < 400; ++round) {
    for (; !mine.empty(); mine.pop_front()) ASSERT_EQ(push(mine.front(), kSize), PushStatus::done);
    wait_ready(1);
    for (const Superpage& page : pop_all()) {
      ASSERT_TRUE(page.ready);
      (*check)->check(page, bytes_of(page));
      mine.push_back(page.offset);
    }
  }
  EXPECT_EQ((*check)->errors(), 0U) << ((*check)->findings().empty() ? "" : (*check)->findings().front());
  EXPECT_EQ(channel_->read(DmaCounter::index_mismatches) + channel_->read(DmaCounter::count_jumps) +
                channel_->read(DmaCounter::position_errors),
            0U);
}

TEST_P(EmulatedCard, APieceOfTheBufferIsTheUsersAgainWithItsPointer) {
  open_and_start();
  int mine = 0;
  Superpage page = piece(0);
  page.user = &mine;
  ASSERT_EQ(channel_->push(page), PushStatus::done);
  next_ = 1;
  ASSERT_EQ(push(), PushStatus::done);
  wait_ready(1);
  const auto ready = channel_->pop();
  EXPECT_EQ(ready->user, &mine);
  EXPECT_TRUE(ready->ready);
  EXPECT_GT(ready->received, 0U);
}

// States.

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
  for (std::uint64_t i = 0; i < kPieces - 1; ++i) ASSERT_EQ(push(), PushStatus::done);
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
  EXPECT_EQ(offsets.size(), kPieces - 1);
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
    for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(push(), PushStatus::done);
    wait_ready(1);
    const auto page = channel_->pop();
    ASSERT_GE(page->received, 4096U);
    EXPECT_EQ(page->offset, 0U);
    if (kind_.type != emulator::CardType::felix) {
      // The generator begins again: the same bytes.
      const auto begin = bytes_of(*page).first(4096);
      if (run == 0) first.assign(begin.begin(), begin.end());
      EXPECT_TRUE(std::ranges::equal(first, begin)) << "run " << run;
    }
    ASSERT_TRUE(channel_->stop());
    pop_all();
    std::memset(memory_.bytes().data(), 0, memory_.bytes().size());
    std::this_thread::sleep_for(2ms);
    EXPECT_TRUE(std::ranges::all_of(memory_.bytes(), [](std::byte b) { return b == std::byte{0}; }))
        << "the card wrote after its stop was answered";
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

// Owners.

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
    // Only this thread is here: a connection, memory and a channel of its own.
    const auto card = open_card();
    DmaMemory memory = DmaMemory::create(kPieces * kSize).value();
    auto channel = DmaChannel::open(*card, kind_.channel, memory.shared(), internal());
    if (!channel || !(*channel)->start()) ::_exit(1);
    for (std::uint64_t i = 0; i < 8; ++i) (void)(*channel)->push(piece(i));
    for (int i = 0; i < 20; ++i) (void)(*channel)->fill();
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << "the child could not start DMA";
  open_and_start();
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(push(), PushStatus::done);
  wait_ready(1);
  EXPECT_TRUE(channel_->pop()->ready);
}

TEST_P(EmulatedCard, FirmwareThatTheTableHasNotIsRefused) {
  const FirmwareTable empty{};
  auto settings = internal();
  settings.firmware = &empty;
  EXPECT_EQ(DmaChannel::open(*card_, kind_.channel, memory_.shared(), settings).error().code, "card.firmware");
  settings.check_firmware = false;
  EXPECT_TRUE(DmaChannel::open(*card_, kind_.channel, memory_.shared(), settings));
}

// A card that is gone or breaks the rules: an error within a bounded time, and no superpage is lost.

TEST_P(EmulatedCard, ACardThatIsGoneIsAnErrorAndTheSuperpagesComeBack) {
  open_and_start();
  for (std::uint64_t i = 0; i < 5; ++i) ASSERT_EQ(push(), PushStatus::done);
  ASSERT_TRUE(channel_->fill());
  std::size_t have = pop_all().size();
  emulator_.reset();
  // A FELIX's queue is memory, which nobody has taken away: there the stop is the first to see it.
  for (int i = 0; i < 100 && channel_->state() == DmaState::started; ++i) {
    (void)channel_->fill();
    have += pop_all().size();
    if (kind_.type != emulator::CardType::cru) break;
  }
  (void)channel_->stop();
  EXPECT_EQ(channel_->state(), DmaState::stopped);
  EXPECT_EQ(have + pop_all().size(), 5U);
}

class EmulatedCru : public EmulatedCard {
 protected:
  void SetUp() override { set_up(kCru); }
  void stick(std::initializer_list<unsigned> links) {
    for (const unsigned link : links) inject(FaultKind::stuck_fifo, link);
  }
};

TEST_F(EmulatedCru, QueuesAreTheRegistersDepthTimesTheLinks) {
  links_ = 0b1011;
  open();
  const auto depth = card_->read(cru::reg("superpage_fifo_depth"));
  ASSERT_TRUE(depth);
  EXPECT_EQ(channel_->transfer_capacity(), *depth * 3U);
  EXPECT_EQ(channel_->ready_capacity(), *depth * 16U);
}

TEST_F(EmulatedCru, TheNextSuperpageGoesToTheLinkWithTheFewest) {
  links_ = 0b111;
  stick({0, 1, 2});
  open_and_start();
  for (int i = 0; i < 7; ++i) ASSERT_EQ(push(), PushStatus::done);
  ASSERT_TRUE(channel_->fill());
  stick({1});  // free again
  wait_ready(2);
  for (const Superpage& page : pop_all()) EXPECT_EQ(page.link, 1);
  // Link 0 has 3, link 2 has 2, link 1 none: it gets the next ones.
  stick({1});
  for (int i = 0; i < 2; ++i) ASSERT_EQ(push(), PushStatus::done);
  ASSERT_TRUE(channel_->fill());
  stick({0, 1, 2});
  wait_ready(7);
  std::map<int, int> per_link;
  for (const Superpage& page : pop_all()) ++per_link[page.link];
  EXPECT_EQ(per_link, (std::map<int, int>{{0, 3}, {1, 2}, {2, 2}}));
}

TEST_F(EmulatedCru, ReadySuperpagesComeLinkByLink) {
  links_ = 0b111;
  stick({0, 1, 2});
  open_and_start();
  for (int i = 0; i < 6; ++i) ASSERT_EQ(push(), PushStatus::done);
  ASSERT_TRUE(channel_->fill());
  stick({2, 1, 0});
  ASSERT_TRUE(eventually([&] {
    std::uint32_t done = 0;
    for (unsigned link = 0; link < 3; ++link) done += card_->read(cru::reg("superpages_done"), link).value_or(0);
    return done == 6;
  }));
  wait_ready(6);
  std::vector<int> links;
  for (const Superpage& page : pop_all()) links.push_back(page.link);
  EXPECT_EQ(links, (std::vector<int>{0, 0, 1, 1, 2, 2}));
}

TEST_F(EmulatedCru, SizesFitInto24Bits) {
  memory_ = DmaMemory::create(32 << 20).value();
  open_and_start();
  EXPECT_EQ(push(0, 16 << 20), PushStatus::too_large);
  constexpr std::uint32_t kLargest = (16 << 20) - kSuperpageGranule;
  ASSERT_EQ(push(0, kLargest), PushStatus::done);
  wait_ready(1);
  EXPECT_EQ(channel_->pop()->received, kLargest);
}

TEST_F(EmulatedCru, ASuperpageThatIsNotFullHasItsTrueSize) {
  links_ = 1;
  open_and_start({{.source = DataSource::fee, .links = 1}});
  for (int i = 0; i < 8; ++i) ASSERT_EQ(push(), PushStatus::done);
  wait_ready(4);
  auto check = make_data_check(*card_, 0, {.source = DataSource::fee, .superpage_bytes = kSize, .superpages = kPieces});
  ASSERT_TRUE(check);
  for (const Superpage& page : pop_all()) {
    EXPECT_LE(page.received, page.bytes);
    EXPECT_GT(page.received, 0U);
    (*check)->check(page, bytes_of(page));
  }
  EXPECT_EQ((*check)->errors(), 0U) << ((*check)->findings().empty() ? "" : (*check)->findings().front());
}

TEST_F(EmulatedCru, AnIndexThatIsNotTheNextIsAnErrorAndNoLoop) {
  inject(FaultKind::size_index_mismatch, 0);
  open_and_start();
  for (int i = 0; i < 4; ++i) ASSERT_EQ(push(), PushStatus::done);
  ASSERT_TRUE(eventually([&] { return !channel_->fill(); }));
  EXPECT_EQ(channel_->fill().error().code, "card.misbehaved");
  EXPECT_EQ(channel_->state(), DmaState::failed);
  EXPECT_EQ(channel_->read(DmaCounter::index_mismatches), 1U);
  EXPECT_EQ(push(), PushStatus::not_started);
  EXPECT_TRUE(channel_->stop());
  EXPECT_EQ(pop_all().size(), 4U);
  start();
  ASSERT_EQ(push(), PushStatus::done);
  wait_ready(1);
}

TEST_F(EmulatedCru, ASuperpageThatTheCardLosesComesBackAtTheStop) {
  inject(FaultKind::dropped_superpage, 0);
  open_and_start();
  for (int i = 0; i < 3; ++i) ASSERT_EQ(push(), PushStatus::done);
  wait_ready(2);
  ASSERT_TRUE(channel_->stop());
  const auto all = pop_all();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_FALSE(all.back().ready);
}

TEST_F(EmulatedCru, WithoutLinksThereIsNothingToStart) {
  ASSERT_TRUE(card_->write(cru::reg("datapath_enable"), 0, 0));
  open({{.source = DataSource::fee}});
  EXPECT_EQ(channel_->start().error().code, "card.no_links");
}

TEST_F(EmulatedCru, AFrameLengthInTheDebugRegisterDoesNotStopTheInternalGenerator) {
  ASSERT_TRUE(card_->write(cru::reg("debug"), 256U << 20));
  open_and_start();
  ASSERT_EQ(push(), PushStatus::done);
  wait_ready(1);
  EXPECT_EQ(card_->read(cru::reg("debug")), 256U << 20) << "the length shares its register";
}

TEST_F(EmulatedCru, LinksThatRunDryAreSeenInTheHealth) {
  links_ = 1;
  open_and_start();
  EXPECT_TRUE(eventually([&] { return !channel_->health().value_or(DmaHealth{}).fifos_healthy; }));
  const auto health = channel_->health();
  ASSERT_TRUE(health);
  EXPECT_TRUE(health->fifos_healthy) << "since the last call";
  EXPECT_TRUE(health->temperature_celsius);
}

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
  ASSERT_TRUE(eventually([&] { return emulator_->report().functions[0].bytes > 0; }));
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
  for (unsigned i = 0; i < 5 * kPieces; ++i) {
    ASSERT_EQ(push(), PushStatus::done);
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
  EXPECT_LE(channel_->ready_size(), kPieces) << "what is full and not given back is not written again";
  const auto report = emulator_->report();
  for (const auto& [name, count] : report.functions[0].counters) EXPECT_NE(name, "blocks_lost") << count;
}

}  // namespace
}  // namespace rodeo::card
