// L1IdTable: the place of each extended L1 id.
#pragma once

#include <cstdint>

#include "base/id_table.h"
#include "rodeo/ids.h"

namespace rodeo::readout {

/// Ids that follow each other lie side by side, each epoch of the ECR counter somewhere else.
struct L1IdHash {
  std::uint64_t operator()(L1Id id) const { return id.l1() + (std::uint64_t{id.ecr()} * 0x9e3779b97f4a7c15U >> 40); }
};

using L1IdTable = base::IdTable<L1Id, L1IdHash>;

}  // namespace rodeo::readout
