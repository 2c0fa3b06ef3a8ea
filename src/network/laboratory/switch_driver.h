// The interface to the switch under test: sets its buffer and reads its drops. Implemented by the laboratory's own switch,
// by a Linux host, and by programs of the user (switch_program.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "network/types.h"

namespace rodeo::network::laboratory {

struct PortDrops {
  std::string name;
  std::uint64_t drops = 0;  ///< frames since the switch was made or started
};

struct SwitchCounters {
  std::uint64_t drops = 0;                ///< frames, all ports together; only differences are used
  std::optional<DropCount> reasons = {};  ///< of these, if the switch knows
  std::optional<std::uint64_t> max_buffer_bytes =
      {};  ///< of the fullest rack since start(); none if the switch does not know
  std::optional<std::uint64_t> max_buffer_cell_bytes = {};  ///< the same in cells; in frames if it has no cells
  std::optional<std::int64_t> occupancy_bytes = {};         ///< now, all racks together
  std::vector<PortDrops> ports = {};
};

/// One thread; calls block until the switch is done. Errors: network.driver, network.unsupported (a buffer that this switch
/// cannot be given), network.laboratory.
class SwitchDriver {
 public:
  virtual ~SwitchDriver() = default;
  /// One line about the switch, for the report.
  virtual Result<std::string> describe() = 0;
  virtual Result<void> set_buffer(const SwitchBuffer& buffer) = 0;
  /// Starts counting.
  virtual Result<void> start() = 0;
  virtual Result<SwitchCounters> counters() = 0;
};

}  // namespace rodeo::network::laboratory
