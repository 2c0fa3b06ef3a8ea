// The set of links that a fragment has shown up to now. To empty it for the next fragment costs nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace rodeo::readout {

/// A hash table of link ids. Each id has the number of the fragment that showed it last. The table grows while new links
/// appear, which is in the first fragments of a run. One thread.
class LinkTable {
 public:
  LinkTable() : slots_(512) {}

  void next_fragment() {
    if (++fragment_ == 0) {  // the numbers wrapped: clear the table
      for (Slot& slot : slots_) slot.fragment = slot.fragment == 0 ? 0 : 1;
      fragment_ = 2;
    }
  }

  /// False if this fragment has shown the link before.
  bool add(std::uint32_t link) {
    for (std::size_t at = home(link);; at = (at + 1) & (slots_.size() - 1)) {
      Slot& slot = slots_[at];
      if (slot.fragment == 0) return insert(slot, link);
      if (slot.link == link) return std::exchange(slot.fragment, fragment_) != fragment_;
    }
  }

  bool contains(std::uint32_t link) const {
    for (std::size_t at = home(link);; at = (at + 1) & (slots_.size() - 1)) {
      const Slot& slot = slots_[at];
      if (slot.fragment == 0) return false;
      if (slot.link == link) return slot.fragment == fragment_;
    }
  }

 private:
  struct Slot {
    std::uint32_t link = 0;
    std::uint32_t fragment = 0;  // 0: free
  };

  // Neighbouring link ids get neighbouring places; the upper bits are used as well.
  std::size_t home(std::uint32_t link) const { return (link ^ link >> 12 ^ link >> 22) & (slots_.size() - 1); }

  bool insert(Slot& slot, std::uint32_t link) {
    slot = {link, fragment_};
    if (++used_ * 2 > slots_.size()) grow();
    return true;
  }

  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.fragment == 0) continue;
      std::size_t at = home(slot.link);
      while (slots_[at].fragment != 0) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = slot;
    }
  }

  std::vector<Slot> slots_;
  std::size_t used_ = 0;
  std::uint32_t fragment_ = 1;
};

}  // namespace rodeo::readout
