// The data that a GBT worker has about one link.
#pragma once

#include "readout/sequence/sequencer.h"

namespace rodeo::readout {

struct GbtLink : LinkSequence {
  Sequence rejoin = 0;        ///< after a restore: events below this are built without the link
  std::uint64_t skipped = 0;  ///< events left out before the last unexpected chunk
  std::uint32_t waiting = 0;  ///< chunks whose event is not known yet
  std::uint32_t strays = 0;   ///< chunks out of sequence, in a row

  /// The event of the link's next chunk, if the waiting chunks are in sequence.
  Sequence coming() const { return position() + waiting; }
};

}  // namespace rodeo::readout
