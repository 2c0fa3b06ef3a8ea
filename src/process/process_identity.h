// Who a process is, as each of its statuses says it (docs/protocols/control.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "process/phase.h"
#include "settings/json.h"

namespace rodeo::process {

struct ProcessIdentity {
  std::string kind;                  ///< "readout", "emulator", "router"
  std::string name;                  ///< as the configuration has it: names its control socket
  std::string build;                 ///< version and revision
  std::string configuration_sha256;  ///< of all that it was configured with
  std::uint64_t started_ns = utc_now_ns();

  /// UTC, nanoseconds since 1970.
  static std::uint64_t utc_now_ns();
};

/// A process in the life of which a run is `prepared` is being launched.
const char* life_phase(Phase phase);

/// The member `process` of a status, with the number of this process.
settings::Json process_json(const ProcessIdentity& identity, std::string_view phase);

}  // namespace rodeo::process
