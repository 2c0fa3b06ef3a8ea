// Which events of a window have come, for a group of FULL-mode links that carry the events of one stream in turn.
#pragma once

#include <cstdint>
#include <vector>

#include "rodeo/ids.h"

namespace rodeo::readout {

/// For one worker thread. The window is [oldest, oldest + size).
class EventSet {
 public:
  /// `size`: a power of two, at least 64.
  explicit EventSet(std::uint64_t size) : mask_(size - 1), arrived_(size / 64) {}

  void begin(Sequence first) { oldest_ = head_ = first; }
  std::uint64_t size() const { return mask_ + 1; }
  Sequence oldest() const { return oldest_; }  ///< the lowest event that has neither come nor been given up
  Sequence head() const { return head_; }      ///< the first number above all events that exist or may exist
  bool has_gap() const { return oldest_ < head_; }

  /// True if the event has come. It must not be older than the window is long.
  bool has_arrived(Sequence number) const {
    return number < head_ && number + size() >= head_ && (arrived_[(number & mask_) >> 6] >> (number & 63) & 1U) != 0;
  }
  bool is_beyond(Sequence number) const { return number >= oldest_ + size(); }

  /// An event of the window has come.
  void add(Sequence number) {
    raise(number + 1);
    arrived_[(number & mask_) >> 6] |= std::uint64_t{1} << (number & 63);
    while (oldest_ < head_ && has_arrived(oldest_)) ++oldest_;
  }
  /// Gives up the oldest event, which has not come.
  void skip_oldest() {
    ++oldest_;
    while (oldest_ < head_ && has_arrived(oldest_)) ++oldest_;
  }
  /// Events below `head` exist or may exist. The caller must have passed the events that leave the window.
  void raise(Sequence head) {
    for (; head_ < head; ++head_) arrived_[(head_ & mask_) >> 6] &= ~(std::uint64_t{1} << (head_ & 63));
  }

 private:
  const std::uint64_t mask_;
  std::vector<std::uint64_t> arrived_;  // one bit an event
  Sequence oldest_ = 0;
  Sequence head_ = 0;
};

}  // namespace rodeo::readout
