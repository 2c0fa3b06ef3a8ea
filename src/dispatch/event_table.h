// EventTable: finds the slot of an event by its global id.
#pragma once

#include <cstdint>

#include "base/id_table.h"

namespace rodeo::dispatch {

struct EventHash {
  std::uint64_t operator()(std::uint64_t id) const { return base::scattered_eights(id); }
};

using EventTable = base::IdTable<std::uint64_t, EventHash>;

}  // namespace rodeo::dispatch
