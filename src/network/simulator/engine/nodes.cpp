// Filter nodes: packets that leave the switch reach the TCP receivers, events become complete, acknowledgements go back.
#include "network/simulator/engine/engine.h"

#include <algorithm>

#include "network/simulator/engine/packet_hash.h"

namespace rodeo::network {

template <bool kTrain>
void SimulationEngine<kTrain>::run_nodes() {
  delayed_.clear();
  receiver_timers_.advance(
      end_, [&](std::uint32_t flow) { return receiving_[flow].receiver.deadline(); },
      [&](std::uint32_t flow, Picoseconds deadline) {
        delayed_.push_back({deadline, flow});
        node_head_.lower(node_of(flow), deadline);
      });
  node_head_.visit_before(end_, [&](std::uint32_t node) { run_node(node); });
}

template <bool kTrain>
void SimulationEngine<kTrain>::run_node(std::uint32_t number) {
  Node& node = nodes_[number];
  SwitchMemory<kTrain>& memory = racks_[rack_of(number)].memory;
  const std::uint32_t port = number - rack_of(number) * nodes_per_rack_;
  if (memory.waits(port)) memory.serve(port, end_);
  for (;;) {
    const Picoseconds data = memory.next_departure(port);
    Picoseconds delayed = kNever;
    std::size_t which = 0;
    for (std::size_t i = 0; i < delayed_.size(); ++i) {
      const DelayedAck& one = delayed_[i];
      if (node_of(one.flow) != number || one.time == kNever) continue;
      if (one.time < delayed || (one.time == delayed && one.flow < delayed_[which].flow)) {
        delayed = one.time;
        which = i;
      }
    }
    const Picoseconds next = std::min({data, delayed, node.request_time});
    if (next >= end_) break;
    if (node.request_time == next) {
      send_requests(number);
    } else if (delayed == next) {
      const std::uint32_t flow = delayed_[which].flow;
      delayed_[which].time = kNever;
      TcpReceiver& receiver = receiving_[flow].receiver;
      if (receiver.deadline() == next) {
        send_back(number, next, flow, receiver.acknowledge(), 1, Returning::kNoEvent);
      } else if (receiver.deadline() != kNever) {
        if (receiver.deadline() < end_) {
          delayed_.push_back({receiver.deadline(), flow});
        } else {
          receiver_timers_.arm(flow, receiver.deadline());
        }
      }
    } else {
      deliver(number, memory.pop(port));
      memory.fetch(port);
    }
  }
  const Picoseconds departure = memory.next_departure(port);
  if (departure != kNever) {
    fetch_receiver(memory.next(port).word.flow());
    if (kTrain) fetch_fragments(memory.next(port).word.flow());
  }
  const Picoseconds next = std::min(departure, node.request_time);
  node_head_.set(number, memory.waits(port) ? std::min(next, end_) : next);
}

template <bool kTrain>
void SimulationEngine<kTrain>::deliver(std::uint32_t number, const Item& item) {
  const std::uint32_t flow_number = item.word.flow();
  Receiving& flow = receiving_[flow_number];
  const std::uint32_t count = item.count();
  const std::uint32_t last = item.word.last_payload();
  const std::uint32_t first = item.word.number_near(flow.receiver.next());
  Node& node = nodes_[number];
  mix(node.hash, item.time ^ item.word.bits);
  const auto count_delivered = [&] {
    const Occupancy bytes = sizes_.of(count, last);
    data_.delivered += count;
    data_.delivered_bytes += bytes.frames;
    leave_network(number, bytes.cells);
  };
  if (tcp_.control == CongestionControl::none) {
    if (last == 0) {
      const Flow& one = flows_[flow_number];
      events_[one.fragments.at(one.received).event].lost = true;
    } else {
      count_delivered();
    }
    flow.receiver.skip(count);
    finish_fragments(number, item.time, flow_number);
    Flow& one = flows_[flow_number];
    while (one.fragments.first() != one.received) one.fragments.pop();
    return;
  }
  count_delivered();
  Acknowledgement ack;
  const std::uint32_t acks = flow.receiver.receive(tcp_, item.time, first, count, ack);
  const bool quietly =
      kTrain && long_steps_ && acks > 0 && ack.blocks == 0 && !ack.duplicate && flows_[flow_number].sender.quiet();
  if (acks > 0 && !quietly) {
    send_back(number, item.time, flow_number, ack, acks, Returning::kNoEvent);
    fetch_sender(flow_number);
  }
  const Picoseconds deadline = flow.receiver.deadline();
  if (deadline != kNever) {
    if (deadline < end_) {
      delayed_.push_back({deadline, flow_number});
    } else {
      receiver_timers_.arm(flow_number, deadline);
    }
  }
  Picoseconds begun = 0;
  if (quietly) {
    const Flow& one = flows_[flow_number];
    begun = item.time - node_link_.of(sizes_.of(count, last).frames);
    if (one.received != one.fragments.end()) {
      Event& event = events_[one.fragments.at(one.received).event];
      if (event.begun == 0) event.begun = begun;
      begun = event.begun;
    }
  }
  finish_fragments(number, item.time, flow_number);
  if (quietly) acknowledge_train(item.time, begun, flow_number, ack.cumulative, acks);
}

template <bool kTrain>
void SimulationEngine<kTrain>::finish_fragments(std::uint32_t number, Picoseconds now, std::uint32_t flow_number) {
  Receiving& receiving = receiving_[flow_number];
  while (receiving.arriving && !before(receiving.receiver.next(), receiving.fragment_end)) {
    Flow& flow = flows_[flow_number];
    const std::uint32_t slot = flow.fragments.at(flow.received).event;
    ++flow.received;
    receiving.arriving = flow.received != flow.fragments.end();
    if (receiving.arriving) receiving.fragment_end = flow.fragments.at(flow.received).end;
    ++flow.fragments_done;
    Node& node = nodes_[number];
    --node.outstanding;
    if (node.request_time == kNever) plan_request(number, now);
    Event& event = events_[slot];
    if (--event.remaining > 0) continue;
    if (!event.lost) {
      if (completed_++ == 0) first_completed_ = now;
      latency_.record((now - event.assigned) / kPicosecondsPerNanosecond);
    }
    node.service_free = std::max(now, node.service_free) + node_interval_;
    const Traffic& traffic = scenario_.traffic;
    auto processing = traffic.processing_ns * kPicosecondsPerNanosecond;
    if (traffic.processing_exponential) {
      processing = static_cast<Picoseconds>(static_cast<double>(processing) * node.processing.exponential());
    }
    const Picoseconds done = node.service_free + processing + way_back_ + node_link_.of(sizes_.header);
    racks_[rack_of(number)].supervisor.finish(done, number - rack_of(number) * nodes_per_rack_);
    free_events_.push_back(slot);
  }
}

/// Used with trains in long steps: updates the sender at once for the acknowledgements that will arrive after the way back.
template <bool kTrain>
void SimulationEngine<kTrain>::acknowledge_train(Picoseconds now, Picoseconds begun, std::uint32_t flow_number,
                                                 std::uint32_t cumulative, std::uint32_t count) {
  Flow& flow = flows_[flow_number];
  const std::uint64_t bytes = static_cast<std::uint64_t>(count) * sizes_.header;
  Picoseconds arrival = now + node_link_.of(bytes) + way_back_;
  ack_.sent += count;
  ack_.sent_bytes += bytes;
  ack_.delivered += count;
  ack_.delivered_bytes += bytes;
  if (flow.sender.deadline() < arrival) note(flow.sender.deadline());
  const bool learns = flow.sender.learns(tcp_);
  const std::uint32_t window = flow.sender.window();
  if (count > 2 && learns) {
    // Packets of all readouts take turns: the first acknowledgements arrive early, the last ones at the end of the event.
    const Picoseconds apart = 2 * readouts_count_ * node_link_.of(sizes_.segment + sizes_.header);
    Picoseconds time = begun + node_link_.of(sizes_.header) + way_back_;
    while (flow.sender.learns(tcp_)) {
      const std::uint32_t part = flow.sender.unacknowledged() + tcp_.segments_per_ack;
      if (!before(part, cumulative)) break;
      time += apart;
      flow.sender.acknowledge_train(tcp_, time, part);
    }
    arrival = std::max(arrival, time);
  }
  flow.sender.acknowledge_train(tcp_, arrival, cumulative);
  flow.drop_acknowledged();
  // The growth of a window in slow start depends on single acknowledgements; for a large window the effect is negligible.
  if (learns && flow.sender.window() - window > window / 16) note(arrival);
}

/// Sends it through the node's card and, without waiting, back to the readout.
template <bool kTrain>
void SimulationEngine<kTrain>::send_back(std::uint32_t number, Picoseconds now, std::uint32_t flow,
                                         const Acknowledgement& ack, std::uint32_t count, std::uint32_t event) {
  Node& node = nodes_[number];
  const bool is_request = event != Returning::kNoEvent;
  const std::uint64_t bytes = is_request ? sizes_.header + scenario_.traffic.request_bytes
                                         : static_cast<std::uint64_t>(count) * ack_bytes(ack.blocks);
  node.card_free = std::max(now, node.card_free) + node_link_.of(bytes);
  PacketCount& sent = is_request ? request_ : ack_;
  sent.sent += count;
  sent.sent_bytes += bytes;
  if (node.back.empty()) back_head_.set(number, node.card_free + way_back_);
  node.back.push({node.card_free + way_back_, flow, ack.cumulative, event, static_cast<std::uint16_t>(count), ack.blocks,
                  ack.duplicate});
  if (ack.blocks != 0) node.blocks.push(ack);
}

template void SimulationEngine<false>::run_nodes();
template void SimulationEngine<true>::run_nodes();
template void SimulationEngine<false>::send_back(std::uint32_t node, Picoseconds now, std::uint32_t flow,
                                                 const Acknowledgement& ack, std::uint32_t count, std::uint32_t event);
template void SimulationEngine<true>::send_back(std::uint32_t node, Picoseconds now, std::uint32_t flow,
                                                const Acknowledgement& ack, std::uint32_t count, std::uint32_t event);

}  // namespace rodeo::network
