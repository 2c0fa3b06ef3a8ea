// What a configuration may say of emulated cards: one declaration of each setting, from which keys, values and reference follow.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/emulator.h"
#include "rodeo/settings.h"

namespace rodeo::emulator {

/// A card as it is written. What is not a member of EmulatedCardSettings as it stands is beside it; `links` and `seed` are those of the card's type.
struct CardKeys {
  EmulatedCardSettings card;
  std::vector<std::string> cpus;
  std::string link_speed = "0";
  std::uint64_t block_bytes = 1024;
  bool wide_trailers = false;
  int connector = -1;

  CardKeys();
};

/// A scheduled fault as it is written.
struct FaultKeys {
  ScheduledFault scheduled;

  FaultKeys() { scheduled.fault.value = 95; }
};

const Settings<CardKeys>& card_settings();             ///< [[emulator.card]]
const Settings<FaultKeys>& fault_settings();           ///< [[emulator.fault]]
const Settings<EmulatorSettings>& trigger_settings();  ///< [emulator.trigger]
const Settings<EmulatorSettings>& process_settings();  ///< [emulator]

}  // namespace rodeo::emulator
