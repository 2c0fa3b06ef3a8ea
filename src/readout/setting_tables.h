// What a configuration may say of a run and its ROBs: one declaration of each setting, from which keys, values and reference follow.
#pragma once

#include <string>
#include <vector>

#include "readout/settings.h"
#include "rodeo/settings.h"

namespace rodeo::readout {

/// A run as it is written: 0 is the next free number.
struct RunKeys {
  RunInfo of;

  RunKeys() { of.run_number = 0; }
};

/// A ROB as it is written: resource ids are texts, "17" or "0x11".
struct RobKeys {
  RobSettings of;
  std::vector<std::string> link_ids;
};

const Settings<RunKeys>& run_settings();                     ///< [run]
const Settings<RobKeys>& rob_settings();                     ///< [[readout.rob]]
const Settings<LinkPolicySettings>& link_policy_settings();  ///< [readout.link_policy]

}  // namespace rodeo::readout
