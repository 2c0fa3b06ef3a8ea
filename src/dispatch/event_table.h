// EventTable: finds the slot of an event by its global id.
#pragma once

#include <cstdint>

#include "base/id_table.h"

namespace rodeo::dispatch {

/// Eight ids that follow each other lie side by side, and share cache lines, since events come nearly in order; eights are scattered, so that what is
/// walked over stays short.
struct EventHash {
  std::uint64_t operator()(std::uint64_t id) const { return (id >> 3) * 0x9e3779b97f4a7c15U >> 29 << 3 | (id & 7); }
};

using EventTable = base::IdTable<std::uint64_t, EventHash>;

}  // namespace rodeo::dispatch
