#include "card/operations/pattern_player.h"

#include "card/operations/require_type.h"
#include "card_registers/cru.h"

namespace rodeo::card {

using card_registers::Field;
using card_registers::Register;
using card_registers::cru::reg;

namespace {

constexpr std::uint32_t kDownstreamPattern = 1;
constexpr Field kConfigure{0};
constexpr Field kPlay2{4};
constexpr Field kPlay1{8};
constexpr Field kPlay1AtStart{12};

const Register& pattern_register(std::size_t number) {
  static constexpr const Register* kRows[]{&reg("pattern_0"), &reg("pattern_1"), &reg("pattern_2"), &reg("pattern_3")};
  return *kRows[number];
}

Error bad_pattern(std::string_view text) {
  return {"card.bad_setting", fmt::format("`{}` is not a pattern: 80 bits, decimal or hexadecimal with 0x", text), {}, {}};
}

}  // namespace

std::string Pattern::text() const { return fmt::format("{:#06x}{:08x}{:08x}", words[2], words[1], words[0]); }

Result<Pattern> Pattern::parse(std::string_view text) {
  const std::string_view whole = text;
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (hexadecimal) text.remove_prefix(2);
  if (text.empty()) return std::unexpected(bad_pattern(whole));
  Pattern pattern;
  for (const char c : text) {
    const bool decimal_digit = c >= '0' && c <= '9';
    const char lower = static_cast<char>(c | 0x20);
    if (!decimal_digit && !(hexadecimal && lower >= 'a' && lower <= 'f')) return std::unexpected(bad_pattern(whole));
    std::uint64_t carry = static_cast<std::uint64_t>(decimal_digit ? c - '0' : lower - 'a' + 10);
    for (std::uint32_t& word : pattern.words) {
      carry += std::uint64_t{word} * (hexadecimal ? 16 : 10);
      word = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    if (carry != 0 || pattern.words[2] > 0xffff) return std::unexpected(bad_pattern(whole));
  }
  return pattern;
}

Result<void> play_patterns(Card& card, const PatternSettings& settings) {
  RODEO_TRY(require_type(card, CardType::cru, "the pattern player"));
  if (settings.length_1 > UINT32_MAX - settings.delay_1)
    return std::unexpected(Error{
        "card.bad_setting", "length and delay of pattern 1 together do not fit into 32 bits", {}, "shorten one of them"});
  for (const std::uint32_t bit : {settings.trigger_1, settings.trigger_2, settings.trigger_3})
    RODEO_TRY(require_range("a trigger bit", bit, 0, 31));
  Result<void> done;
  const auto write = [&](const Register& where, std::uint32_t value, std::uint32_t index = 0) {
    if (done) done = card.write(where, value, index);
  };
  const auto modify = [&](const Register& where, Field field, std::uint32_t value) {
    if (!done) return;
    if (auto changed = card.modify(where, field, value); !changed) done = std::unexpected(changed.error());
  };
  modify(reg("ttc_control"), card_registers::cru::kDownstreamData, kDownstreamPattern);
  modify(reg("pattern_control"), kConfigure, 1);
  for (std::size_t number = 0; number < settings.patterns.size(); ++number) {
    for (std::uint32_t word = 0; word < 3; ++word)
      write(pattern_register(number), settings.patterns[number].words[word], word);
  }
  write(reg("pattern_1_length"), settings.length_1 + settings.delay_1);
  write(reg("pattern_1_delay"), settings.delay_1);
  write(reg("pattern_2_length"), settings.length_2);
  write(reg("pattern_3_length"), settings.length_3);
  write(reg("pattern_trigger_select"), settings.trigger_1, 0);
  write(reg("pattern_trigger_select"), settings.trigger_2, 1);
  write(reg("pattern_trigger_select"), settings.trigger_3, 2);
  write(reg("pattern_2_time_frames"), settings.time_frames_2);
  modify(reg("pattern_control"), kConfigure, 0);
  modify(reg("pattern_control"), kPlay1AtStart, settings.play_1_at_start ? 1 : 0);
  const auto pulse = [&](Field field) {
    modify(reg("pattern_control"), field, 1);
    modify(reg("pattern_control"), field, 0);
  };
  if (settings.play_2_now) pulse(kPlay2);
  if (settings.play_1_now) pulse(kPlay1);
  return done;
}

Result<PatternSettings> read_patterns(Card& card) {
  RODEO_TRY(require_type(card, CardType::cru, "the pattern player"));
  PatternSettings settings;
  Result<void> done;
  const auto read = [&](const Register& where, std::uint32_t& value, std::uint32_t index = 0) {
    if (!done) return;
    const auto word = card.read(where, index);
    if (word) value = *word;
    if (!word) done = std::unexpected(word.error());
  };
  for (std::size_t number = 0; number < settings.patterns.size(); ++number) {
    for (std::uint32_t word = 0; word < 3; ++word)
      read(pattern_register(number), settings.patterns[number].words[word], word);
  }
  read(reg("pattern_1_length"), settings.length_1);
  read(reg("pattern_1_delay"), settings.delay_1);
  settings.length_1 -= settings.delay_1;
  read(reg("pattern_2_length"), settings.length_2);
  read(reg("pattern_3_length"), settings.length_3);
  read(reg("pattern_trigger_select"), settings.trigger_1, 0);
  read(reg("pattern_trigger_select"), settings.trigger_2, 1);
  read(reg("pattern_trigger_select"), settings.trigger_3, 2);
  read(reg("pattern_2_time_frames"), settings.time_frames_2);
  std::uint32_t control = 0;
  read(reg("pattern_control"), control);
  settings.play_1_at_start = kPlay1AtStart.of(control) != 0;
  if (!done) return std::unexpected(done.error());
  return settings;
}

}  // namespace rodeo::card
