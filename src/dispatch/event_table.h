// EventTable: finds the slot of an event by its global id.
#pragma once

#include <cstdint>

#include "base/id_table.h"

namespace rodeo::dispatch {

using EventTable = base::IdTable<std::uint64_t>;

}  // namespace rodeo::dispatch
