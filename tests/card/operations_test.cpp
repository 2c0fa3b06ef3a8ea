// Operations on a card, without a card: the order of writes, and refusals before the first write.
#include <gtest/gtest.h>

#include "card/identity.h"
#include "card/operations/ctp_emulator.h"
#include "card/operations/flash.h"
#include "card/operations/i2c.h"
#include "card/operations/loopback_test.h"
#include "card/operations/pattern_player.h"
#include "card/operations/siu.h"
#include "card/operations/user_logic.h"
#include "card_registers/crorc.h"
#include "card_registers/cru.h"
#include "scripted_function.h"

namespace rodeo::card {
namespace {

namespace cru = card_registers::cru;
using doubles::ScriptedFunction;

/// A card with a scripted function, and a record of all writes.
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

TEST(CtpEmulator, KeepsAndDropsByDefaultWhatUpstreamsToolDoes) {
  Written on;
  ASSERT_TRUE(start_ctp(*on.card, {}));
  EXPECT_EQ(on.last(cru::reg("ctp_hb_prescale")), 15000u << 16 | 15000u);
  EXPECT_EQ(on.last(cru::reg("ctp_physics_divisor")), 8u);
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

TEST(LoopbackTest, LinksGetTheirSettingsBack) {
  Written on;
  const std::uint32_t link_3 = cru::gbt_index(0, 3);
  ASSERT_TRUE(on.card->write(cru::reg("gbt_link_source"), 0x10, link_3));
  ASSERT_TRUE(on.card->write(cru::reg("gbt_link_mask_low"), 0xabc, link_3));
  {
    auto test =
        LoopbackTest::start(*on.card, {.links = 1U << 3, .static_pattern = true, .counter_8_bit = true, .mask_low = 0xff});
    ASSERT_TRUE(test) << test.error().message();
    EXPECT_EQ(on.last(cru::reg("gbt_link_source"), link_3), 0x26u);
    EXPECT_EQ(on.last(cru::reg("gbt_link_mask_low"), link_3), 0xffu);
    EXPECT_EQ(on.last(cru::reg("gbt_wrapper_test")), 0x80u);
    on.function->words[{2, cru::reg("gbt_link_rx_errors").at(link_3)}] = 7;
    on.function->words[{2, cru::reg("gbt_link_status").at(link_3)}] = 1U << 8 | 1U << 13;
    const auto status = test->status();
    ASSERT_TRUE(status);
    ASSERT_EQ(status->size(), 1u);
    EXPECT_EQ(status->front().link, 3u);
    EXPECT_EQ(status->front().rx_errors, 7u);
    EXPECT_TRUE(status->front().pll_locked && status->front().phy_up);
    EXPECT_FALSE(status->front().data_up || status->front().rx_locked);
  }
  EXPECT_EQ(on.last(cru::reg("gbt_link_source"), link_3), 0x10u);
  EXPECT_EQ(on.last(cru::reg("gbt_link_mask_low"), link_3), 0xabcu);
  EXPECT_EQ(on.last(cru::reg("gbt_wrapper_test")), 0u);
}

TEST(LoopbackTest, NeedsLinksOfTheEndpoint) {
  Written on;
  EXPECT_EQ(LoopbackTest::start(*on.card, {.links = 0}).error().code, "card.bad_setting");
  EXPECT_EQ(LoopbackTest::start(*on.card, {.links = 1U << 12}).error().code, "card.bad_setting");
  EXPECT_TRUE(on.writes.empty());
}

TEST(UserLogic, IsRefusedWhereThereIsNone) {
  Written on;
  EXPECT_EQ(read_user_logic(*on.card).error().code, "card.no_user_logic");
  EXPECT_EQ(change_user_logic(*on.card, {}).error().code, "card.no_user_logic");
}

TEST(UserLogic, RandomSizesAreTurnedOverOnlyIfNeeded) {
  Written on;
  on.function->words[{2, cru::reg("user_logic_hash").offset}] = 0x1234;
  ASSERT_TRUE(change_user_logic(*on.card, {.event_words = 77, .random_size = true, .system_id = 3, .link_id = 15}));
  EXPECT_EQ(on.all(cru::reg("user_logic_random")), std::vector<std::uint32_t>{1});
  on.function->words[{2, cru::reg("user_logic_random").offset}] = 1;
  ASSERT_TRUE(change_user_logic(*on.card, {.event_words = 78, .random_size = true}));
  EXPECT_EQ(on.all(cru::reg("user_logic_random")).size(), 1u);
  EXPECT_EQ(read_user_logic(*on.card)->event_words, 78u);
  EXPECT_EQ(change_user_logic(*on.card, {.event_words = 0}).error().code, "card.bad_setting");
  on.function->words[{2, cru::reg("user_logic_random").offset}] = 0;
  on.function->after_write = [&](unsigned, std::uint64_t, std::uint32_t) {
    on.function->words[{2, cru::reg("user_logic_random").offset}] = 0;
  };
  EXPECT_EQ(change_user_logic(*on.card, {.random_size = true}).error().code, "card.misbehaved") << "the bit does not change";
  on.function->after_write = [](unsigned, std::uint64_t, std::uint32_t) {};
  on.function->words[{2, cru::reg("user_logic_event_size").offset}] = 0;  // the register has never been set
  EXPECT_TRUE(change_user_logic(*on.card, {.system_id = 5}));
  EXPECT_EQ(read_user_logic(*on.card)->system_id, 5u);
}

/// The device at ddl_command: an SIU that answers with these words.
struct Siu : Written {
  explicit Siu(const std::vector<std::uint32_t>& answers) : Written(card_registers::crorc::kPciId) {
    function->after_write = [this, answers](unsigned bar, std::uint64_t offset, std::uint32_t value) {
      if (bar == 2 && offset == 0x18) {
        commands.push_back(value);
        waiting = answers;
        show();
      }
    };
    function->before_read = [this](unsigned bar, std::uint64_t offset) {
      if (bar == 2 && offset == 0x1c && !waiting.empty()) {
        function->words[{2, 0x1c}] = waiting.front();
        waiting.erase(waiting.begin());
        show();
      }
    };
  }
  void show() { function->words[{2, 0x10}] = waiting.empty() ? 0 : 1U << 23; }
  std::vector<std::uint32_t> waiting;
  std::vector<std::uint32_t> commands;
};

TEST(SiuStatus, IsSaidInWords) {
  Siu good({2U << 12 | 0x1c2, 0x102});
  const auto online = read_siu_status(*good.card, 2);
  ASSERT_TRUE(online) << online.error().message();
  EXPECT_EQ(online->conditions, std::vector<std::string>{"port: online"});
  EXPECT_TRUE(good.waiting.empty());
  Siu bad({1U << 31 | 1U << 24 | 4U << 12 | 0x1c2});
  EXPECT_EQ(read_siu_status(*bad.card, 2)->conditions, (std::vector<std::string>{"CRC error", "port: offline, no signal"}));
}

TEST(SiuStatus, SilenceAndOtherAnswersAreErrors) {
  Siu silent({});
  EXPECT_EQ(read_siu_status(*silent.card, 2).error().code, "card.timeout");
  Siu other({0x2c2});
  EXPECT_EQ(read_siu_status(*other.card, 2).error().code, "card.ddl");
  EXPECT_EQ(read_siu_status(*other.card, 6).error().code, "card.bad_setting");
  other.function->words[{1, 0x10}] = 1U << 13;
  EXPECT_EQ(read_siu_status(*other.card, 1).error().code, "card.link_down");
}

TEST(SiuReset, WaitsForTheAnswer) {
  Siu siu({0xf1});
  ASSERT_TRUE(reset_siu(*siu.card, 2));
  EXPECT_EQ(siu.commands, std::vector<std::uint32_t>{0xf1});
}

/// The device at flash_command: a chip with Intel's command set.
struct FlashChip : Written {
  FlashChip() : Written(card_registers::crorc::kPciId) {
    function->words[{0, 0xf8}] = 1;
    function->after_write = [this](unsigned bar, std::uint64_t offset, std::uint32_t value) {
      if (bar != 0 || offset != 0xf0) return;
      if (value >> 24 == 1) address = value & 0xffffff;
      if (value >> 24 == 3) bus(value & 0xffff);
      if (value >> 24 == 4) function->words[{0, 0xf4}] = array ? word(address) : status;
    };
  }
  std::uint16_t word(std::uint32_t at) const { return memory.contains(at) ? memory.at(at) : std::uint16_t{0xffff}; }
  void bus(std::uint32_t value) {
    if (programming) {
      programming = false;
      memory[address] = static_cast<std::uint16_t>(word(address) & value);  // bits only change from 1 to 0
      if (spoil) memory[address] ^= 1;
      ++programmed;
    } else if (value == 0xd0 && last == 0x20) {
      const std::uint32_t begin = address & ~0xffffU;
      std::erase_if(memory, [&](const auto& entry) { return entry.first >= begin && entry.first <= begin + 0xffff; });
      ++erased;
      if (fail_erase) status = 0xa0;
    } else if (value == 0x40) {
      programming = true;
      array = false;
    } else {
      array = value == 0xff;
    }
    last = value;
  }
  std::map<std::uint32_t, std::uint16_t> memory;
  std::uint32_t address = 0;
  std::uint32_t status = 0x80;
  std::uint32_t last = 0;
  bool array = true;
  bool programming = false;
  bool spoil = false;
  bool fail_erase = false;
  int erased = 0;
  int programmed = 0;
};

TEST(Flash, OnlyBlocksThatDifferAreWritten) {
  FlashChip chip;
  std::vector<std::uint16_t> words(65536 + 3, 0xffff);
  words[0] = 0x1234;
  words[65536] = 0x00ff;
  const auto first = write_flash(*chip.card, 0x20000, words);
  ASSERT_TRUE(first) << first.error().message();
  EXPECT_EQ(first->blocks, 2u);
  EXPECT_EQ(first->blocks_written, 2u);
  EXPECT_EQ(chip.word(0x20000), 0x1234);
  words[65537] = 7;
  const auto second = write_flash(*chip.card, 0x20000, words);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->blocks_written, 1u);
  EXPECT_EQ(chip.erased, 3);
  EXPECT_EQ(read_flash(*chip.card, 0x30000, 2).value(), (std::vector<std::uint16_t>{0x00ff, 7}));
}

TEST(Flash, FailureIsSeen) {
  FlashChip spoilt;
  spoilt.spoil = true;
  const std::vector<std::uint16_t> words{1, 2, 3};
  EXPECT_EQ(write_flash(*spoilt.card, 0, words).error().code, "card.flash");
  FlashChip stuck;
  stuck.fail_erase = true;
  EXPECT_EQ(write_flash(*stuck.card, 0, words).error().code, "card.flash");
  EXPECT_EQ(stuck.programmed, 0);
}

TEST(Flash, PlacesThatAreNoneAreRefused) {
  FlashChip chip;
  const std::vector<std::uint16_t> words{1};
  EXPECT_EQ(write_flash(*chip.card, 1, words).error().code, "card.bad_setting");
  EXPECT_EQ(read_flash(*chip.card, 0xffffff, 2).error().code, "card.bad_setting");
  EXPECT_EQ(read_flash(*chip.card, 0, UINT64_MAX).error().code, "card.bad_setting");
  EXPECT_TRUE(chip.writes.empty());
  Written other;
  EXPECT_EQ(read_flash(*other.card, 0, 1).error().code, "card.wrong_type");
}

TEST(Flash, HasTheSerialNumberOfACardWhoseFirmwareHasNoRegisterForIt) {
  FlashChip chip;
  EXPECT_EQ(serial_of_flash(*chip.card).value(), std::nullopt);
  chip.memory = {{0x470010, 0xff30}, {0x470011, 0x3233}, {0x470012, 0x33ff}};  // "0233" at byte 33
  EXPECT_EQ(serial_of_flash(*chip.card).value(), 233u);
  EXPECT_EQ(identify(*chip.card)->serial, 233u);
  chip.memory = {{0x470010, 0xff31}, {0x470011, 0x3233}, {0x470012, 0x3435}};
  EXPECT_EQ(serial_of_flash(*chip.card).value(), 12345u);
}

TEST(Identity, ACardThatReadsAllOnesIsNamedAsOneThatIsNotThere) {
  for (const card_registers::PciId id : {cru::kPciId, card_registers::crorc::kPciId}) {
    Written on(id);
    on.function->before_read = [&](unsigned bar, std::uint64_t offset) { on.function->words[{bar, offset}] = UINT32_MAX; };
    EXPECT_EQ(identify(*on.card).error().code, "card.all_ones");
  }
}

TEST(Flash, CanBeInterrupted) {
  FlashChip chip;
  EXPECT_EQ(read_flash(*chip.card, 0, 10, [](std::uint64_t done, std::uint64_t) { return done < 3; }).error().code,
            "card.interrupted");
}

/// Chips on the I2C buses of a card: they answer from a map of chip, page and register.
struct Chips : Written {
  Chips() {
    function->after_write = [this](unsigned bar, std::uint64_t offset, std::uint32_t value) {
      const auto found = cru::kMap.at(bar, static_cast<std::uint32_t>(offset));
      if (!found || !found->description->name.ends_with("_command")) return;
      const std::uint32_t word = function->words[{bar, offset - 4}];
      const std::uint32_t reg = word >> 8 & 0xff;
      std::uint32_t& data = function->words[{bar, offset + 12}];
      if (value == 8) data = 0;
      if (value == 1 && reg == 1) page = word & 0xff;
      if (value == 1 || value == 2) asked.push_back(word);
      const auto known = bytes.find((word >> 16) << 16 | page << 8 | reg);
      if (!silent && (value == 1 || value == 2)) data = 0x80000000U | (known == bytes.end() ? 0U : known->second);
    };
  }
  void hold(const std::string& text) {
    for (std::uint32_t i = 0; i < text.size(); ++i) bytes[0x50U << 16 | i] = static_cast<std::uint8_t>(text[i]);
  }
  std::map<std::uint32_t, std::uint8_t> bytes;  // chip << 16 | page << 8 | register
  std::vector<std::uint32_t> asked;
  std::uint32_t page = 0;
  bool silent = false;
};

TEST(I2c, ThePageOfAChipIsChosenFirst) {
  Chips chips;
  chips.bytes[0x68U << 16 | 5U << 8 | 0x2a] = 0x02;
  const auto ttc = ttc_clock_in_use(*chips.card);
  ASSERT_TRUE(ttc) << ttc.error().message();
  EXPECT_TRUE(*ttc);
  EXPECT_EQ(chips.asked, (std::vector<std::uint32_t>{0x680105, 0x682a00}));
  chips.bytes[0x68U << 16 | 5U << 8 | 0x2a] = 0xf9;  // other bits
  EXPECT_EQ(ttc_clock_in_use(*chips.card), false);
}

TEST(I2c, AChipThatDoesNotAnswerIsAnErrorInTime) {
  Chips chips;
  chips.silent = true;
  const auto answer = read_i2c(*chips.card, CruBus::sfp, 0x50, 0);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, "card.i2c");
  Written crorc(card_registers::crorc::kPciId);
  EXPECT_EQ(read_i2c(*crorc.card, CruBus::sfp, 0x50, 0).error().code, "card.wrong_type");
}

TEST(I2c, TheEepromHasTheSerialNumberOfOldFirmware) {
  const std::vector<std::pair<std::string, std::optional<std::uint32_t>>> texts{
      {R"({"cn":"FEC","pn":"p40_fv22b0245"})", 245},
      {R"({ "pn" : "p40_fv22b10245", "cn": "x"})", 10245},
      {R"({"cn":"FEC","pn":"p40_fv22b02-5"})", std::nullopt},
      {R"({"cn":"FEC","pn":"p40_fv22b0000"})", std::nullopt},
      {R"({"cn":"FEC","pn":"p40_fv22b123456"})", std::nullopt},
      {R"({"cn":"FEC","pn":"another0245"})", std::nullopt},
      {"", std::nullopt}};
  for (const auto& [text, serial] : texts) {
    Chips chips;
    chips.hold(text);
    const auto found = serial_of_eeprom(*chips.card);
    ASSERT_TRUE(found) << text;
    EXPECT_EQ(*found, serial) << text;
  }
  Chips chips;
  chips.hold(texts[0].first);
  const auto identity = identify(*chips.card);
  ASSERT_TRUE(identity) << identity.error().message();
  EXPECT_EQ(identity->serial, 245u) << chips.asked.size() << " bytes requested, last " << std::hex << chips.asked.back();
  chips.function->words[{2, cru::reg("serial").offset}] = 0x35343230;  // "0245"; the EEPROM has another serial
  chips.hold(R"({"pn":"p40_fv22b0333"})");
  EXPECT_EQ(identify(*chips.card)->serial, 245u);
}

}  // namespace
}  // namespace rodeo::card
