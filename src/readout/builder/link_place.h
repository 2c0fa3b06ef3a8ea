// What a builder knows of the places of its links, and which of their chunks are in doubt.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace rodeo::readout {

/// Of one link.
struct KnownPlace {
  std::uint64_t in_doubt = 0;  ///< chunks that are flagged because the link's place was not proven
  std::uint64_t moved = 0;     ///< times that another place was found to be the link's
  bool out_of_step = false;    ///< the BCIDs of its chunks agree with no place where it can be, or with several
  std::optional<std::uint16_t> bcid_offset{};  ///< the same: all are too large by this, modulo the orbit

  bool doubtful() const { return in_doubt > 0 || moved > 0 || out_of_step; }
};

/// A second base of our builders. Any thread.
class KnowsPlaces {
 public:
  /// In the order of the links of status().
  virtual std::vector<KnownPlace> link_places() const = 0;

 protected:
  ~KnowsPlaces() = default;
};

}  // namespace rodeo::readout
