// GlobalIdTable: the place of each global id.
#pragma once

#include <cstdint>

#include "base/id_table.h"

namespace rodeo::readout {

using GlobalIdTable = base::IdTable<std::uint64_t>;

}  // namespace rodeo::readout
