#include "process/process_identity.h"

#include <unistd.h>

#include <chrono>

namespace rodeo::process {

using settings::Json;

std::uint64_t ProcessIdentity::utc_now_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(now).count());
}

const char* life_phase(Phase phase) { return phase == Phase::prepared ? "launching" : phase_name(phase); }

Json process_json(const ProcessIdentity& identity, std::string_view phase) {
  return Json::object({{"pid", static_cast<std::int64_t>(::getpid())},
                       {"name", identity.name},
                       {"kind", identity.kind},
                       {"phase", phase},
                       {"started_ns", identity.started_ns},
                       {"build", identity.build},
                       {"configuration_sha256", identity.configuration_sha256}});
}

}  // namespace rodeo::process
