// L1IdTable: the place of each extended L1 id.
#pragma once

#include <cstdint>

#include "base/id_table.h"
#include "rodeo/ids.h"

namespace rodeo::readout {

struct L1IdHash {
  std::uint64_t operator()(L1Id id) const { return base::scattered_eights(id.value); }
};

using L1IdTable = base::IdTable<L1Id, L1IdHash>;

}  // namespace rodeo::readout
