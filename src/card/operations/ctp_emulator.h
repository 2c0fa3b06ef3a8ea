// The CRU's emulator of the central trigger processor: triggers without a trigger system.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "card/card.h"

namespace rodeo::card {

struct CtpEmulation {
  enum class Mode : unsigned char {
    manual,      ///< triggers one by one, by send_trigger()
    periodic,    ///< physics triggers every `ticks`
    continuous,  ///< heartbeats alone
    fixed,       ///< triggers at fixed bunch crossings of every orbit
    health,      ///< health checks every `ticks`
    calibration  ///< calibration triggers every `ticks`
  };
  Mode mode = Mode::periodic;
  std::uint32_t ticks = 8;  ///< clock ticks (25 ns) between triggers; 8 to 2^28 - 1, calibration from 19, health from 11
  std::uint32_t last_bc = 3563;  ///< last bunch crossing of an orbit
  std::uint32_t last_hb = 255;   ///< heartbeat frames of a time frame, minus one; 16 bits
  std::uint32_t keep =
      15000;  ///< heartbeat frames kept, then `drop` dropped, in turn; 2 to 65535 each. Defaults of upstream's tool
  std::uint32_t drop = 15000;
  std::uint32_t first_orbit = 0;
  std::array<std::uint32_t, 9> bunch_crossings{0x14d, 0x29a, 0x3e7, 0x534, 0x681,
                                               /// Bunch crossings for mode fixed; 0: slot unused.
                                               0x7ce, 0x91b, 0xa68, 0xbb5};
  bool operator==(const CtpEmulation&) const = default;
};

/// Resets the emulator and starts it; it sends SOX. Errors: card.bad_setting, card.wrong_type, those of the card.
Result<void> start_ctp(Card& card, const CtpEmulation& settings);
/// Sets the emulator idle; it sends EOX.
Result<void> stop_ctp(Card& card);
/// Sends one physics trigger; the emulator must run in mode manual.
Result<void> send_trigger(Card& card);

/// The emulator's present settings.
struct CtpStatus {
  std::string_view
      mode;  ///< "manual", "periodic", "continuous", "hc", "cal" or "idle"; of mode fixed: "periodic" with no ticks
  std::uint32_t ticks = 0;  ///< period of the mode; 0: the mode has none
  std::uint32_t last_bc = 0;
  std::uint32_t last_hb = 0;
  std::uint32_t keep = 0;
  std::uint32_t drop = 0;
  std::uint32_t first_orbit = 0;
};
Result<CtpStatus> read_ctp(Card& card);

}  // namespace rodeo::card
