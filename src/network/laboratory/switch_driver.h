// Whoever can set the buffer of the switch under test and read what it dropped. Implemented by the laboratory's own switch, by a Linux
// host, and by programs of the user (switch_program.h).
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
  std::optional<DropCount> reasons = {};  ///< of these, by a switch that can say
  std::optional<std::uint64_t> max_buffer_bytes =
      {};  ///< of the fullest rack since start(); nothing if the switch cannot say
  std::optional<std::uint64_t> max_buffer_cell_bytes = {};  ///< the same as cells; frames where it has none
  std::optional<std::int64_t> occupancy_bytes = {};         ///< now, all racks together
  std::vector<PortDrops> ports = {};
};

/// Called by one thread; calls block until the switch has done it. Errors: network.driver, network.unsupported (a buffer that this switch
/// cannot be given), network.laboratory.
class SwitchDriver {
 public:
  virtual ~SwitchDriver() = default;
  /// One line about the switch, for the report.
  virtual Result<std::string> describe() = 0;
  virtual Result<void> set_buffer(const SwitchBuffer& buffer) = 0;
  /// Counting starts now.
  virtual Result<void> start() = 0;
  virtual Result<SwitchCounters> counters() = 0;
};

}  // namespace rodeo::network::laboratory
