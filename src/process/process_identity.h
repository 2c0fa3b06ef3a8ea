// The identity of a process, part of each of its statuses (docs/protocols/control.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "process/phase.h"
#include "settings/json.h"

namespace rodeo::process {

struct ProcessIdentity {
  std::string kind;                  ///< "readout", "emulator", "router"
  std::string name;                  ///< from the configuration; names the control socket
  std::string build;                 ///< version and revision
  std::string configuration_sha256;  ///< of the whole configuration
  std::uint64_t started_ns = utc_now_ns();

  /// UTC, nanoseconds since 1970.
  static std::uint64_t utc_now_ns();
};

/// The phase of a process. While its run is `prepared`, the process is launching.
const char* life_phase(Phase phase);

/// The member `process` of a status. It includes the process id.
settings::Json process_json(const ProcessIdentity& identity, std::string_view phase);

}  // namespace rodeo::process
