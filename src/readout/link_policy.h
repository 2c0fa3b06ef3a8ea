// Decides which links to remove from the build and to restore. A link that is silent for many consecutive events costs each
// of them the time-out, so it is removed until it delivers again.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "readout/settings.h"
#include "rodeo/builder.h"

namespace rodeo::readout {

struct LinkChange {
  Fid fid;
  LinkState state = LinkState::active;
  std::uint64_t silent_events = 0;  ///< consecutive events without the link when it is removed
};

/// Judges the links of one builder by its counters. One thread. Has no clock: it counts the events that the builder closed.
class LinkPolicy {
 public:
  explicit LinkPolicy(LinkPolicySettings settings) : settings_(settings) {}

  /// Compares with the previous call and returns the changes to make. The order of the links is the same at every call. A
  /// link that was removed by hand stays removed until it is restored by hand.
  std::vector<LinkChange> judge(std::span<const FragmentBuilder::Link> links);

  /// Says that a link was restored or removed by hand: the policy forgets its history.
  void set_by_hand(Fid fid);

  bool removed(Fid fid) const;

 private:
  struct Memory {
    Fid fid;
    std::uint64_t chunks = 0;
    std::uint64_t missing = 0;
    std::uint64_t silent_events = 0;
    bool removed = false;
  };

  LinkPolicySettings settings_;
  std::vector<Memory> memory_;
};

}  // namespace rodeo::readout
