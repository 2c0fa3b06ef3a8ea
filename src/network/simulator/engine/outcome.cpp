// Computes the result of a run: counts of packets by fate, the largest occupancy, latencies and the hash of the run.
#include "network/simulator/engine/engine.h"

#include <algorithm>

#include "network/simulator/engine/packet_hash.h"

namespace rodeo::network {

template <bool kTrain>
Outcome SimulationEngine<kTrain>::outcome() {
  Outcome out;
  out.data = data_;
  out.ack = ack_;
  out.request = request_;
  std::uint64_t hash = 0;
  std::uint64_t hops = 0;
  const auto on_way = [&](std::uint32_t count, std::uint32_t last) {
    out.data.in_flight += count;
    out.data.in_flight_bytes += sizes_.of(count, last).frames;
  };
  for (const Readout& readout : readouts_) {
    for (std::uint64_t i = readout.card.first(); i != readout.card.end(); ++i) {
      on_way(readout.card.at(i).count, readout.card.at(i).last_payload);
    }
  }
  for (const Uplink& uplink : uplinks_) {
    for (std::uint64_t i = uplink.queue.first(); i != uplink.queue.end(); ++i) {
      on_way(uplink.queue.at(i).count(), uplink.queue.at(i).word.last_payload());
      hops += uplink.queue.at(i).count();
    }
  }
  for (Rack& rack : racks_) {
    rack.memory.for_each([&](PacketWord word, std::uint32_t count) {
      if (word.last_payload() == 0) return;
      on_way(count, word.last_payload());
      hops += 2 * count;
    });
    const Occupancy most = rack.memory.maximum();
    if (most.frames > out.max_buffer_bytes) {
      out.max_buffer_bytes = most.frames;
      out.max_buffer_ns = rack.memory.maximum_time() / kPicosecondsPerNanosecond;
    }
    out.max_buffer_payload_bytes = std::max(out.max_buffer_payload_bytes, most.payload);
    out.max_buffer_cell_bytes = std::max(out.max_buffer_cell_bytes, most.cells);
    out.drops += rack.memory.drops();
    out.events_offered += rack.supervisor.offered();
    out.events_assigned += rack.supervisor.assigned();
    out.events_waiting_max = std::max(out.events_waiting_max, rack.supervisor.waiting_max());
    mix(hash, rack.hash);
  }
  for (const Node& node : nodes_) {
    for (std::uint64_t i = node.back.first(); i != node.back.end(); ++i) {
      const Returning& one = node.back.at(i);
      const bool is_request = one.event != Returning::kNoEvent;
      PacketCount& count = is_request ? out.request : out.ack;
      count.in_flight += one.count;
      count.in_flight_bytes += is_request ? sizes_.header + scenario_.traffic.request_bytes
                                          : static_cast<std::uint64_t>(one.count) * ack_bytes(one.blocks);
    }
    mix(hash, node.hash);
  }
  for (const Flow& flow : flows_) {
    const TcpSender::Counts& counts = flow.sender.counts();
    out.retransmits += counts.retransmits;
    out.fast_recoveries += counts.recoveries;
    out.probes += counts.probes;
    out.timeouts += counts.timeouts;
  }
  for (const Receiving& one : receiving_) out.duplicates += one.receiver.duplicates();
  out.packet_hops = hops + 3 * (out.data.delivered + out.ack.delivered + out.request.delivered) + 2 * out.data.dropped;
  out.events_completed = completed_;
  out.first_completed_ns = first_completed_ / kPicosecondsPerNanosecond;
  out.latency_p50_ns = latency_.percentile_ns(0.5);
  out.latency_p99_ns = latency_.percentile_ns(0.99);
  out.latency_max_ns = latency_.max_ns();
  out.virtual_ns = std::min(end_, end_of_run_) / kPicosecondsPerNanosecond;
  out.hash = hash;
  return out;
}

template <bool kTrain>
void SimulationEngine<kTrain>::visit_flows(const std::function<void(const FlowRecord&)>& visit) const {
  for (std::uint32_t number = 0; number < flows_.size(); ++number) {
    const Flow& flow = flows_[number];
    const TcpSender::Counts& counts = flow.sender.counts();
    visit({readout_of(number), node_of(number), flow.fragments_done, counts.sent, flow.dropped, counts.retransmits,
           counts.recoveries, counts.probes, counts.timeouts, flow.sender.window(), flow.sender.threshold(),
           flow.sender.smoothed_rtt() / kPicosecondsPerNanosecond});
  }
}

template Outcome SimulationEngine<false>::outcome();
template Outcome SimulationEngine<true>::outcome();
template void SimulationEngine<false>::visit_flows(const std::function<void(const FlowRecord&)>& visit) const;
template void SimulationEngine<true>::visit_flows(const std::function<void(const FlowRecord&)>& visit) const;

}  // namespace rodeo::network
