// Advances time: the sequence of steps, their lengths, and the stages in each step.
#include "network/simulator/engine/engine.h"

#include <algorithm>

namespace rodeo::network {

template <bool kTrain>
void SimulationEngine<kTrain>::run(Picoseconds until) {
  until_ = std::min(until, end_of_run_);
  Picoseconds begin = std::max(next_happening(), end_);
  while (begin < until_) {
    step(begin);
    if (kTrain && in_trains_ && disturbed_) return;
    begin = std::max(next_happening(), end_);
    if ((step_number_ & 0x7f) == 0 && observers_.progress) {
      const auto now = std::chrono::steady_clock::now();
      if (now - last_talk_ >= std::chrono::milliseconds(100)) {
        last_talk_ = now;
        if (!observers_.progress(end_ / kPicosecondsPerNanosecond)) {
          stopped_ = true;
          return;
        }
      }
    }
  }
  end_ = until_;
  if (observers_.occupancy && end_ == end_of_run_) {
    for (std::uint32_t rack = 0; rack < racks_.size(); ++rack) report_occupancy(rack, end_);
  }
}

template <bool kTrain>
void SimulationEngine<kTrain>::step(Picoseconds begin) {
  begin_ = begin;
  if (kTrain) choose_steps();
  end_ = std::min(begin + (long_steps_ ? long_step_ : step_), until_);
  ++step_number_;
  tasks_.clear();
  run_supervisors();
  if (long_steps_) run_requests();
  run_readouts();
  run_core();
  run_switches();
  run_nodes();
  if (next_report_ <= end_) {
    // Handles reports that are due within the step after its last arrival.
    const Picoseconds interval = observers_.occupancy_interval_ns * kPicosecondsPerNanosecond;
    for (std::uint32_t rack = 0; rack < racks_.size(); ++rack) report_occupancy(rack, end_);
    while (next_report_ <= end_) next_report_ += interval;
  }
}

template <bool kTrain>
void SimulationEngine<kTrain>::go(bool in_trains) {
  in_trains_ = kTrain && in_trains;
  disturbed_ = false;
}

/// With trains, answers from a node within a step affect no other connection, unless a supervisor waits for them: requests
/// depend only on assignment times, and acknowledgements release no data. Then steps can be long; otherwise they are as long
/// as the way back.
template <bool kTrain>
void SimulationEngine<kTrain>::choose_steps() {
  bool longer =
      in_trains_ && scenario_.traffic.assignment != Assignment::least_loaded && scenario_.traffic.request_credits == 0;
  for (const Rack& rack : racks_) longer = longer && rack.supervisor.waiting() == 0;
  if (longer == long_steps_) return;
  long_steps_ = longer;
  for (std::uint32_t flow = 0; !longer && flow < flows_.size(); ++flow) {
    if (flows_[flow].sender.deadline() != kNever) sender_timers_.arm(flow, flows_[flow].sender.deadline());
  }
  for (std::uint32_t node = 0; node < nodes_count_; ++node) {
    (longer ? request_head_ : node_head_).lower(node, nodes_[node].request_time);
  }
}

template <bool kTrain>
bool SimulationEngine<kTrain>::calm() const {
  return std::all_of(flows_.begin(), flows_.end(), [](const Flow& flow) { return flow.sender.quiet(); });
}

template <bool kTrain>
Picoseconds SimulationEngine<kTrain>::oldest_assigned() const {
  Picoseconds oldest = end_;
  for (const Event& event : events_) {
    if (event.remaining != 0) oldest = std::min(oldest, event.assigned);
  }
  return oldest;
}

template <bool kTrain>
Picoseconds SimulationEngine<kTrain>::next_happening() const {
  Picoseconds next = std::min(sender_timers_.next(), receiver_timers_.next());
  for (const Rack& rack : racks_) next = std::min(next, rack.supervisor.next_time());
  return std::min({next, card_head_.earliest(), answer_head_.earliest(), uplink_head_.earliest(), node_head_.earliest(),
                   back_head_.earliest(), long_steps_ ? request_head_.earliest() : kNever});
}

template void SimulationEngine<false>::run(Picoseconds until);
template void SimulationEngine<true>::run(Picoseconds until);
template void SimulationEngine<false>::go(bool in_trains);
template void SimulationEngine<true>::go(bool in_trains);
template bool SimulationEngine<false>::calm() const;
template bool SimulationEngine<true>::calm() const;
template Picoseconds SimulationEngine<false>::oldest_assigned() const;
template Picoseconds SimulationEngine<true>::oldest_assigned() const;

}  // namespace rodeo::network
