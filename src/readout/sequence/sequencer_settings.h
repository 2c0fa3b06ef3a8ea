// What a Sequencer and its parts are set to.
#pragma once

#include <cstddef>
#include <cstdint>

#include "readout/sequence/id_format.h"

namespace rodeo::readout {

struct SequencerSettings {
  IdFormat format;
  bool has_bcid = false;
  std::uint64_t reach = 256;     ///< events that links of one ROB may be apart
  std::uint32_t step = 8;        ///< events that a link may skip and be believed if its next chunk agrees
  std::uint64_t window = 16384;  ///< events that may be open
  std::uint64_t timeout_ns = 10'000'000;
  std::size_t aside = 1024;      ///< chunks of a link that may wait
  bool listed = false;           ///< announce() will be called
  bool several_threads = false;  ///< links are advanced by several threads
  std::size_t list_entries = 0;  ///< with `listed`: entries that are remembered, a power of two, at least twice the window
};

}  // namespace rodeo::readout
