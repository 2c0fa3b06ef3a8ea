// L1IdTable: the place of each extended L1 id.
#pragma once

#include "base/id_table.h"
#include "rodeo/ids.h"

namespace rodeo::readout {

using L1IdTable = base::IdTable<L1Id>;

}  // namespace rodeo::readout
