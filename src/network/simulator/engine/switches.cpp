// The switch of each rack: offers the packets of the uplinks to its memory, which stores or drops them.
#include "network/simulator/engine/engine.h"

#include <algorithm>

#include "network/simulator/engine/packet_hash.h"

namespace rodeo::network {

template <bool kTrain>
void SimulationEngine<kTrain>::run_switches() {
  if (uplink_head_.earliest() >= end_) return;
  for (std::uint32_t rack = 0; rack < racks_.size(); ++rack) {
    const std::uint32_t first = rack * uplinks_per_rack_;
    for (;;) {
      std::uint32_t number = first;
      for (std::uint32_t other = first + 1; other < first + uplinks_per_rack_; ++other) {
        if (uplink_head_[other] < uplink_head_[number]) number = other;
      }
      if (uplink_head_[number] >= end_) break;
      Ring<Item>& queue = uplinks_[number].queue;
      if (uplinks_per_rack_ == 1) {
        while (!queue.empty() && queue.front().time < end_) {
          into_switch(rack, 0, queue.front());
          queue.pop();
        }
      } else {
        into_switch(rack, number - first, queue.front());
        queue.pop();
      }
      uplink_head_.set(number, queue.empty() ? kNever : queue.front().time);
    }
  }
  uplink_head_.refresh();
}

template <bool kTrain>
void SimulationEngine<kTrain>::into_switch(std::uint32_t rack, std::uint32_t input, const Item& item) {
  if (item.time >= next_report_) report_occupancy(rack, item.time);
  bool split = false;
  offer(rack, input, item.time, item.word, item.count(), split);
  if (!split) return;
  // Part of the train may not fit: offer its packets one by one, as they arrive.
  const std::uint32_t flow = item.word.flow();
  const std::uint32_t number = item.word.number_near(receiving_[flow].receiver.next());
  const std::uint32_t last = item.word.last_payload();
  const Picoseconds last_time = uplink_link_.of(last + sizes_.header);
  for (std::uint32_t i = 0; i < item.count(); ++i) {
    const std::uint32_t behind = item.count() - 1 - i;
    const Picoseconds time = behind == 0 ? item.time : item.time - last_time - (behind - 1) * uplink_full_;
    offer(rack, input, time, PacketWord::of(flow, number + i, behind == 0 ? last : sizes_.segment), 1, split);
  }
}

template <bool kTrain>
void SimulationEngine<kTrain>::offer(std::uint32_t rack_number, std::uint32_t input, Picoseconds now, PacketWord word,
                                     std::uint32_t count, bool& split) {
  Rack& rack = racks_[rack_number];
  const std::uint32_t flow = word.flow();
  const std::uint32_t node = node_of(flow);
  const std::uint32_t port = node - rack_number * nodes_per_rack_;
  if (rack.memory.arrive(now, port, input, word, count, split)) {
    const Picoseconds next = rack.memory.next_departure(port);
    node_head_.lower(node, rack.memory.waits(port) ? std::min(next, now) : next);
    return;
  }
  if (split && count > 1) return;
  const Occupancy bytes = sizes_.of(count, word.last_payload());
  note(now);
  flows_[flow].dropped += count;
  data_.dropped += count;
  data_.dropped_bytes += bytes.frames;
  leave_network(node, bytes.cells);
  mix(rack.hash, now ^ word.bits);
  if (tcp_.control == CongestionControl::none) {
    rack.memory.arrive_ghost(now, port, word, count);
    node_head_.lower(node, rack.memory.next_departure(port));
  }
}

/// Reports all intervals that end by this time.
template <bool kTrain>
void SimulationEngine<kTrain>::report_occupancy(std::uint32_t number, Picoseconds until) {
  Rack& rack = racks_[number];
  const Picoseconds interval = observers_.occupancy_interval_ns * kPicosecondsPerNanosecond;
  while (rack.reported + interval <= until) {
    rack.reported += interval;
    OccupancySample sample;
    sample.time_ns = rack.reported / kPicosecondsPerNanosecond;
    sample.rack = number;
    sample.max_bytes = rack.memory.reset_interval_maximum(rack.reported);
    sample.last_bytes = rack.memory.occupancy(rack.reported).frames;
    sample.drops = rack.memory.drops().total() - rack.drops_reported;
    rack.drops_reported += sample.drops;
    observers_.occupancy(sample);
  }
}

template void SimulationEngine<false>::run_switches();
template void SimulationEngine<true>::run_switches();
template void SimulationEngine<false>::report_occupancy(std::uint32_t rack, Picoseconds until);
template void SimulationEngine<true>::report_occupancy(std::uint32_t rack, Picoseconds until);

}  // namespace rodeo::network
