#include "network/simulator/engine.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

namespace rodeo::network {

namespace {

constexpr std::uint64_t kMixer = 0x9e3779b97f4a7c15;

void mix(std::uint64_t& hash, std::uint64_t value) { hash = (std::rotl(hash, 23) ^ value) * kMixer; }

Picoseconds interval_of(double rate_hz) {
  return rate_hz > 0 ? static_cast<Picoseconds>(std::llround(static_cast<double>(kPicosecondsPerSecond) / rate_hz)) : 0;
}

}  // namespace

template <bool kTrain>
SimulationEngine<kTrain>::Rack::Rack(const Scenario& scenario, const PacketSizes& sizes, LinkTime in, LinkTime out,
                                     std::uint32_t number)
    : supervisor(scenario.topology, scenario.traffic, number, scenario.seed),
      memory(scenario.buffer, sizes, in, out, scenario.topology.nodes / scenario.topology.racks,
             scenario.topology.uplink_sharing == UplinkSharing::ideal ? 1 : scenario.topology.uplinks) {}

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
  // A window longer than a millisecond gains nothing, and times within it fit into 32 bits beside an index.
  window_ = std::min<Picoseconds>(way_back_ + node_link_.of(smallest), 1'000'000'000);
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
  // Connections are made in an empty network, before the first event.
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
  long_window_ = std::min<Picoseconds>(32 * window_, 1'000'000'000);
  piece_ = largest_train(packets);
  doubt_ = readouts_count_ * packets * node_link_.of(sizes_.segment + sizes_.header) / 128 + 2'000'000;
  tree_.resize(2 * std::bit_ceil(static_cast<std::size_t>(readouts_count_)));
  active_.reserve(readouts_count_);
  if (observers.occupancy) {
    next_report_ = observers.occupancy_interval_ns * kPicosecondsPerNanosecond;
    for (Rack& rack : racks_) rack.memory.watch_intervals();
  }
}

/// Trains are taken for what has arrived with their last bit. Shorter ones where that would be seen: it delays an event by as long as a
/// train takes longer on a card than on an uplink; where the cards together do not fill the uplink, by what comes at once at the end; and
/// where an uplink is several links, by what each of them has of a train that is not yet there as a whole.
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

template <bool kTrain>
void SimulationEngine<kTrain>::run(Picoseconds until) {
  until_ = std::min(until, end_of_run_);
  Picoseconds begin = std::max(next_happening(), end_);
  while (begin < until_) {
    step(begin);
    if (kTrain && in_trains_ && disturbed_) return;
    begin = std::max(next_happening(), end_);
    if ((window_number_ & 0x7f) == 0 && observers_.progress) {
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
  if (kTrain) choose_windows();
  end_ = std::min(begin + (long_windows_ ? long_window_ : window_), until_);
  ++window_number_;
  tasks_.clear();
  run_supervisors();
  if (long_windows_) run_requests();
  run_readouts();
  run_core();
  run_switches();
  run_nodes();
  if (next_report_ <= end_) {
    // Reports within the window that no arrival has passed yet.
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

/// With trains, what comes back from a node within a window is bookkeeping, unless a supervisor waits for it: requests depend on when
/// events are assigned, and acknowledgements release nothing. Otherwise windows are as long as the way back.
template <bool kTrain>
void SimulationEngine<kTrain>::choose_windows() {
  bool longer =
      in_trains_ && scenario_.traffic.assignment != Assignment::least_loaded && scenario_.traffic.request_credits == 0;
  for (const Rack& rack : racks_) longer = longer && rack.supervisor.waiting() == 0;
  if (longer == long_windows_) return;
  long_windows_ = longer;
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
                   back_head_.earliest(), long_windows_ ? request_head_.earliest() : kNever});
}

// Supervisors

template <bool kTrain>
void SimulationEngine<kTrain>::run_supervisors() {
  for (std::uint32_t rack = 0; rack < racks_.size(); ++rack) {
    if (racks_[rack].supervisor.next_time() >= end_) continue;
    Supervisor& supervisor = racks_[rack].supervisor;
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
  time = std::max(time, begin_);  // after a long window a node may have finished before
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

/// The node may ask from that time on, if its credits allow.
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
  (long_windows_ ? request_head_ : node_head_).lower(number, node.request_time);
}

/// What the nodes ask for in a long window.
template <bool kTrain>
void SimulationEngine<kTrain>::run_requests() {
  request_head_.visit_before(end_, [&](std::uint32_t number) {
    Node& node = nodes_[number];
    while (node.request_time < end_) ask_in_long_window(number);
    request_head_.set(number, node.request_time);
  });
}

/// As send_requests(), but straight into the readouts' tasks.
template <bool kTrain>
void SimulationEngine<kTrain>::ask_in_long_window(std::uint32_t number) {
  Node& node = nodes_[number];
  const Picoseconds now = node.request_time;
  Pending& pending = node.pending.front();
  const std::uint32_t flow = number * readouts_count_ + pending.next_readout;
  if (receiving_[flow].receiver.deadline() != kNever) {  // an acknowledgement goes along
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
    tasks_.push_back({arrival, Kind::request, flow, pending.event});
  } else {
    if (node.back.empty()) back_head_.set(number, arrival);
    node.back.push({arrival, flow, receiving_[flow].receiver.next(), pending.event, 1, 0, false});
  }
  ++node.outstanding;
  if (++pending.next_readout == readouts_count_) node.pending.pop();
  node.request_earliest = now + scenario_.traffic.request_gap_ns * kPicosecondsPerNanosecond;
  node.request_time = node.pending.empty() ? kNever : std::max({now, node.request_earliest, node.pending.front().time});
}

// Readouts

template <bool kTrain>
std::uint32_t SimulationEngine<kTrain>::fragment_bytes(const Event& event, std::uint32_t readout) const {
  const std::uint64_t share = event.bytes / readouts_count_;
  return static_cast<std::uint32_t>(share + (readout < event.bytes % readouts_count_ ? 1 : 0));
}

template <bool kTrain>
void SimulationEngine<kTrain>::run_readouts() {
  returned_.clear();
  next_task_ = 0;
  sender_timers_.advance(
      end_, [&](std::uint32_t flow) { return flows_[flow].sender.deadline(); },
      [&](std::uint32_t flow, Picoseconds deadline) {
        flows_[flow].deferred = window_number_;
        tasks_.push_back({deadline, Kind::timer, flow, 0});
      });
  answer_head_.visit_before(end_, [&](std::uint32_t readout) {
    Ring<Answer>& answers = readouts_[readout].answers;
    while (!answers.empty() && answers.front().time < end_) {
      const Answer& one = answers.front();
      flows_[one.flow].deferred = window_number_;
      tasks_.push_back({one.time, Kind::answer, one.flow, one.event});
      answers.pop();
    }
    answer_head_.set(readout, answers.empty() ? kNever : answers.front().time);
  });
  back_head_.visit_before(end_, [&](std::uint32_t number) {
    Node& node = nodes_[number];
    while (!node.back.empty() && node.back.front().time < end_) {
      const Returning one = node.back.front();
      node.back.pop();
      if (kTrain) fetch_sender(node.back.ahead(1)->flow);
      Flow& flow = flows_[one.flow];
      if (one.event == Returning::kNoEvent && one.blocks == 0 && !one.duplicate && flow.sender.quiet() &&
          flow.deferred != window_number_) {
        // Bookkeeping of one connection: it need not wait for its turn.
        ack_.delivered += one.count;
        ack_.delivered_bytes += static_cast<std::uint64_t>(one.count) * sizes_.header;
        Acknowledgement ack;
        ack.cumulative = one.cumulative;
        flow.sender.acknowledge(tcp_, one.time, ack, runs_);
        assert(runs_.empty());
        drop_acknowledged(flow);
        after_sender(one.flow);
        continue;
      }
      flow.deferred = window_number_;
      tasks_.push_back({one.time, Kind::returning, one.flow, static_cast<std::uint32_t>(returned_.size())});
      returned_.push_back({one, {}});
      if (one.blocks != 0) {
        returned_.back().blocks = node.blocks.front();
        node.blocks.pop();
      }
    }
    back_head_.set(number, node.back.empty() ? kNever : node.back.front().time);
  });
  if (tasks_.empty()) return;
  std::sort(tasks_.begin(), tasks_.end());
  while (next_task_ < tasks_.size()) {
    const Task task = tasks_[next_task_++];
    do_task(task);
  }
}

template <bool kTrain>
void SimulationEngine<kTrain>::add_task(const Task& task) {
  const auto begin = tasks_.begin() + static_cast<std::ptrdiff_t>(next_task_);
  tasks_.insert(std::upper_bound(begin, tasks_.end(), task), task);
}

template <bool kTrain>
void SimulationEngine<kTrain>::do_task(const Task& task) {
  Flow& flow = flows_[task.flow];
  switch (task.kind) {
    case Kind::returning: on_returning(task.time, returned_[task.what].one, returned_[task.what].blocks); return;
    case Kind::request:
      ++request_.delivered;
      request_.delivered_bytes += sizes_.header + scenario_.traffic.request_bytes;
      on_request(task.time, task.flow, task.what);
      return;
    case Kind::answer:
      --flow.answers;
      answer(task.time, task.flow, task.what);
      return;
    case Kind::timer:
      if (flow.sender.deadline() != task.time) {  // it has moved since
        after_sender(task.flow);
        return;
      }
      note(task.time);
      flow.sender.expire(tcp_, task.time, runs_);
      hand_to_card(task.time, task.flow);
      after_sender(task.flow);
      return;
  }
}

template <bool kTrain>
void SimulationEngine<kTrain>::on_returning(Picoseconds now, const Returning& one, const Acknowledgement& blocks) {
  const bool is_request = one.event != Returning::kNoEvent;
  PacketCount& count = is_request ? request_ : ack_;
  count.delivered += one.count;
  count.delivered_bytes += is_request ? sizes_.header + scenario_.traffic.request_bytes
                                      : static_cast<std::uint64_t>(one.count) * ack_bytes(one.blocks);
  if (tcp_.control != CongestionControl::none) {
    Flow& flow = flows_[one.flow];
    Acknowledgement ack = blocks;
    ack.cumulative = one.cumulative;
    ack.blocks = one.blocks;
    ack.duplicate = one.duplicate;
    flow.sender.acknowledge(tcp_, now, ack, runs_);
    drop_acknowledged(flow);
    hand_to_card(now, one.flow);
    after_sender(one.flow);
  }
  if (is_request) on_request(now, one.flow, one.event);
}

template <bool kTrain>
void SimulationEngine<kTrain>::drop_acknowledged(Flow& flow) {
  while (!before(flow.sender.unacknowledged(), flow.oldest_end) && !flow.fragments.empty()) {
    flow.fragments.pop();
    if (!flow.fragments.empty()) flow.oldest_end = flow.fragments.front().end;
  }
}

template <bool kTrain>
void SimulationEngine<kTrain>::on_request(Picoseconds now, std::uint32_t flow, std::uint32_t event) {
  const Traffic& traffic = scenario_.traffic;
  if (answer_interval_ == 0 && traffic.readout_response_ns == 0 && traffic.readout_jitter_ns == 0) {
    answer(now, flow, event);
    return;
  }
  const std::uint32_t number = readout_of(flow);
  Readout& readout = readouts_[number];
  readout.service_free = std::max(now, readout.service_free) + answer_interval_;
  Picoseconds time = readout.service_free + traffic.readout_response_ns * kPicosecondsPerNanosecond;
  if (traffic.readout_jitter_ns != 0)
    time += readout.jitter.below(traffic.readout_jitter_ns * kPicosecondsPerNanosecond + 1);
  readout.last_answer = std::max(readout.last_answer, time);
  const Answer one{readout.last_answer, flow, event};
  ++flows_[flow].answers;
  if (one.time < end_ && readout.answers.empty()) {
    add_task({one.time, Kind::answer, flow, event});
    return;
  }
  readout.answers.push(one);
  answer_head_.set(number, readout.answers.front().time);
}

template <bool kTrain>
void SimulationEngine<kTrain>::answer(Picoseconds now, std::uint32_t number, std::uint32_t event) {
  Flow& flow = flows_[number];
  const std::uint32_t bytes = fragment_bytes(events_[event], readout_of(number));
  const std::uint32_t segments = (bytes + sizes_.segment - 1) / sizes_.segment;
  flow.fragments.push({flow.sender.written() + segments, event, bytes - (segments - 1) * sizes_.segment});
  if (flow.fragments.size() == 1) flow.oldest_end = flow.fragments.front().end;
  Receiving& receiving = receiving_[number];
  if (!receiving.arriving) {
    receiving.arriving = true;
    receiving.fragment_end = flow.fragments.back().end;
  }
  flow.sender.write(tcp_, now, segments, runs_);
  if (flow.sender.next() != flow.sender.written()) note(now);
  if (kTrain && segments <= piece_ && runs_.size() == 1 && runs_.front().count == segments &&
      goes_as_train(node_of(number))) {
    train_to_card(now, number, runs_.front(), flow.fragments.back().last_payload);
    runs_.clear();
  } else {
    hand_to_card(now, number);
  }
  after_sender(number);
}

template <bool kTrain>
void SimulationEngine<kTrain>::after_sender(std::uint32_t number) {
  const Picoseconds deadline = flows_[number].sender.deadline();
  if (deadline == kNever || (kTrain && long_windows_)) return;  // in long windows acknowledge_train() looks at it
  if (deadline < end_) {
    flows_[number].deferred = window_number_;
    add_task({deadline, Kind::timer, number, 0});
  } else {
    sender_timers_.arm(number, deadline);
  }
}

/// Whether nothing that is on its way, with an event more, can fill the buffer. Otherwise losses are near, and they fall on single packets.
template <bool kTrain>
bool SimulationEngine<kTrain>::goes_as_train(std::uint32_t node) const {
  if (!in_trains_) return false;
  if (!count_in_network_) return true;
  const Rack& rack = racks_[rack_of(node)];
  return rack.memory.certainly_fits(rack.in_network + event_cells_, nodes_[node].in_network + event_cells_);
}

/// Gives what the sender has released to the card, which sends it in that order at the speed of its link.
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
      const bool trains = kTrain && goes_as_train(node);
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

/// As hand_to_card(), of a fragment that goes as one train.
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

// Core

template <bool kTrain>
void SimulationEngine<kTrain>::into_uplink(Picoseconds arrival, std::uint32_t flow, PacketWord word, std::uint32_t count) {
  const std::uint32_t number = flow_uplink_[flow];
  Uplink& uplink = uplinks_[number];
  const std::uint32_t last = word.last_payload();
  const Picoseconds last_time = last == sizes_.segment ? uplink_full_ : uplink_link_.of(last + sizes_.header);
  if (kTrain) {
    // The uplink sends what it has while the rest of the train is still coming.
    Picoseconds begin = uplink.free;
    if (count > 1 && uplink_full_ > card_full_) {  // slower than the card: from when the first packet is there
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

/// Merges what the cards have sent, in order of arrival (and of readouts, where two arrive at once).
template <bool kTrain>
void SimulationEngine<kTrain>::run_core() {
  active_.clear();
  card_head_.visit_before(end_, [&](std::uint32_t readout) { active_.push_back(readout); });
  if (active_.empty()) return;
  // A tree of winners over the readouts that take part; its leaves are arrival times within the window with the readout's place.
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
    if (offset >= length) break;  // also where all leaves are empty
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

// Switches

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
  // Part of the train may not fit: its packets one by one, as they come.
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

/// All intervals that end by then.
template <bool kTrain>
void SimulationEngine<kTrain>::report_occupancy(std::uint32_t number, Picoseconds until) {
  Rack& rack = racks_[number];
  const Picoseconds interval = observers_.occupancy_interval_ns * kPicosecondsPerNanosecond;
  while (rack.reported + interval <= until) {
    rack.reported += interval;
    OccupancySample sample;
    sample.time_ns = rack.reported / kPicosecondsPerNanosecond;
    sample.rack = number;
    sample.max_bytes = rack.memory.take_interval_maximum(rack.reported);
    sample.last_bytes = rack.memory.occupancy(rack.reported).frames;
    sample.drops = rack.memory.drops().total() - rack.drops_reported;
    rack.drops_reported += sample.drops;
    observers_.occupancy(sample);
  }
}

// Filter nodes

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
      deliver(number, memory.take(port));
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
      kTrain && long_windows_ && acks > 0 && ack.blocks == 0 && !ack.duplicate && flows_[flow_number].sender.quiet();
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

/// With trains in long windows: bookkeeping at the sender, at once, of what will be there after the way back.
template <bool kTrain>
void SimulationEngine<kTrain>::acknowledge_train(Picoseconds now, Picoseconds begun, std::uint32_t flow_number,
                                                 std::uint32_t cumulative, std::uint32_t count) {
  Flow& flow = flows_[flow_number];
  const std::uint64_t bytes = static_cast<std::uint64_t>(count) * sizes_.header;
  const Picoseconds arrival = now + node_link_.of(bytes) + way_back_;
  ack_.sent += count;
  ack_.sent_bytes += bytes;
  ack_.delivered += count;
  ack_.delivered_bytes += bytes;
  if (flow.sender.deadline() < arrival) note(flow.sender.deadline());
  if (count > 2 && flow.sender.learns(tcp_)) {
    // Packets of all readouts take turns: the first acknowledgements come early, the last ones with the end of the event.
    const Picoseconds first = std::min(begun + 2 * readouts_count_ * node_link_.of(sizes_.segment + sizes_.header), now);
    const Picoseconds apart = (now - first) / (count - 1);
    for (std::uint32_t i = 0; i < 2; ++i) {
      const std::uint32_t part = flow.sender.unacknowledged() + tcp_.segments_per_ack;
      if (!before(part, cumulative)) break;
      flow.sender.acknowledge_train(tcp_, first + i * apart + node_link_.of(sizes_.header) + way_back_, part);
    }
  }
  flow.sender.acknowledge_train(tcp_, arrival, cumulative);
  drop_acknowledged(flow);
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

/// Through the node's card and, without waiting, back to the readout.
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
    out.drops.pool_full += rack.memory.drops().pool_full;
    out.drops.threshold += rack.memory.drops().threshold;
    out.drops.port_limit += rack.memory.drops().port_limit;
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

template class SimulationEngine<false>;
template class SimulationEngine<true>;

}  // namespace rodeo::network
