// Messages to the front ends of an emulated FELIX, which echoes the messages of its control E-links.
#include "card/dma/from_host_channel.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "emulated_card.h"
#include "formats/block_decoder.h"

namespace rodeo::card {
namespace {

namespace felix = card_registers::felix;

using Bytes = std::vector<std::byte>;

constexpr std::uint16_t kIc = 62;
constexpr std::uint16_t kEcOfLink1 = 1U << 6 | 63U;

class FromHost : public EmulatedCard {
 protected:
  void SetUp() override {}

  void set_up_felix(formats::FromHostLength length) {
    emulator::EmulatedCardSettings card;
    card.type = emulator::CardType::felix;
    card.name = "card";
    card.address = "3b:00.0";
    card.flush = std::chrono::milliseconds{1};
    card.felix.links = 2;
    card.felix.elinks_per_link = 3;
    card.felix.loopback = true;
    card.felix.from_host_length = length;
    emulator::EmulatorSettings settings;
    settings.directory = directory_.file("cards");
    settings.cards.push_back(card);
    emulator_ = std::make_unique<emulator::Emulator>(settings);
    kind_ = kFelix;
    card_ = open_card();
    ASSERT_TRUE(card_->write(felix::reg("generator_control"), 0)) << "only echoed messages come";
    open_and_start(DmaSettings{.source = DataSource::fee});
    while (push() == PushStatus::done) {
    }
    // The first superpage starts the data to the host: before it no echo can come.
    ASSERT_TRUE(channel_->fill());
    auto opened = FromHostChannel::open(*card_);
    ASSERT_TRUE(opened) << opened.error().message();
    from_host_ = std::move(*opened);
    EXPECT_EQ(from_host_->length(), length);
  }

  bool send(std::uint16_t elink, const Bytes& message) {
    Bytes packets;
    formats::append_from_host(packets, elink, message, from_host_->length());
    const auto written = from_host_->write(packets);
    EXPECT_TRUE(written) << written.error().message();
    return written.value_or(false);
  }

  /// Adds the echoes since the last call, by E-link.
  void receive() {
    ASSERT_TRUE(channel_->fill());
    const auto add = [&](std::uint64_t offset, std::size_t bytes) {
      if (bytes == 0) return;
      ASSERT_EQ(decoder_.decode(memory_.bytes().subspan(offset, bytes), buffer_), bytes);
      for (const ChunkRun& run : buffer_.runs()) {
        for (std::uint32_t i = 0; i < run.count; ++i) {
          const auto chunk = run.chunk(i);
          rest_[run.link].insert(rest_[run.link].end(), chunk.begin(), chunk.end());
          if (!run.more_follows || i + 1 < run.count) came_[run.link].push_back(std::exchange(rest_[run.link], {}));
        }
      }
      buffer_.clear();
    };
    while (const auto page = channel_->pop()) {
      add(page->offset + seen_, page->received - seen_);
      seen_ = 0;
      (void)push();
      at_ = (page->offset + page->bytes) % (kPieces * kSize);
    }
    const std::uint32_t growing = channel_->growing();
    add(at_ + seen_, growing - seen_);
    seen_ = growing;
  }

  /// Sends random messages to two links, more than both rings hold; all come back.
  void send_and_receive(formats::FromHostLength length) {
    set_up_felix(length);
    std::mt19937 random(3);
    std::array<std::vector<Bytes>, 2> sent;
    std::size_t number = 0;
    for (std::size_t bytes = 0; bytes < 4U << 20; ++number) {
      Bytes message(1 + random() % (number % 50 == 0 ? 40'000 : 400));
      for (std::byte& byte : message) byte = static_cast<std::byte>(random());
      const std::size_t link = random() % 2;
      ASSERT_TRUE(eventually([&] {
        receive();
        return send(elinks_[link], message);
      }));
      bytes += message.size();
      if (length == formats::FromHostLength::words && message.size() % 2 == 1) message.emplace_back();
      sent[link].push_back(std::move(message));
    }
    ASSERT_TRUE(eventually([&] {
      receive();
      return came_[0].size() + came_[1].size() >= number;
    })) << came_[0].size()
        << " and " << came_[1].size() << " of " << number;
    EXPECT_EQ(came_, sent);
    EXPECT_EQ(from_host_->pending().value(), 0U);
  }

  std::unique_ptr<FromHostChannel> from_host_;
  std::vector<std::uint16_t> elinks_{kIc, kEcOfLink1};
  formats::BlockDecoder decoder_{{.format = {}}, elinks_};
  formats::DecodeBuffer buffer_{decoder_.capacity_for(4096)};
  std::array<Bytes, 2> rest_;
  std::array<std::vector<Bytes>, 2> came_;
  std::uint64_t at_ = 0;
  std::uint32_t seen_ = 0;
};

TEST_F(FromHost, MessagesComeBackWholeAndInOrder) { send_and_receive(formats::FromHostLength::bytes); }

TEST_F(FromHost, MessagesOfRegisterMap4ComeBackInWholeWords) { send_and_receive(formats::FromHostLength::words); }

TEST_F(FromHost, WhoDoesNotReadHoldsWhatWouldComeBackAndNothingIsLost) {
  set_up_felix(formats::FromHostLength::bytes);
  const Bytes message(30'000, std::byte{7});
  std::size_t sent = 0;
  ASSERT_TRUE(eventually([&] {
    while (send(kIc, message)) ++sent;
    return sent > 80;
  })) << sent
      << ": the ring holds two megabytes, the ring to the host one";
  ASSERT_TRUE(eventually([&] {
    receive();
    return came_[0].size() == sent;
  })) << came_[0].size()
      << " of " << sent;
  EXPECT_EQ(came_[0].back(), message);
}

TEST_F(FromHost, WhatDoesNotComeBackWaitsForNobody) {
  set_up_felix(formats::FromHostLength::bytes);
  // The ring to the host is full, because the test reads no echoes.
  const Bytes message(30'000, std::byte{7});
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(send(kIc, message));
  ASSERT_TRUE(eventually([&] { return from_host_->pending().value() < 25 * 32'000; })) << "it takes what has room";
  from_host_.reset();
  from_host_ = FromHostChannel::open(*card_).value();
  ASSERT_TRUE(send(1, message)) << "an E-link of data";
  EXPECT_TRUE(eventually([&] { return from_host_->pending().value() == 0; }));
}

TEST_F(FromHost, HalfAMessageOfAFormerOwnerIsForgotten) {
  set_up_felix(formats::FromHostLength::bytes);
  Bytes packets;
  formats::append_from_host(packets, kIc, Bytes(100, std::byte{1}), from_host_->length());
  ASSERT_TRUE(from_host_->write(std::span(packets).first(2 * formats::kFromHostPacketBytes)).value_or(false));
  ASSERT_TRUE(eventually([&] { return from_host_->pending().value() == 0; }));
  from_host_.reset();
  from_host_ = FromHostChannel::open(*card_).value();
  const Bytes message(10, std::byte{2});
  ASSERT_TRUE(send(kIc, message));
  ASSERT_TRUE(eventually([&] {
    receive();
    return !came_[0].empty();
  }));
  EXPECT_EQ(came_[0].front(), message);
}

TEST_F(FromHost, HasOneOwner) {
  set_up_felix(formats::FromHostLength::bytes);
  const auto other = open_card();
  const auto second = FromHostChannel::open(*other);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, "card.locked");
  from_host_.reset();
  EXPECT_TRUE(FromHostChannel::open(*other));
}

TEST_F(FromHost, ACruHasNone) {
  set_up(kCru);
  const auto opened = FromHostChannel::open(*card_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, "card.wrong_type");
}

}  // namespace
}  // namespace rodeo::card
