// Settings of emulated cards in a configuration. Each setting is declared once; keys, values and reference follow from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "emulator/emulator.h"
#include "rodeo/settings.h"

namespace rodeo::emulator {

/// The keys of a card. Keys that differ from EmulatedCardSettings are members here; `links` and `seed` apply to the card's
/// type.
struct CardKeys : EmulatedCardSettings {
  std::string link_speed = "0";
  std::uint32_t block_bytes = 1024;
  bool wide_trailers = false;
  std::optional<std::uint32_t> connector;

  CardKeys();
};

/// The keys of a scheduled fault.
struct FaultKeys : ScheduledFault {
  FaultKeys() { fault.value = 95; }
};

const Settings<CardKeys>& card_settings();             ///< [[emulator.card]]
const Settings<FaultKeys>& fault_settings();           ///< [[emulator.fault]]
const Settings<EmulatorSettings>& trigger_settings();  ///< [emulator.trigger]
const Settings<EmulatorSettings>& process_settings();  ///< [emulator]

}  // namespace rodeo::emulator
