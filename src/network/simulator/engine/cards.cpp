// The readouts' network cards: they send the segments of the TCP senders, packet by packet or as a train.
#include "network/simulator/engine/engine.h"

#include <algorithm>

namespace rodeo::network {

/// True if all data under way and one more event certainly fit into the buffer. Otherwise losses are possible, which affect
/// single packets.
template <bool kTrain>
bool SimulationEngine<kTrain>::sends_trains(std::uint32_t node) const {
  if (!in_trains_) return false;
  if (!count_in_network_) return true;
  const Rack& rack = racks_[rack_of(node)];
  return rack.memory.certainly_fits(rack.in_network + event_cells_, nodes_[node].in_network + event_cells_);
}

/// Passes the segments that the sender has released to the card, which sends them in this order at the speed of its link.
template <bool kTrain>
void SimulationEngine<kTrain>::hand_to_card(Picoseconds now, std::uint32_t number) {
  if (runs_.empty()) return;
  Flow& flow = flows_[number];
  const std::uint32_t readout_number = readout_of(number);
  Readout& readout = readouts_[readout_number];
  const std::uint32_t node = node_of(number);
  for (SegmentRun run : runs_) {
    std::uint64_t index = flow.fragments.first();
    while (run.count > 0) {
      while (!before(run.first, flow.fragments.at(index).end)) ++index;
      const Fragment& fragment = flow.fragments.at(index);
      const bool trains = kTrain && sends_trains(node);
      std::uint32_t count = std::min(run.count, fragment.end - run.first);
      if (trains) count = std::min(count, piece_);
      const std::uint32_t last = run.first + count == fragment.end ? fragment.last_payload : sizes_.segment;
      const Picoseconds start = std::max({now, begin_, readout.card_free});
      const Picoseconds last_time = card_link_.of(last + sizes_.header);
      const Picoseconds first_end = start + (count > 1 ? card_full_ : last_time);
      readout.card_free = start + (count - 1) * card_full_ + last_time;
      const Occupancy bytes = sizes_.of(count, last);
      const bool whole = trains && count > 1;
      readout.card.push({whole ? readout.card_free : first_end, number, run.first, count, last, whole});
      if (count_in_network_) {
        nodes_[node].in_network += bytes.cells;
        racks_[rack_of(node)].in_network += bytes.cells;
      }
      data_.sent += count;
      data_.sent_bytes += bytes.frames;
      run.first += count;
      run.count -= count;
    }
  }
  runs_.clear();
  card_head_.set(readout_number, readout.card.front().departure + propagation_);
}

/// Passes a fragment to the card, like hand_to_card(), as one train.
template <bool kTrain>
void SimulationEngine<kTrain>::train_to_card(Picoseconds now, std::uint32_t flow, const SegmentRun& run,
                                             std::uint32_t last) {
  const std::uint32_t number = readout_of(flow);
  Readout& readout = readouts_[number];
  const Occupancy bytes = sizes_.of(run.count, last);
  readout.card_free = std::max({now, begin_, readout.card_free}) + card_link_.of(bytes.frames);
  if (readout.card.empty()) card_head_.set(number, readout.card_free + propagation_);
  readout.card.push({readout.card_free, flow, run.first, run.count, last, true});
  if (count_in_network_) {
    const std::uint32_t node = node_of(flow);
    nodes_[node].in_network += bytes.cells;
    racks_[rack_of(node)].in_network += bytes.cells;
  }
  data_.sent += run.count;
  data_.sent_bytes += bytes.frames;
}

template bool SimulationEngine<false>::sends_trains(std::uint32_t node) const;
template bool SimulationEngine<true>::sends_trains(std::uint32_t node) const;
template void SimulationEngine<false>::hand_to_card(Picoseconds now, std::uint32_t flow);
template void SimulationEngine<true>::hand_to_card(Picoseconds now, std::uint32_t flow);
template void SimulationEngine<false>::train_to_card(Picoseconds now, std::uint32_t flow, const SegmentRun& run,
                                                     std::uint32_t last_payload);
template void SimulationEngine<true>::train_to_card(Picoseconds now, std::uint32_t flow, const SegmentRun& run,
                                                    std::uint32_t last_payload);

}  // namespace rodeo::network
