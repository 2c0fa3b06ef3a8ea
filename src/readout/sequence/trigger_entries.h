// The trigger's own list, decoded once for all workers of a ROB: one entry for each event number.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "rodeo/ids.h"

namespace rodeo::readout {

/// An entry of the list as its extractor gives it.
struct ListedTrigger {
  std::uint32_t id = 0;
  std::uint16_t bcid = 0;
  std::uint8_t type = 0;
};

/// One thread at a time writes, all threads read without a lock. An entry is complete before end() includes it, and stays
/// until the writer knows that all readers have passed it.
class TriggerEntries {
 public:
  enum State : std::uint8_t {
    kNoEvent,  ///< no event
    kSkipped,  ///< an entry of the list is lost: the event exists, its BCID and type are not known
    kListed
  };
  struct Entry {
    L1Id l1id;
    std::uint16_t bcid = 0;
    std::uint8_t type = 0;
    State state = kNoEvent;
    std::uint32_t rounds = 0;  ///< rounds of its global id
  };

  /// `entries`: a power of two, or 0 where there is no list.
  explicit TriggerEntries(std::size_t entries)
      : mask_(entries - 1), entries_(entries == 0 ? nullptr : std::make_unique<Entry[]>(entries)) {}

  /// The first number that the list has not come to. Any thread.
  Sequence end() const { return end_.load(std::memory_order_acquire); }
  std::uint64_t size() const { return mask_ + 1; }

  /// `number`: below end(), by at most size().
  const Entry& at(Sequence number) const { return entries_[number & mask_]; }

  void begin(Sequence first) { end_.store(first, std::memory_order_release); }
  void append(Sequence number, const Entry& entry) {
    for (Sequence between = end_.load(std::memory_order_relaxed); between < number; ++between)
      entries_[between & mask_] = {};
    entries_[number & mask_] = entry;
    end_.store(number + 1, std::memory_order_release);
  }

 private:
  const std::uint64_t mask_;
  const std::unique_ptr<Entry[]> entries_;
  std::atomic<Sequence> end_{0};
};

}  // namespace rodeo::readout
