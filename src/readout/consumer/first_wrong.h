// The first fault that a verifying work found: its event and link.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "rodeo/fragment.h"
#include "rodeo/input.h"

namespace rodeo::readout {

/// One thread calls tell(); any thread reads.
class FirstWrong {
 public:
  /// Only the first call counts. `link_id`: the id in the chunk's header; 0 if the fault concerns the whole event.
  void set(const Fragment& fragment, std::uint32_t link_id) {
    if (is_set_.load(std::memory_order_relaxed)) return;
    l1id_ = fragment.l1id.value;
    link_id_ = link_id;
    is_set_.store(true, std::memory_order_release);
  }

  /// Adds event and link of the first fault, if there is one. They are not counts, and belong together.
  void add_to(std::vector<NamedCounter>& counters) const {
    if (!is_set_.load(std::memory_order_acquire)) return;
    counters.push_back({"first_wrong_l1id", l1id_});
    counters.push_back({"first_wrong_link_id", link_id_});
  }

 private:
  std::atomic<bool> is_set_{false};
  std::uint32_t l1id_ = 0;
  std::uint32_t link_id_ = 0;
};

}  // namespace rodeo::readout
