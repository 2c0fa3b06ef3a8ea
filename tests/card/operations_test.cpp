// Operations on a card without a card: what is written, in which order, and what is refused before anything is.
#include <gtest/gtest.h>

#include "card/operations/ctp_emulator.h"
#include "card/operations/pattern_player.h"
#include "card_registers/crorc.h"
#include "card_registers/cru.h"
#include "scripted_function.h"

namespace rodeo::card {
namespace {

namespace cru = card_registers::cru;
using doubles::ScriptedFunction;

/// A card on a scripted function, and all that was written to it.
struct Written {
  explicit Written(card_registers::PciId id = cru::kPciId) {
    auto scripted = std::make_unique<ScriptedFunction>(
        id, id == cru::kPciId ? std::span<const card_registers::BarSize>(cru::kBars) : card_registers::crorc::kBars);
    function = scripted.get();
    function->after_write = [this](unsigned bar, std::uint64_t offset, std::uint32_t value) {
      writes.push_back({bar, offset, value});
    };
    card = std::move(*Card::adopt(std::move(scripted), {}));
  }
  std::uint32_t last(const card_registers::Register& reg, std::uint32_t index = 0) const {
    return function->words.at({reg.bar, reg.at(index)});
  }
  std::vector<std::uint32_t> all(const card_registers::Register& reg) const {
    std::vector<std::uint32_t> values;
    for (const auto& one : writes) {
      if (one.bar == reg.bar && one.offset == reg.offset) values.push_back(one.value);
    }
    return values;
  }
  struct Write {
    unsigned bar;
    std::uint64_t offset;
    std::uint32_t value;
  };
  ScriptedFunction* function = nullptr;
  std::unique_ptr<Card> card;
  std::vector<Write> writes;
};

TEST(CtpEmulator, GoesThroughIdleAndLeavesTheOtherDivisorsOff) {
  Written on;
  ASSERT_TRUE(start_ctp(*on.card, {.mode = CtpEmulation::Mode::calibration, .ticks = 100, .keep = 3, .drop = 7}));
  EXPECT_EQ(on.last(cru::reg("ctp_cal_divisor")), 100u);
  EXPECT_LT(on.last(cru::reg("ctp_physics_divisor")), 8u);
  EXPECT_LT(on.last(cru::reg("ctp_hc_divisor")), 11u);
  EXPECT_EQ(on.last(cru::reg("ctp_hb_prescale")), 7u << 16 | 3);
  EXPECT_EQ(on.all(cru::reg("ctp_run_mode")), (std::vector<std::uint32_t>{3, 3, 1}));
  EXPECT_EQ(on.all(cru::reg("ctp_control")), (std::vector<std::uint32_t>{0x80000000, 0}));
}

TEST(CtpEmulator, FixedTriggersComeTwoTicksAfterTheirSlot) {
  Written on;
  ASSERT_TRUE(start_ctp(*on.card, {.mode = CtpEmulation::Mode::fixed, .bunch_crossings = {0, 1, 2, 3, 3563, 0, 0, 0, 0}}));
  EXPECT_EQ(on.all(cru::reg("ctp_fixed_bc")), (std::vector<std::uint32_t>{0, 3562, 3563, 1, 3561, 0, 0, 0, 0}));
}

TEST(CtpEmulator, RefusesWhatTheCardCannotDoBeforeItWritesAnything) {
  Written on;
  for (const CtpEmulation& bad : {CtpEmulation{.ticks = 7}, CtpEmulation{.ticks = 1U << 28}, CtpEmulation{.last_bc = 3564},
                                  CtpEmulation{.last_hb = 65536}, CtpEmulation{.keep = 1}, CtpEmulation{.drop = 65536},
                                  CtpEmulation{.mode = CtpEmulation::Mode::calibration, .ticks = 18}})
    EXPECT_EQ(start_ctp(*on.card, bad).error().code, "card.bad_setting");
  EXPECT_TRUE(on.writes.empty());
}

TEST(CtpEmulator, IsNotForOtherCards) {
  Written on(card_registers::crorc::kPciId);
  EXPECT_EQ(start_ctp(*on.card, {}).error().code, "card.wrong_type");
  EXPECT_EQ(stop_ctp(*on.card).error().code, "card.wrong_type");
  EXPECT_EQ(send_trigger(*on.card).error().code, "card.wrong_type");
  EXPECT_TRUE(on.writes.empty());
}

TEST(PatternPlayer, WhatIsPlayedIsReadBack) {
  Written on;
  PatternSettings settings;
  settings.patterns = {
      *Pattern::parse("0x123456789abcdef01234"), *Pattern::parse("0xffffffffffffffffffff"), *Pattern::parse("42"), {}};
  settings.length_1 = 5;
  settings.delay_1 = 9;
  settings.trigger_2 = 31;
  settings.play_1_at_start = true;
  ASSERT_TRUE(play_patterns(*on.card, settings));
  EXPECT_EQ(on.last(cru::reg("pattern_1_length")), 14u);
  EXPECT_EQ(cru::kDownstreamData.of(on.last(cru::reg("ttc_control"))), 1u);
  const auto read = read_patterns(*on.card);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->patterns, settings.patterns);
  EXPECT_EQ(read->length_1, 5u);
  EXPECT_EQ(read->delay_1, 9u);
  EXPECT_EQ(read->trigger_2, 31u);
  EXPECT_TRUE(read->play_1_at_start);
}

TEST(PatternPlayer, APatternIsPlayedOnceByAPulse) {
  Written on;
  PatternSettings settings;
  settings.play_1_now = true;
  ASSERT_TRUE(play_patterns(*on.card, settings));
  const auto control = on.all(cru::reg("pattern_control"));
  ASSERT_GE(control.size(), 2u);
  EXPECT_EQ(control[control.size() - 2], 0x100u);
  EXPECT_EQ(control.back(), 0u);
}

TEST(PatternPlayer, PatternsAreEightyBits) {
  EXPECT_EQ(Pattern::parse("1208925819614629174706175").value(), Pattern::parse("0xffffffffffffffffffff").value());
  EXPECT_EQ(Pattern::parse("0xffffffffffffffffffff").value().text(), "0xffffffffffffffffffff");
  EXPECT_EQ(Pattern::parse("42").value().text(), "0x0000000000000000002a");
  for (const char* text : {"", "0x", "1208925819614629174706176", "0x100000000000000000000", "0xg", "1a", " 1", "-1",
                           "0xffffffffffffffffffffffffffffffffffffffff"})
    EXPECT_EQ(Pattern::parse(text).error().code, "card.bad_setting") << text;
}

}  // namespace
}  // namespace rodeo::card
