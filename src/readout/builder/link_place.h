// The places of a builder's links, and their chunks in doubt.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace rodeo::readout {

/// The place of one link.
struct KnownPlace {
  std::uint64_t in_doubt = 0;  ///< chunks that are flagged because the link's place was not proven
  std::uint64_t moved = 0;     ///< number of times that the link was found to be in another place
  bool out_of_step = false;    ///< the link's BCIDs agree with no possible place, or with several
  /// Set if out of step: all BCIDs are too large by this number, modulo the orbit.
  std::optional<std::uint16_t> bcid_offset{};

  bool doubtful() const { return in_doubt > 0 || moved > 0 || out_of_step; }
};

/// An additional interface of the built-in builders. Any thread.
class KnowsPlaces {
 public:
  /// The places, in the order of the links in status().
  virtual std::vector<KnownPlace> link_places() const = 0;

 protected:
  ~KnowsPlaces() = default;
};

}  // namespace rodeo::readout
