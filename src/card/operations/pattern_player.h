// The CRU's pattern player sends patterns down the links in place of trigger data, 80 bits a bunch crossing.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "card/card.h"

namespace rodeo::card {

/// 80 bits, lowest word first; the highest has 16.
struct Pattern {
  std::array<std::uint32_t, 3> words{};
  bool operator==(const Pattern&) const = default;
  /// "0x0000000000000000002a"
  std::string text() const;
  /// Decimal or 0x..., at most 80 bits. Error card.bad_setting.
  static Result<Pattern> parse(std::string_view text);
};

/// Pattern 0 is sent while no other plays. Names and defaults are upstream's.
struct PatternSettings {
  std::array<Pattern, 4> patterns{};
  std::uint32_t length_1 = 1;  ///< clock ticks
  std::uint32_t delay_1 = 0;
  std::uint32_t length_2 = 1;
  std::uint32_t length_3 = 1;
  std::uint32_t trigger_1 = 29;  ///< trigger bit that plays pattern 1
  std::uint32_t trigger_2 = 30;
  std::uint32_t trigger_3 = 0;
  std::uint32_t time_frames_2 = 0;  ///< play pattern 2 once in this number of time frames
  bool play_1_at_start = false;
  bool play_1_now = false;
  bool play_2_now = false;
};

/// Sends the pattern player's output down the links, configures and plays.
Result<void> play_patterns(Card& card, const PatternSettings& settings);
/// The player's present settings; the `now` flags are false.
Result<PatternSettings> read_patterns(Card& card);

}  // namespace rodeo::card
