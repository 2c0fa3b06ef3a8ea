// Links of a card that were down during a run, from their status registers: a loss that no chunk shows where no other link has its triggers.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "card/card.h"

namespace rodeo::input {

/// Of one card. begin() and end() from one thread, links() from any.
class LinkOutages {
 public:
  /// Notes how the links are: their numbers as the input has them (FELIX: E-links). Registers that cannot be read say nothing.
  void begin(card::Card& card, std::span<const std::uint16_t> links);
  /// Counts links that are down and were not, and those whose sticky bit has been set since. One that was set before, and that nobody has cleared,
  /// does not tell of a second time.
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
