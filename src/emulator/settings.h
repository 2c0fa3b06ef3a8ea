// What a configuration may say of emulated cards: one declaration of each setting, from which keys, values and reference follow.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "emulator/emulator.h"
#include "rodeo/settings.h"

namespace rodeo::emulator {

/// A card as it is written. What EmulatedCardSettings has otherwise is beside it; `links` and `seed` are those of the card's type.
struct CardKeys : EmulatedCardSettings {
  std::string link_speed = "0";
  std::uint32_t block_bytes = 1024;
  bool wide_trailers = false;
  std::optional<std::uint32_t> connector;

  CardKeys();
};

/// A scheduled fault as it is written.
struct FaultKeys : ScheduledFault {
  FaultKeys() { fault.value = 95; }
};

const Settings<CardKeys>& card_settings();             ///< [[emulator.card]]
const Settings<FaultKeys>& fault_settings();           ///< [[emulator.fault]]
const Settings<EmulatorSettings>& trigger_settings();  ///< [emulator.trigger]
const Settings<EmulatorSettings>& process_settings();  ///< [emulator]

}  // namespace rodeo::emulator
