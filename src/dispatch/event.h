// An event as its assignment sees it: its id and the contents of its header.
#pragma once

#include <cstdint>

namespace rodeo::dispatch {

struct Event {
  std::uint64_t id = 0;  ///< Global id: the extended L1 id, continued where its ECR counter wraps.
  std::uint16_t lumi_block = 0;
  std::uint16_t scan_step = 0;
  std::uint16_t bcid = 0xffff;  ///< 0xffff: not known.
  std::uint8_t trigger_type = 0;
  bool operator==(const Event&) const = default;
};

enum class Verdict : std::uint8_t {
  accepted,  ///< Recorded.
  rejected,
  debug,  ///< Recorded, but no selection decided it.
  lost,   ///< No readout has any fragment of it.
  count
};

}  // namespace rodeo::dispatch
