// Ids of events that were removed recently. A report about such an id is late; it does not bring a new event.
#pragma once

#include <cstdint>
#include <vector>

#include "dispatch/event_table.h"

namespace rodeo::farm {

/// Keeps the last `most` ids. Not thread-safe.
class RecentIds {
 public:
  explicit RecentIds(std::uint32_t most) : table_(most), ids_(most) {}

  bool has(std::uint64_t id) const { return table_.find(id) != dispatch::EventTable::kNone; }
  void add(std::uint64_t id) {
    if (has(id)) return;
    if (count_ >= ids_.size()) table_.erase(ids_[count_ % ids_.size()]);
    table_.insert(id, 0);
    ids_[count_++ % ids_.size()] = id;
  }

 private:
  dispatch::EventTable table_;
  std::vector<std::uint64_t> ids_;
  std::uint64_t count_ = 0;
};

}  // namespace rodeo::farm
