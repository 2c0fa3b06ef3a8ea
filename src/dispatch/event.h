// An event as those see it who assign it: a name, and what its header will say.
#pragma once

#include <cstdint>

namespace rodeo::dispatch {

struct Event {
  std::uint64_t id = 0;  ///< global: the extended L1 id, continued where its ECR counter wraps
  std::uint16_t lumi_block = 0;
  std::uint16_t scan_step = 0;
  std::uint16_t bcid = 0xffff;  ///< 0xffff: not known
  std::uint8_t trigger_type = 0;
  bool operator==(const Event&) const = default;
};

enum class Verdict : std::uint8_t {
  accepted,  ///< recorded
  rejected,
  debug,  ///< recorded, undecided
  lost,   ///< no readout has anything of it
  count
};

}  // namespace rodeo::dispatch
