// The trigger's own list: one TTC packet per accepted trigger, as FELIX sends them on the TTC link.
#pragma once

#include <cstdint>

#include "formats/provable.h"
#include "input/paged_stream.h"
#include "input/trigger_history.h"

namespace rodeo::input {

/// The list of one reader. Single-threaded, like LinkFeed.
class TriggerListFeed {
 public:
  /// Throws SetupError if there is no memory.
  TriggerListFeed();

  PagedStream& stream() { return stream_; }

  /// True if there is no room for the packets of a batch.
  bool busy() { return !stream_.free_at_least(1); }

  /// Makes the packets of triggers [first, end) visible; at most a batch.
  void send(const TriggerHistory& history, std::uint64_t first, std::uint64_t end);

  void publish(std::uint64_t clock_ns) { stream_.advance_clock(clock_ns); }

 private:
  PagedStream stream_;
};

}  // namespace rodeo::input
