// Reads the PCI Express capability of a function: the lengths of its packets, and how its link was trained (PCI Express Base
// Specification, 7.5.3).
#pragma once

#include <cstdint>
#include <optional>

#include "base/error.h"
#include "card/pci/function.h"

namespace rodeo::card::pci {

/// Sizes in bytes, speeds in gigatransfers per second and lane; 0 where the register holds a code that the specification
/// reserves.
struct ExpressLink {
  unsigned payload_bytes = 0;  ///< Max_Payload_Size as the host set it: the longest packet that the card writes to memory
  unsigned longest_payload_bytes = 0;  ///< the longest payload that the card supports
  unsigned read_request_bytes = 0;     ///< Max_Read_Request_Size: the longest read request of the card
  double speed = 0;                    ///< speed of the trained link
  double fastest_speed = 0;            ///< the fastest that the card supports
  unsigned lanes = 0;                  ///< lanes of the trained link
  unsigned most_lanes = 0;             ///< all lanes of the card
  /// The link was trained to less than the card supports.
  bool degraded() const { return speed < fastest_speed || lanes < most_lanes; }
};

/// Every device takes packets of this length.
inline constexpr unsigned kSmallestPayloadBytes = 128;

/// Reads the configuration space. Nothing: the function has no such capability. Error card.all_ones: the card does not
/// answer.
Result<std::optional<ExpressLink>> read_express_link(Function& function);

}  // namespace rodeo::card::pci
