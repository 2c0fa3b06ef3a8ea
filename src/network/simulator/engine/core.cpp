// The core: merges the packets of all cards in order of arrival into the queues of the uplinks.
#include "network/simulator/engine/engine.h"

#include <algorithm>
#include <bit>

namespace rodeo::network {

template <bool kTrain>
void SimulationEngine<kTrain>::into_uplink(Picoseconds arrival, std::uint32_t flow, PacketWord word, std::uint32_t count) {
  const std::uint32_t number = flow_uplink_[flow];
  Uplink& uplink = uplinks_[number];
  const std::uint32_t last = word.last_payload();
  const Picoseconds last_time = last == sizes_.segment ? uplink_full_ : uplink_link_.of(last + sizes_.header);
  if (kTrain) {
    // The uplink sends the first packets while the rest of the train is still arriving.
    Picoseconds begin = uplink.free;
    // The uplink is slower than the card, so it starts when the first packet has arrived.
    if (count > 1 && uplink_full_ > card_full_) {
      const Picoseconds coming = (count - 2) * card_full_ + card_link_.of(last + sizes_.header);
      begin = std::max(begin, arrival - std::min(arrival, coming));
    }
    uplink.free = std::max(arrival + last_time, begin + (count - 1) * uplink_full_ + last_time);
  } else {
    uplink.free = std::max(arrival, uplink.free) + last_time;
  }
  if (uplink.queue.empty()) uplink_head_.set(number, uplink.free);
  uplink.queue.push(Item::of(uplink.free, word, count));
}

/// Merges the packets of all cards in order of arrival (in order of readouts, if two arrive at once).
template <bool kTrain>
void SimulationEngine<kTrain>::run_core() {
  active_.clear();
  card_head_.visit_before(end_, [&](std::uint32_t readout) { active_.push_back(readout); });
  if (active_.empty()) return;
  // A tournament tree over the active readouts; its leaves are arrival times within the step, combined with the readout's
  // place.
  const std::size_t leaves = std::bit_ceil(active_.size());
  const Picoseconds base = begin_;
  std::uint64_t* const tree = tree_.data();
  for (std::size_t i = 0; i < leaves; ++i) {
    tree[leaves + i] = i < active_.size() ? ((card_head_[active_[i]] - base) << 32) | i : UINT64_MAX;
  }
  for (std::size_t i = leaves - 1; i > 0; --i) tree[i] = std::min(tree[2 * i], tree[2 * i + 1]);
  const Picoseconds length = end_ - begin_;
  for (;;) {
    const std::uint64_t winner = tree[1];
    const Picoseconds offset = winner >> 32;
    if (offset >= length) break;  // true also if all leaves are empty
    const std::size_t place = winner & 0xffffffff;
    const std::uint32_t number = active_[place];
    Readout& readout = readouts_[number];
    CardRun& run = readout.card.front();
    const std::uint32_t flow = run.flow;
    if (kTrain && run.whole) {
      into_uplink(base + offset, flow, PacketWord::of(flow, run.number, run.last_payload), run.count);
      readout.card.pop();
    } else {
      into_uplink(base + offset, flow, PacketWord::of(flow, run.number, run.count == 1 ? run.last_payload : sizes_.segment),
                  1);
      if (--run.count == 0) {
        readout.card.pop();
      } else {
        ++run.number;
        run.departure += run.count > 1 || run.last_payload == sizes_.segment
                             ? card_full_
                             : card_link_.of(run.last_payload + sizes_.header);
      }
    }
    const Picoseconds next = readout.card.empty() ? kNever : readout.card.front().departure + propagation_;
    card_head_.set(number, next);
    std::size_t leaf = leaves + place;
    tree[leaf] = next < end_ ? ((next - base) << 32) | place : UINT64_MAX;
    for (leaf >>= 1; leaf > 0; leaf >>= 1) tree[leaf] = std::min(tree[2 * leaf], tree[2 * leaf + 1]);
  }
  card_head_.refresh();
}

template void SimulationEngine<false>::run_core();
template void SimulationEngine<true>::run_core();

}  // namespace rodeo::network
