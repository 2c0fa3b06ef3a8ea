// Decides which links leave the build and come back: a link that stays silent for many consecutive events costs every one of
// them its time-out, so it is removed until it delivers again.
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
  std::uint64_t silent_events = 0;  ///< consecutive events without it, when it is removed
};

/// Judges the links of one builder from its counters. One thread. Holds no clock: an event is what the builder closed.
class LinkPolicy {
 public:
  explicit LinkPolicy(LinkPolicySettings settings) : settings_(settings) {}

  /// Compares with the previous call and says what to change. Links are in the same order at every call.
  /// A link that somebody removed by hand is left alone until it is restored by hand.
  std::vector<LinkChange> judge(std::span<const FragmentBuilder::Link> links);

  /// Somebody restored or removed a link by hand: the policy starts afresh with it.
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
