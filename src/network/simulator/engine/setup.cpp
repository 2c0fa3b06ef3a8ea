// Makes the idle network of a scenario, with open connections; computes the longest allowed train.
#include "network/simulator/engine/engine.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace rodeo::network {

namespace {

Picoseconds interval_of(double rate_hz) {
  return rate_hz > 0 ? static_cast<Picoseconds>(std::llround(static_cast<double>(kPicosecondsPerSecond) / rate_hz)) : 0;
}

}  // namespace

template <bool kTrain>
SimulationEngine<kTrain>::SimulationEngine(const Scenario& scenario, const Observers& observers)
    : scenario_(scenario),
      observers_(observers),
      tcp_(scenario.tcp, scenario.traffic.segment_bytes()),
      sizes_(scenario.traffic, scenario.buffer),
      readouts_count_(scenario.topology.readouts),
      nodes_count_(scenario.topology.nodes),
      nodes_per_rack_(scenario.topology.nodes / scenario.topology.racks),
      uplinks_per_rack_(scenario.topology.uplink_sharing == UplinkSharing::ideal ? 1 : scenario.topology.uplinks),
      card_link_(scenario.topology.readout_link_bps),
      uplink_link_(scenario.topology.uplink_bps / uplinks_per_rack_),
      node_link_(scenario.topology.node_link_bps),
      propagation_(scenario.topology.propagation_ns * kPicosecondsPerNanosecond),
      end_of_run_(scenario.duration_ns * kPicosecondsPerNanosecond),
      flows_(static_cast<std::size_t>(readouts_count_) * nodes_count_),
      receiving_(flows_.size()),
      readouts_(readouts_count_),
      uplinks_(static_cast<std::size_t>(scenario.topology.racks) * uplinks_per_rack_),
      card_head_(readouts_count_),
      answer_head_(readouts_count_),
      uplink_head_(uplinks_.size()),
      node_head_(nodes_count_),
      back_head_(nodes_count_),
      request_head_(nodes_count_),
      sender_timers_(flows_.size()),
      receiver_timers_(flows_.size()) {
  const std::uint32_t smallest = sizes_.header;
  way_back_ = propagation_ + card_link_.of(smallest) + uplink_link_.of(smallest);
  // Steps longer than a millisecond gain nothing; within a millisecond a time fits into 32 bits beside an index.
  step_ = std::min<Picoseconds>(way_back_ + node_link_.of(smallest), 1'000'000'000);
  card_full_ = card_link_.of(sizes_.segment + sizes_.header);
  uplink_full_ = uplink_link_.of(sizes_.segment + sizes_.header);
  count_in_network_ = kTrain && (scenario.buffer.shared_bytes || scenario.buffer.port_limit_bytes);
  const std::uint64_t share = scenario.traffic.event_bytes / readouts_count_ + 1;
  const std::uint64_t packets = (share + sizes_.segment - 1) / sizes_.segment;
  event_cells_ = 2 * readouts_count_ * packets * sizes_.of(1, sizes_.segment).cells;
  answer_interval_ = interval_of(scenario.traffic.readout_service_hz);
  node_interval_ = interval_of(scenario.traffic.node_service_hz);
  racks_.reserve(scenario.topology.racks);
  for (std::uint32_t rack = 0; rack < scenario.topology.racks; ++rack) {
    racks_.emplace_back(scenario, sizes_, uplink_link_, node_link_, rack);
  }
  nodes_.reserve(nodes_count_);
  for (std::uint32_t node = 0; node < nodes_count_; ++node) {
    nodes_.push_back(Node{.pending = {}, .back = {}, .blocks = {}, .processing = Random(scenario.seed, 0x100000000 + node)});
  }
  for (std::uint32_t i = 0; i < readouts_count_; ++i) readouts_[i].jitter = Random(scenario.seed, 0x200000000 + i);
  const std::uint64_t fragment = scenario.traffic.event_bytes / readouts_count_ / sizes_.segment + 1;
  const auto used_window = static_cast<std::uint32_t>(std::min<std::uint64_t>(2 * fragment, tcp_.window_limit));
  const std::uint32_t window = scenario.tcp.warm ? std::max(used_window, tcp_.initial_window) : tcp_.initial_window;
  // Connections are opened in an empty network, before the first event.
  const Picoseconds handshake = 2 * (way_back_ + node_link_.of(smallest));
  for (Flow& flow : flows_) {
    if (tcp_.control != CongestionControl::none) flow.sender.start(tcp_, window, handshake);
  }
  for (Receiving& one : receiving_) one.receiver.start(scenario.tcp.warm ? 0 : tcp_.quick_acks);
  flow_node_.resize(flows_.size());
  flow_uplink_.resize(flows_.size());
  for (std::uint32_t flow = 0; flow < flows_.size(); ++flow) {
    flow_node_[flow] = flow / readouts_count_;
    flow_uplink_[flow] = rack_of(flow_node_[flow]) * uplinks_per_rack_ +
                         (uplinks_per_rack_ == 1 ? 0 : hash_to_uplink(flow, uplinks_per_rack_, scenario.seed));
  }
  request_time_ = node_link_.of(sizes_.header + scenario.traffic.request_bytes);
  long_step_ = std::min<Picoseconds>(32 * step_, 1'000'000'000);
  piece_ = largest_train(packets);
  doubt_ = readouts_count_ * packets * node_link_.of(sizes_.segment + sizes_.header) / 128 + 2'000'000;
  tree_.resize(2 * std::bit_ceil(static_cast<std::size_t>(readouts_count_)));
  active_.reserve(readouts_count_);
  if (observers.occupancy) {
    next_report_ = observers.occupancy_interval_ns * kPicosecondsPerNanosecond;
    for (Rack& rack : racks_) rack.memory.watch_intervals();
  }
}

/// A train counts as arrived with its last bit. This delays an event by the extra time of a train on a card compared with an
/// uplink. If the cards together do not fill the uplink, the packets that arrive at once at the end delay it, too. If an
/// uplink has several links, so do the parts of trains that are still incomplete on each link. Trains are made shorter where
/// the delay would be visible.
template <bool kTrain>
std::uint32_t SimulationEngine<kTrain>::largest_train(std::uint64_t packets) const {
  constexpr double kSeen = 0.002;
  const double card = static_cast<double>(card_full_);
  const double uplink = static_cast<double>(uplink_full_);
  const double port = static_cast<double>(node_link_.of(sizes_.segment + sizes_.header));
  const double together = uplink * readouts_count_ / uplinks_per_rack_;
  double most = static_cast<double>(tcp_.window_limit);
  if (card > uplink) most = std::min(most, kSeen * readouts_count_ * static_cast<double>(packets) * port / (card - uplink));
  if (card > together) most = std::min(most, kSeen * static_cast<double>(packets) * port / uplink * uplinks_per_rack_);
  if (uplinks_per_rack_ > 1) {
    const double event = readouts_count_ * static_cast<double>(packets);
    if (uplink > port) most = std::min(most, kSeen * event * port / uplink);
    const double node = static_cast<double>(scenario_.topology.node_link_bps);
    const double events = scenario_.traffic.event_rate_hz * event * 8 * (sizes_.segment + sizes_.header) / node;
    most = std::min(most, 10 * kSeen * event * (1 + events) / 2 / (uplinks_per_rack_ - 1));
  }
  return std::max(static_cast<std::uint32_t>(most), 1u);
}

template SimulationEngine<false>::SimulationEngine(const Scenario& scenario, const Observers& observers);
template SimulationEngine<true>::SimulationEngine(const Scenario& scenario, const Observers& observers);

}  // namespace rodeo::network
