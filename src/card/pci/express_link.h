// What the PCI Express capability of a function says: how long its packets may be, and how its link was trained (PCI Express Base Specification, 7.5.3).
#pragma once

#include <cstdint>
#include <optional>

#include "base/error.h"
#include "card/pci/function.h"

namespace rodeo::card::pci {

/// Sizes in bytes, speeds in gigatransfers per second and lane; 0 where the register holds a code that the specification reserves.
struct ExpressLink {
  unsigned payload_bytes =
      0;  ///< Max_Payload_Size as the host set it: what the card writes to memory comes in packets of at most so much
  unsigned longest_payload_bytes = 0;  ///< the largest that the card could have
  unsigned read_request_bytes = 0;     ///< Max_Read_Request_Size: what the card asks the host's memory for at once
  double speed = 0;                    ///< as trained
  double fastest_speed = 0;            ///< the fastest that the card has
  unsigned lanes = 0;                  ///< as trained
  unsigned most_lanes = 0;             ///< as many as the card has
  /// Trained to less than the card has.
  bool degraded() const { return speed < fastest_speed || lanes < most_lanes; }
};

/// Every device takes packets of this length.
inline constexpr unsigned kSmallestPayloadBytes = 128;

/// Asks the configuration space. Nothing: the function has no such capability. Error card.all_ones: no card answers there.
Result<std::optional<ExpressLink>> read_express_link(Function& function);

}  // namespace rodeo::card::pci
