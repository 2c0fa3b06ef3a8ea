// What a GBT worker knows of one link.
#pragma once

#include "readout/sequence/sequencer.h"

namespace rodeo::readout {

struct GbtLink : LinkSequence {
  Sequence rejoin = 0;        ///< restored: events below this are built without it
  std::uint64_t skipped = 0;  ///< events that it left out before the last chunk that was not expected
  std::uint32_t waiting = 0;  ///< chunks whose event is not known yet
  std::uint32_t strays = 0;   ///< chunks in a row that were out of sequence

  /// What it brings next, if what waits is what it seems.
  Sequence coming() const { return position() + waiting; }
};

}  // namespace rodeo::readout
