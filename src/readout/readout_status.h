// The status of a whole readout process. It is read from the components while they run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/named_counters.h"
#include "process/phase.h"
#include "readout/builder/chunk_bytes.h"
#include "readout/builder/link_place.h"
#include "rodeo/builder.h"
#include "rodeo/consumer.h"
#include "rodeo/input.h"

namespace rodeo::readout {

using base::add_counter;
using base::counter_value;
using base::find_counter;
using process::Phase;

/// Time from the hand-over of an event's last data to its first consumer. Only complete events count.
struct Latency {
  double p50_us = 0;
  double p99_us = 0;
  double max_us = 0;
  bool measured() const { return max_us > 0; }  ///< true once an event was complete
};

struct RobStatus {
  SourceId source_id;
  FragmentBuilder::Status builder;
  std::uint32_t groups = 1;                    ///< fragments of one event: in FULL mode the groups of links
  std::optional<ChunkBytes> chunk_bytes = {};  ///< counts of a builder that counts bytes, as the built-in ones do
  std::vector<KnownPlace> places = {};  ///< places of each of builder.links; empty if the builder does not know places

  KnownPlace place_of(std::size_t link) const { return link < places.size() ? places[link] : KnownPlace{}; }
};

/// Totals since the start of the run.
struct ReadoutStatus {
  Phase phase = Phase::prepared;
  std::uint32_t run_number = 0;
  bool input_ready = true;     ///< false while publishers are not all connected: their data would be lost
  double seconds = 0;          ///< time from the start of the input to its end, or until now
  double unix_start = 0;       ///< wall-clock time of the start, seconds
  double trigger_seconds = 0;  ///< time in which the counted triggers were offered; 0: the time of the run
  double data_seconds = 0;     ///< time from the first fragment to the last
  bool stopped = false;        ///< the run was ended by a command, not by its input

  std::vector<NamedCounter> input;
  double input_cpu_seconds = 0;
  std::vector<RobStatus> robs;
  std::vector<FragmentConsumer::Status> consumers;  ///< the consumers in list order
  std::uint64_t fragments = 0;                      ///< fragments that reached the list
  Latency latency;

  std::string limited_by = "nothing";  ///< the stage whose back-pressure the others feel now
  std::string failure;                 ///< why the run must stop; empty while there is no failure

  std::uint64_t incomplete() const { return over_robs(&FragmentBuilder::Status::incomplete); }
  std::uint64_t without_removed() const { return over_robs(&FragmentBuilder::Status::without_removed); }
  std::uint64_t chunks_built() const { return over_robs(&FragmentBuilder::Status::chunks_built); }
  std::uint64_t chunks_received() const { return over_robs(&FragmentBuilder::Status::chunks_received); }
  std::uint64_t payload_bytes() const { return over_robs(&FragmentBuilder::Status::payload_bytes); }
  /// Number of events: each group of a ROB has one fragment of an event.
  std::uint64_t events() const {
    std::uint64_t most = 0;
    for (const RobStatus& rob : robs) most = std::max(most, rob.builder.fragments / rob.groups);
    return most;
  }
  std::uint64_t links() const {
    std::uint64_t sum = 0;
    for (const RobStatus& rob : robs) sum += rob.builder.links.size();
    return sum;
  }

 private:
  std::uint64_t over_robs(std::uint64_t FragmentBuilder::Status::* member) const {
    std::uint64_t sum = 0;
    for (const RobStatus& rob : robs) sum += rob.builder.*member;
    return sum;
  }
};

}  // namespace rodeo::readout
