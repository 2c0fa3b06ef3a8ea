#include "readout/link_policy.h"

#include <algorithm>

namespace rodeo::readout {

std::vector<LinkChange> LinkPolicy::judge(std::span<const FragmentBuilder::Link> links) {
  std::vector<LinkChange> changes;
  if (settings_.remove_after_events == 0) return changes;
  if (memory_.size() != links.size()) {
    memory_.clear();
    for (const FragmentBuilder::Link& link : links)
      memory_.push_back({.fid = link.fid, .chunks = link.chunks, .missing = link.missing});
    return changes;
  }
  for (std::size_t i = 0; i < links.size(); ++i) {
    const FragmentBuilder::Link& link = links[i];
    Memory& memory = memory_[i];
    const bool delivered = link.chunks != memory.chunks;
    if (memory.removed) {
      if (delivered && settings_.restore) {
        memory.removed = false;
        memory.silent_events = 0;
        changes.push_back({link.fid, LinkState::active, 0});
      }
    } else if (link.state == LinkState::active) {
      memory.silent_events = delivered ? 0 : memory.silent_events + (link.missing - memory.missing);
      if (memory.silent_events >= settings_.remove_after_events) {
        memory.removed = true;
        changes.push_back({link.fid, LinkState::removed, memory.silent_events});
      }
    }
    memory.chunks = link.chunks;
    memory.missing = link.missing;
  }
  return changes;
}

void LinkPolicy::set_by_hand(Fid fid) {
  const auto found = std::ranges::find(memory_, fid, &Memory::fid);
  if (found == memory_.end()) return;
  found->removed = false;
  found->silent_events = 0;
}

bool LinkPolicy::removed(Fid fid) const {
  const auto found = std::ranges::find(memory_, fid, &Memory::fid);
  return found != memory_.end() && found->removed;
}

}  // namespace rodeo::readout
