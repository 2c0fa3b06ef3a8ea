// An emulated card (src/emulator), its driver and one of its DMA channels in one process, for the rules of DMA channels.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "card/dma/channel.h"
#include "emulator/emulator.h"
#include "formats/temporary_directory.h"

namespace rodeo::card {

inline constexpr std::uint32_t kSize = 64 << 10;
inline constexpr std::uint64_t kPieces = 16;

struct EmulatedKind {
  emulator::CardType type;
  unsigned channel;
  const char* name;
};
inline constexpr EmulatedKind kCru{emulator::CardType::cru, 0, "Cru"};
inline constexpr EmulatedKind kCrorc{emulator::CardType::crorc, 2, "Crorc"};
inline constexpr EmulatedKind kFelix{emulator::CardType::felix, 0, "Felix"};

class EmulatedCard : public testing::TestWithParam<EmulatedKind> {
 protected:
  void SetUp() override { set_up(GetParam()); }

  void set_up(const EmulatedKind& kind) {
    kind_ = kind;
    emulator::EmulatedCardSettings card;
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
    open(settings);
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
  /// Pushes this number of superpages, or fills a FELIX's ring, because that card needs a full ring. Returns the number.
  std::uint64_t push_some(std::uint64_t count) {
    if (kind_.type == emulator::CardType::felix) count = kPieces - next_;
    for (std::uint64_t i = 0; i < count; ++i) EXPECT_EQ(push(), PushStatus::done);
    return count;
  }
  PushStatus push(std::uint64_t offset, std::uint32_t bytes) {
    Superpage page;
    page.offset = offset;
    page.bytes = bytes;
    return channel_->push(page);
  }
  /// Waits until this number of superpages is ready.
  void wait_ready(std::size_t count) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
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
  void inject(emulator::FaultKind kind, unsigned link) {
    ASSERT_TRUE(emulator_->inject("card", {.kind = kind, .link = link}).has_value());
  }
  /// Waits for an action of the card.
  template <typename Condition>
  static bool eventually(Condition&& condition) {
    for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
         std::chrono::steady_clock::now() < end;) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }
  std::span<const std::byte> bytes_of(const Superpage& page) const {
    return memory_.bytes().subspan(page.offset, page.received);
  }

  test::TemporaryDirectory directory_;
  EmulatedKind kind_{};
  std::uint32_t links_ = 0;
  DmaMemory memory_ = DmaMemory::create(kPieces * kSize).value();
  std::unique_ptr<emulator::Emulator> emulator_;
  std::unique_ptr<Card> card_;
  std::unique_ptr<DmaChannel> channel_;
  std::uint64_t next_ = 0;
};

}  // namespace rodeo::card
