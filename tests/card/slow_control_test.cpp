// Slow control through an emulated CRU: a slow control adapter, a GBTx and echoed words.
#include "card/operations/slow_control.h"

#include <gtest/gtest.h>

#include "emulated_card.h"

namespace rodeo::card {
namespace {

using namespace std::chrono_literals;

class SlowControl : public EmulatedCard {
 protected:
  void SetUp() override { set_up(kCru); }

  template <typename T>
  static std::string code_of(const Result<T>& result) {
    return result ? "" : result.error().code;
  }
};

TEST_F(SlowControl, AnAdapterReadsWhatWasWrittenOnItsChannelAndLink) {
  constexpr std::uint32_t kWrite = 2U << 24 | 1U << 16 | 0x10;  // GPIO
  constexpr std::uint32_t kRead = 2U << 24 | 2U << 16 | 0x11;
  EXPECT_EQ(exchange_sca(*card_, 3, {kWrite, 0xcafe}).value(), (ScaFrame{2U << 24 | 1U << 16, 0}));
  EXPECT_EQ(exchange_sca(*card_, 3, {kRead, 0}).value(), (ScaFrame{2U << 24 | 2U << 16, 0xcafe}));
  EXPECT_EQ(exchange_sca(*card_, 4, {kRead, 0}).value().data, 0U) << "another link";
  EXPECT_EQ(exchange_sca(*card_, 3, {20U << 24 | 3U << 16 | 0xd1, 1}).value().data, 0x5caU) << "the chip's id";
}

TEST_F(SlowControl, WhatAnAdapterRefusesIsAnErrorByName) {
  const auto answer = exchange_sca(*card_, 0, {30U << 24 | 1U << 16 | 0x10, 0});
  EXPECT_EQ(code_of(answer), "card.slow_control");
  EXPECT_NE(answer.error().what.find("invalid channel"), std::string::npos) << answer.error().what;
  for (const std::uint32_t transaction : {0U, 255U})
    EXPECT_EQ(code_of(exchange_sca(*card_, 0, {transaction << 16, 0})), "card.bad_setting") << transaction;
  EXPECT_EQ(code_of(exchange_sca(*card_, 12, {1U << 16, 0})), "card.bad_setting");
}

TEST_F(SlowControl, SingleWordsComeBackWholeAndInOrder) {
  std::vector<SwtWord> sent;
  for (std::uint32_t i = 0; i < 20; ++i) sent.push_back({i, 0x80000000U + i, static_cast<std::uint16_t>(0xff0 + i % 16)});
  for (const SwtWord& word : sent) ASSERT_TRUE(write_swt(*card_, 7, word));
  EXPECT_EQ(read_swt(*card_, 7, 5, 0ms).value(), std::vector(sent.begin(), sent.begin() + 5));
  EXPECT_EQ(read_swt(*card_, 7, 1000, 0ms).value(), std::vector(sent.begin() + 5, sent.end()));
  EXPECT_EQ(read_swt(*card_, 7, 1000, 0ms).value(), std::vector<SwtWord>{}) << "no words is not an error";
  EXPECT_EQ(code_of(write_swt(*card_, 7, {0, 0, 0x1000})), "card.bad_setting") << "76 bits";
  ASSERT_TRUE(write_swt(*card_, 7, sent[0]));
  ASSERT_TRUE(reset_slow_control(*card_, 7));
  EXPECT_EQ(read_swt(*card_, 7, 1000, 0ms).value(), std::vector<SwtWord>{});
}

TEST_F(SlowControl, RegistersOfAGbtxKeepWhatIsWritten) {
  ASSERT_TRUE(write_ic(*card_, 1, 0x54, 0xab));
  EXPECT_EQ(read_ic(*card_, 1, 0x54).value(), 0xab);
  EXPECT_EQ(read_ic(*card_, 1, 0x55).value(), 0);
  EXPECT_EQ(read_ic(*card_, 2, 0x54).value(), 0) << "another link";
}

TEST_F(SlowControl, WithoutLightNoFrontEndAnswers) {
  ASSERT_TRUE(write_ic(*card_, 1, 0x54, 0xab));
  ASSERT_TRUE(exchange_sca(*card_, 1, {2U << 24 | 1U << 16 | 0x10, 0}));
  inject(emulator::FaultKind::link_down, 1);
  EXPECT_EQ(code_of(read_ic(*card_, 1, 0x54)), "card.slow_control");
  EXPECT_EQ(code_of(write_ic(*card_, 1, 0x54, 1)), "card.slow_control");
  EXPECT_EQ(code_of(exchange_sca(*card_, 1, {2U << 24 | 1U << 16 | 0x10, 0})), "card.slow_control");
  ASSERT_TRUE(write_swt(*card_, 1, {1, 2, 3}));
  EXPECT_EQ(read_swt(*card_, 1, 10, 0ms).value(), std::vector<SwtWord>{});
  EXPECT_EQ(read_ic(*card_, 2, 0x54).value(), 0) << "another link";
  inject(emulator::FaultKind::link_up, 1);
  EXPECT_EQ(read_ic(*card_, 1, 0x54).value(), 0xab) << "the chip has stored it";
}

TEST_F(SlowControl, DoesNotKeepAnybodyFromTheCardsConfiguration) {
  const auto configuring = card_->lock(pci::kConfigurationByte, "a configuration");
  ASSERT_TRUE(configuring);
  ASSERT_TRUE(write_ic(*card_, 1, 1, 2));
}

TEST_F(SlowControl, OtherCardsHaveNone) {
  emulator_.reset();
  card_.reset();
  set_up(kFelix);
  EXPECT_EQ(code_of(exchange_sca(*card_, 0, {1U << 16, 0})), "card.wrong_type");
  EXPECT_EQ(code_of(read_ic(*card_, 0, 0)), "card.wrong_type");
  EXPECT_EQ(code_of(write_swt(*card_, 0, {})), "card.wrong_type");
}

}  // namespace
}  // namespace rodeo::card
