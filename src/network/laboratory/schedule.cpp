#include "network/laboratory/schedule.h"

#include <cmath>

#include "dispatch/assigner.h"
#include "network/policy.h"
#include "network/simulator/event_source.h"

namespace rodeo::network::laboratory {

std::vector<ScheduledEvent> schedule_of(std::uint32_t node, const Scenario& scenario, double warm_up_seconds) {
  const Topology& topology = scenario.topology;
  const std::uint32_t ports = topology.nodes / topology.racks;
  const std::uint32_t rack = node / ports;
  // All nodes have equal load here, because the number of events under way is not known in advance.
  dispatch::Assigner assigner(policy_of(scenario.traffic.assignment), ports);
  for (std::uint32_t port = 0; port < ports; ++port) assigner.set(port, 0, true);
  EventSource source(topology, scenario.traffic, rack, scenario.seed);
  Random choice(scenario.seed, 4 * rack + 2);
  const auto warm_up_ns = std::llround(warm_up_seconds * 1e9);
  const Picoseconds end = (static_cast<std::uint64_t>(warm_up_ns) + scenario.duration_ns) * kPicosecondsPerNanosecond;
  std::vector<ScheduledEvent> events;
  for (std::uint64_t n = 0; source.next_time() < end; ++n, source.pop()) {
    const std::uint64_t bytes = source.draw_bytes();
    const std::uint32_t gets_it = assigner.from(assigner.first([&](std::uint32_t nodes) { return choice.below(nodes); }));
    assigner.took(gets_it);
    if (gets_it != node % ports) continue;
    const std::uint64_t at_ns = (source.next_time() + kPicosecondsPerNanosecond / 2) / kPicosecondsPerNanosecond;
    events.push_back({n, static_cast<std::int64_t>(at_ns) - warm_up_ns, bytes});
  }
  return events;
}

std::uint64_t fragment_bytes(std::uint64_t event_bytes, std::uint32_t readout, std::uint32_t readouts) {
  return event_bytes / readouts + (readout < event_bytes % readouts ? 1 : 0);
}

}  // namespace rodeo::network::laboratory
