// Requests: supervisors assign events to filter nodes, and nodes request the fragments from the readouts, one after the
// other.
#include "network/simulator/engine/engine.h"

#include <algorithm>

namespace rodeo::network {

template <bool kTrain>
void SimulationEngine<kTrain>::run_supervisors() {
  for (std::uint32_t rack = 0; rack < racks_.size(); ++rack) {
    if (racks_[rack].supervisor.next_time() >= end_) continue;
    RackSupervisor& supervisor = racks_[rack].supervisor;
    if (kTrain) supervisor.doubt(in_trains_ ? doubt_ : 0);
    supervisor.advance(end_, [&](Picoseconds time, std::uint32_t node, std::uint64_t bytes) {
      if (kTrain && supervisor.doubtful()) note(time);
      assign(rack, time, node, bytes);
    });
  }
}

template <bool kTrain>
void SimulationEngine<kTrain>::assign(std::uint32_t rack, Picoseconds time, std::uint32_t node, std::uint64_t bytes) {
  const std::uint32_t number = rack * nodes_per_rack_ + node;
  time = std::max(time, begin_);  // after a long step a node may have finished earlier
  const Event event{bytes, time, readouts_count_, number, false};
  std::uint32_t slot = 0;
  if (free_events_.empty()) {
    slot = static_cast<std::uint32_t>(events_.size());
    events_.push_back(event);
  } else {
    slot = free_events_.back();
    free_events_.pop_back();
    events_[slot] = event;
  }
  Node& one = nodes_[number];
  one.pending.push({time, slot, 0});
  if (one.request_time == kNever) plan_request(number, time);
}

/// Says that the node may send requests from this time on, if its credits allow it.
template <bool kTrain>
void SimulationEngine<kTrain>::plan_request(std::uint32_t number, Picoseconds earliest) {
  Node& node = nodes_[number];
  const std::uint32_t credits = scenario_.traffic.request_credits;
  if (node.pending.empty() || (credits != 0 && node.outstanding >= credits)) {
    node.request_time = kNever;
    if (!node.pending.empty()) note(earliest);
  } else {
    node.request_time = std::max({earliest, node.request_earliest, node.pending.front().time});
  }
  (long_steps_ ? request_head_ : node_head_).lower(number, node.request_time);
}

template <bool kTrain>
void SimulationEngine<kTrain>::send_requests(std::uint32_t number) {
  Node& node = nodes_[number];
  const Picoseconds now = node.request_time;
  const Traffic& traffic = scenario_.traffic;
  Pending& pending = node.pending.front();
  const std::uint32_t flow = number * readouts_count_ + pending.next_readout;
  Acknowledgement ack;
  if (tcp_.control != CongestionControl::none) ack = receiving_[flow].receiver.acknowledge();
  send_back(number, now, flow, ack, 1, pending.event);
  fetch_sender(flow);
  if (pending.next_readout + 1 < readouts_count_) fetch_receiver(flow + 1);
  ++node.outstanding;
  if (++pending.next_readout == readouts_count_) node.pending.pop();
  node.request_earliest = now + traffic.request_gap_ns * kPicosecondsPerNanosecond;
  plan_request(number, now);
}

/// Handles the requests of the nodes in a long step.
template <bool kTrain>
void SimulationEngine<kTrain>::run_requests() {
  request_head_.visit_before(end_, [&](std::uint32_t number) {
    Node& node = nodes_[number];
    while (node.request_time < end_) ask_in_long_step(number);
    request_head_.set(number, node.request_time);
  });
}

/// Sends requests like send_requests(), but directly into the readouts' tasks.
template <bool kTrain>
void SimulationEngine<kTrain>::ask_in_long_step(std::uint32_t number) {
  Node& node = nodes_[number];
  const Picoseconds now = node.request_time;
  Pending& pending = node.pending.front();
  const std::uint32_t flow = number * readouts_count_ + pending.next_readout;
  if (receiving_[flow].receiver.deadline() != kNever) {  // the request carries an acknowledgement
    send_requests(number);
    return;
  }
  if (pending.next_readout + 1 < readouts_count_) {
    fetch_receiver(flow + 1);
    fetch_sender(flow + 1);
  }
  node.card_free = std::max(now, node.card_free) + request_time_;
  ++request_.sent;
  request_.sent_bytes += sizes_.header + scenario_.traffic.request_bytes;
  const Picoseconds arrival = node.card_free + way_back_;
  if (arrival < end_) {
    tasks_.push_back({arrival, Task::Kind::request, flow, pending.event});
  } else {
    if (node.back.empty()) back_head_.set(number, arrival);
    node.back.push({arrival, flow, receiving_[flow].receiver.next(), pending.event, 1, 0, false});
  }
  ++node.outstanding;
  if (++pending.next_readout == readouts_count_) node.pending.pop();
  node.request_earliest = now + scenario_.traffic.request_gap_ns * kPicosecondsPerNanosecond;
  node.request_time = node.pending.empty() ? kNever : std::max({now, node.request_earliest, node.pending.front().time});
}

template void SimulationEngine<false>::run_supervisors();
template void SimulationEngine<true>::run_supervisors();
template void SimulationEngine<false>::plan_request(std::uint32_t node, Picoseconds earliest);
template void SimulationEngine<true>::plan_request(std::uint32_t node, Picoseconds earliest);
template void SimulationEngine<false>::send_requests(std::uint32_t node);
template void SimulationEngine<true>::send_requests(std::uint32_t node);
template void SimulationEngine<false>::run_requests();
template void SimulationEngine<true>::run_requests();

}  // namespace rodeo::network
