// Card links that were down during a run, from their status registers. The chunks do not show this loss if no other link has
// the same triggers.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "card/card.h"

namespace rodeo::input {

/// For one card. One thread calls begin() and end(); any thread calls links().
class LinkOutages {
 public:
  /// Stores the state of the links. `links`: numbers as the input uses them (FELIX: E-links). Registers that cannot be read
  /// are ignored.
  void begin(card::Card& card, std::span<const std::uint16_t> links);
  /// Counts links that went down, and links whose sticky bit was set since begin(). A sticky bit that was already set at
  /// begin() cannot show a second outage.
  void end(card::Card& card);
  std::uint64_t links() const { return lost_.load(std::memory_order_relaxed); }

 private:
  struct Link {
    std::uint32_t number = 0;
    bool was_up = false;
    bool sticky = false;
  };
  std::vector<Link> links_;
  std::atomic<std::uint64_t> lost_{0};
};

}  // namespace rodeo::input
