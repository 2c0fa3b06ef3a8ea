// The interface to the switch under test: sets its buffer and reads its drops. The laboratory's own switch, a Linux host,
// and programs of the user (switch_program.h) implement it.
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
  std::uint64_t drops = 0;  ///< frames dropped since the switch was made or started
};

struct SwitchCounters {
  std::uint64_t drops = 0;                ///< dropped frames, all ports together; only differences are used
  std::optional<DropCount> reasons = {};  ///< reasons of the drops, if the switch knows them
  std::optional<std::uint64_t> max_buffer_bytes =
      {};  ///< for the fullest rack since start(); nothing if the switch does not know it
  /// max_buffer_bytes in cells; in frames if the switch has no cells.
  std::optional<std::uint64_t> max_buffer_cell_bytes = {};
  std::optional<std::int64_t> occupancy_bytes = {};  ///< occupancy now, all racks together
  std::vector<PortDrops> ports = {};
};

/// One thread; calls block until the switch is done. Errors: network.driver, network.unsupported (a buffer that this switch
/// cannot be given), network.laboratory.
class SwitchDriver {
 public:
  virtual ~SwitchDriver() = default;
  /// A description of the switch in one line, for the report.
  virtual Result<std::string> describe() = 0;
  virtual Result<void> set_buffer(const SwitchBuffer& buffer) = 0;
  /// Starts counting.
  virtual Result<void> start() = 0;
  virtual Result<SwitchCounters> counters() = 0;
};

}  // namespace rodeo::network::laboratory
