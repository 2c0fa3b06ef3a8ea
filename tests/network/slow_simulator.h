// The slow and simple twin of the simulator: one heap of events for the whole network, every packet is an object, and the
// switch's memory is a list that is added up at each arrival. It shares the ends of connections and the sources of events
// with the fast one, but no code for the travel, waiting, counting or loss of packets.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <vector>

#include "network/simulator/packet.h"
#include "network/simulator/rack_supervisor.h"
#include "network/simulator/simulate.h"
#include "network/simulator/switch_memory.h"
#include "network/simulator/tcp_receiver.h"
#include "network/simulator/tcp_sender.h"

namespace rodeo::network {

class SlowSimulator {
 public:
  explicit SlowSimulator(const Scenario& scenario)
      : s_(scenario),
        tcp_(scenario.tcp, scenario.traffic.segment_bytes()),
        sizes_(scenario.traffic, scenario.buffer),
        uplink_count_(s_.topology.uplink_sharing == UplinkSharing::ideal ? 1 : s_.topology.uplinks),
        per_rack_(s_.topology.nodes / s_.topology.racks),
        card_(s_.topology.readout_link_bps),
        uplink_(s_.topology.uplink_bps / uplink_count_),
        out_(s_.topology.node_link_bps),
        end_(s_.duration_ns * kPicosecondsPerNanosecond),
        propagation_(s_.topology.propagation_ns * kPicosecondsPerNanosecond),
        way_back_(propagation_ + card_.of(sizes_.header) + uplink_.of(sizes_.header)),
        flows_(s_.topology.readouts * s_.topology.nodes),
        card_free_(s_.topology.readouts),
        service_free_(s_.topology.readouts),
        last_answer_(s_.topology.readouts),
        uplink_free_(s_.topology.racks * uplink_count_),
        nodes_(s_.topology.nodes),
        rack_hash_(s_.topology.racks),
        maximum_(s_.topology.racks) {
    for (std::uint32_t i = 0; i < s_.topology.readouts; ++i) jitter_.emplace_back(s_.seed, 0x200000000 + i);
    const std::uint64_t fragment = s_.traffic.event_bytes / s_.topology.readouts / sizes_.segment + 1;
    const auto used = static_cast<std::uint32_t>(std::min<std::uint64_t>(2 * fragment, tcp_.window_limit));
    for (Flow& flow : flows_) {
      flow.sender.start(tcp_, s_.tcp.warm ? std::max(used, tcp_.initial_window) : tcp_.initial_window,
                        2 * (way_back_ + out_.of(sizes_.header)));
      flow.receiver.start(s_.tcp.warm ? 0 : tcp_.quick_acks);
    }
    for (std::uint32_t rack = 0; rack < s_.topology.racks; ++rack) {
      supervisors_.emplace_back(s_.topology, s_.traffic, rack, s_.seed);
      plan_supervisor(rack);
    }
    for (Node& node : nodes_) node.waiting.resize(uplink_count_);
  }

  Outcome run() {
    while (!events_.empty() && events_.top().time < end_) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.time;
      event.action();
    }
    for (const Flow& flow : flows_) {
      outcome_.retransmits += flow.sender.counts().retransmits;
      outcome_.fast_recoveries += flow.sender.counts().recoveries;
      outcome_.probes += flow.sender.counts().probes;
      outcome_.timeouts += flow.sender.counts().timeouts;
      outcome_.duplicates += flow.receiver.duplicates();
    }
    for (std::uint32_t rack = 0; rack < s_.topology.racks; ++rack) {
      outcome_.max_buffer_bytes = std::max(outcome_.max_buffer_bytes, maximum_[rack].frames);
      outcome_.max_buffer_cell_bytes = std::max(outcome_.max_buffer_cell_bytes, maximum_[rack].cells);
      mix(outcome_.hash, rack_hash_[rack]);
    }
    for (const Node& node : nodes_) mix(outcome_.hash, node.hash);
    return outcome_;
  }

 private:
  enum Rank : std::uint32_t { at_supervisor, at_readout, at_core, at_switch, at_port, at_node };

  struct Event {
    Picoseconds time;
    std::uint32_t rank;
    std::uint64_t key;  // decides the order of actions of one time
    std::uint64_t order;
    std::function<void()> action;
    bool operator<(const Event& other) const {
      return std::tie(other.time, other.rank, other.key, other.order) < std::tie(time, rank, key, order);
    }
  };
  struct Fragment {
    std::uint32_t end;
    std::uint32_t event;
    std::uint32_t last_payload;
  };
  struct Flow {
    TcpSender sender;
    TcpReceiver receiver;
    std::vector<Fragment> fragments;  // all fragments since the start
    std::size_t received = 0;
  };
  struct DataPacket {
    std::uint32_t flow;
    std::uint32_t number;
    std::uint32_t payload;
  };
  struct Stored {
    Picoseconds start;
    Picoseconds departure;
    Occupancy bytes;
  };
  struct Node {
    std::deque<std::pair<std::uint32_t, std::uint32_t>> asking;  // the event, and the readout that is next
    std::deque<Stored> stored;                                   // packets in the node's port
    Picoseconds port_free = 0;
    std::vector<std::deque<std::pair<DataPacket, Occupancy>>> waiting;  // virtual output queues
    std::uint32_t turn = 0;
    bool start_planned = false;
    Picoseconds card_free = 0;
    Picoseconds earliest = 0;
    bool request_planned = false;
    Picoseconds service_free = 0;
    std::uint32_t outstanding = 0;
    std::uint64_t hash = 0;
  };
  struct Built {
    std::uint64_t bytes;
    Picoseconds assigned;
    std::uint32_t remaining;
  };

  static void mix(std::uint64_t& hash, std::uint64_t value) { hash = (std::rotl(hash, 23) ^ value) * 0x9e3779b97f4a7c15; }

  void plan(Picoseconds time, std::uint32_t rank, std::uint64_t key, std::function<void()> action) {
    events_.push({time, rank, key, order_++, std::move(action)});
  }

  void plan_supervisor(std::uint32_t rack) {
    const Picoseconds time = supervisors_[rack].next_time();
    plan(time, at_supervisor, rack, [this, rack, time] {
      // Other events may have been added since; finished ones are not repeated.
      supervisors_[rack].advance(time + 1, [&](Picoseconds when, std::uint32_t to, std::uint64_t bytes) {
        const std::uint32_t number = rack * per_rack_ + to;
        built_.push_back({bytes, when, s_.topology.readouts});
        nodes_[number].asking.push_back({static_cast<std::uint32_t>(built_.size() - 1), 0});
        plan_request(number, when);
        ++outcome_.events_assigned;
      });
      outcome_.events_offered = 0;
      for (const RackSupervisor& one : supervisors_) outcome_.events_offered += one.offered();
      plan_supervisor(rack);
    });
  }

  void plan_request(std::uint32_t number, Picoseconds from) {
    Node& one = nodes_[number];
    if (one.request_planned || one.asking.empty()) return;
    if (s_.traffic.request_credits != 0 && one.outstanding >= s_.traffic.request_credits) return;
    one.request_planned = true;
    plan(std::max(from, one.earliest), at_node, std::uint64_t{0} << 60 | number, [this, number] { request(number); });
  }

  void request(std::uint32_t number) {
    Node& one = nodes_[number];
    one.request_planned = false;
    auto& [event, next] = one.asking.front();
    const std::uint32_t flow = number * s_.topology.readouts + next;
    ++one.outstanding;
    const Acknowledgement ack = flows_[flow].receiver.acknowledge();
    const std::uint32_t asked = event;
    if (++next == s_.topology.readouts) one.asking.pop_front();
    one.earliest = now_ + s_.traffic.request_gap_ns * kPicosecondsPerNanosecond;
    send_back(number, flow, ack, true, asked);
    plan_request(number, now_);
  }

  void send_back(std::uint32_t number, std::uint32_t flow, const Acknowledgement& ack, bool is_request,
                 std::uint32_t event) {
    Node& one = nodes_[number];
    const std::uint64_t bytes = sizes_.header + (is_request        ? s_.traffic.request_bytes
                                                 : ack.blocks == 0 ? 0
                                                                   : 4 + 8 * ack.blocks);
    one.card_free = std::max(now_, one.card_free) + out_.of(bytes);
    PacketCount& count = is_request ? outcome_.request : outcome_.ack;
    ++count.sent;
    count.sent_bytes += bytes;
    plan(one.card_free + way_back_, at_readout, flow, [this, flow, ack, is_request, event, bytes] {
      PacketCount& arrived = is_request ? outcome_.request : outcome_.ack;
      ++arrived.delivered;
      arrived.delivered_bytes += bytes;
      flows_[flow].sender.acknowledge(tcp_, now_, ack, runs_);
      send(flow);
      if (!is_request) return;
      const std::uint32_t from = flow % s_.topology.readouts;
      if (s_.traffic.readout_service_hz == 0 && s_.traffic.readout_response_ns == 0 && s_.traffic.readout_jitter_ns == 0) {
        answer(flow, event);
        return;
      }
      const double hz = s_.traffic.readout_service_hz;
      const auto interval =
          hz > 0 ? static_cast<Picoseconds>(std::llround(static_cast<double>(kPicosecondsPerSecond) / hz)) : 0;
      service_free_[from] = std::max(now_, service_free_[from]) + interval;
      Picoseconds time = service_free_[from] + s_.traffic.readout_response_ns * kPicosecondsPerNanosecond;
      if (s_.traffic.readout_jitter_ns != 0)
        time += jitter_[from].below(s_.traffic.readout_jitter_ns * kPicosecondsPerNanosecond + 1);
      last_answer_[from] = std::max(last_answer_[from], time);
      plan(last_answer_[from], at_readout, std::uint64_t{1} << 32 | flow, [this, flow, event] { answer(flow, event); });
    });
  }

  void answer(std::uint32_t flow, std::uint32_t event) {
    const std::uint32_t from = flow % s_.topology.readouts;
    const std::uint64_t all = built_[event].bytes;
    const auto bytes = static_cast<std::uint32_t>(all / s_.topology.readouts + (from < all % s_.topology.readouts ? 1 : 0));
    const std::uint32_t segments = (bytes + sizes_.segment - 1) / sizes_.segment;
    Flow& one = flows_[flow];
    one.fragments.push_back({one.sender.written() + segments, event, bytes - (segments - 1) * sizes_.segment});
    one.sender.write(tcp_, now_, segments, runs_);
    send(flow);
  }

  /// Passes segments to the readout's card one by one, and watches the sender's deadline.
  void send(std::uint32_t flow) {
    Flow& one = flows_[flow];
    const std::uint32_t from = flow % s_.topology.readouts;
    for (const SegmentRun& run : runs_) {
      for (std::uint32_t number = run.first; number != run.first + run.count; ++number) {
        std::uint32_t payload = sizes_.segment;
        for (const Fragment& fragment : one.fragments) {
          if (number + 1 == fragment.end) payload = fragment.last_payload;
        }
        card_free_[from] = std::max(now_, card_free_[from]) + card_.of(payload + sizes_.header);
        ++outcome_.data.sent;
        outcome_.data.sent_bytes += payload + sizes_.header;
        const DataPacket packet{flow, number, payload};
        plan(card_free_[from] + propagation_, at_core, from, [this, packet] { into_core(packet); });
      }
    }
    runs_.clear();
    const Picoseconds deadline = one.sender.deadline();
    if (deadline == kNever) return;
    plan(deadline, at_readout, std::uint64_t{2} << 32 | flow, [this, flow, deadline] {
      if (flows_[flow].sender.deadline() != deadline) return;
      flows_[flow].sender.expire(tcp_, now_, runs_);
      send(flow);
    });
  }

  void into_core(const DataPacket& packet) {
    const std::uint32_t to = packet.flow / s_.topology.readouts;
    const std::uint32_t input = uplink_count_ == 1 ? 0 : hash_to_uplink(packet.flow, uplink_count_, s_.seed);
    const std::uint32_t number = to / per_rack_ * uplink_count_ + input;
    uplink_free_[number] = std::max(now_, uplink_free_[number]) + uplink_.of(packet.payload + sizes_.header);
    plan(uplink_free_[number], at_switch, number, [this, packet, input] { into_switch(packet, input); });
  }

  // The switch's memory, added up.

  /// The part of a stored packet that is still in memory.
  Occupancy left(const Stored& one) const {
    if (one.departure <= now_) return {};
    if (one.start >= now_) return one.bytes;
    const Picoseconds whole = one.departure - one.start;
    const Picoseconds sent = now_ - one.start;
    const auto rest = [&](std::uint64_t of) { return of - (of * sent + whole - 1) / whole; };
    return {rest(one.bytes.frames), rest(one.bytes.payload), rest(one.bytes.cells)};
  }

  struct Filled {
    std::uint64_t cells = 0;
    std::uint64_t time = 0;
    std::uint64_t frames = 0;
  };
  Filled filled(const Node& one) const {
    Filled sum;
    for (const Stored& stored : one.stored) {
      const Occupancy rest = left(stored);
      sum.cells += rest.cells;
      sum.frames += rest.frames;
      if (stored.departure > now_) sum.time += std::min(stored.departure - now_, stored.departure - stored.start);
    }
    for (const auto& queue : one.waiting) {
      for (const auto& [packet, bytes] : queue) {
        sum.cells += bytes.cells;
        sum.frames += bytes.frames;
      }
    }
    return sum;
  }

  void into_switch(const DataPacket& packet, std::uint32_t input) {
    const std::uint32_t to = packet.flow / s_.topology.readouts;
    const std::uint32_t rack = to / per_rack_;
    const SwitchBuffer& buffer = s_.buffer;
    const bool deep = buffer.virtual_output_queues;
    const Occupancy bytes = sizes_.of(1, packet.payload);
    const PacketWord word = PacketWord::of(packet.flow, packet.number, packet.payload);
    const std::uint64_t dedicated = buffer.shared_bytes ? buffer.dedicated_bytes_per_port : 0;
    const auto shared_part = [&](std::uint64_t used) { return used > dedicated ? used - dedicated : 0; };
    const bool by_time = !deep && buffer.cell_bytes == 0 && dedicated == 0;
    std::uint64_t shared = 0;
    std::uint64_t time = 0;
    for (std::uint32_t other = rack * per_rack_; other < (rack + 1) * per_rack_; ++other) {
      const Filled there = filled(nodes_[other]);
      shared += shared_part(there.cells);
      time += there.time;
    }
    if (by_time) shared = out_.bytes_in(time);
    Node& one = nodes_[to];
    const std::uint64_t used = by_time ? out_.bytes_in(filled(one).time) : filled(one).cells;
    std::uint64_t limited = used;
    if (deep) {
      limited = 0;
      for (const auto& waiting : one.waiting[input]) limited += waiting.second.cells;
    }
    std::uint64_t* dropped = nullptr;
    if (limited + bytes.cells > buffer.port_limit_bytes.value_or(UINT64_MAX)) {
      dropped = &outcome_.drops.port_limit;
    } else if (buffer.shared_bytes && shared_part(used + bytes.cells) > 0) {
      const std::uint64_t more = shared_part(used + bytes.cells) - shared_part(used);
      if (shared + more > *buffer.shared_bytes) {
        dropped = &outcome_.drops.pool_full;
      } else if (buffer.dynamic_threshold != 0) {
        const auto alpha = static_cast<std::uint64_t>(buffer.dynamic_threshold * 1048576);
        if (shared_part(used + bytes.cells) > ((*buffer.shared_bytes - shared) * alpha) >> 20) {
          dropped = &outcome_.drops.threshold;
        }
      }
    }
    if (dropped != nullptr) {
      ++*dropped;
      ++outcome_.data.dropped;
      outcome_.data.dropped_bytes += bytes.frames;
      mix(rack_hash_[rack], now_ ^ word.bits);
      return;
    }
    if (deep) {
      one.waiting[input].push_back({packet, bytes});
      plan_start(to);
    } else {
      const bool cut_through = out_.of(1 << 20) >= uplink_.of(1 << 20);
      const Picoseconds begin = std::max(one.port_free, cut_through ? now_ - uplink_.of(bytes.frames) : now_);
      leave(to, begin, packet, bytes);
    }
    std::uint64_t frames = 0;
    std::uint64_t cells = 0;
    time = 0;
    for (std::uint32_t other = rack * per_rack_; other < (rack + 1) * per_rack_; ++other) {
      const Filled there = filled(nodes_[other]);
      frames += there.frames;
      cells += there.cells;
      time += there.time;
    }
    if (!deep) frames = out_.bytes_in(time);
    maximum_[rack].frames = std::max(maximum_[rack].frames, frames);
    maximum_[rack].cells = std::max(maximum_[rack].cells, buffer.cell_bytes == 0 ? frames : cells);
  }

  void leave(std::uint32_t to, Picoseconds begin, const DataPacket& packet, const Occupancy& bytes) {
    Node& one = nodes_[to];
    one.port_free = begin + out_.of(bytes.frames);
    one.stored.push_back({begin, one.port_free, bytes});
    while (!one.stored.empty() && one.stored.front().departure <= now_) one.stored.pop_front();
    plan(one.port_free, at_node, std::uint64_t{2} << 60 | to, [this, to, packet] { deliver(to, packet); });
  }

  void plan_start(std::uint32_t to) {
    Node& one = nodes_[to];
    if (one.start_planned) return;
    one.start_planned = true;
    plan(std::max(now_, one.port_free), at_port, to, [this, to] {
      Node& sending = nodes_[to];
      sending.start_planned = false;
      while (sending.waiting[sending.turn].empty()) sending.turn = (sending.turn + 1) % uplink_count_;
      const auto [packet, bytes] = sending.waiting[sending.turn].front();
      sending.waiting[sending.turn].pop_front();
      sending.turn = (sending.turn + 1) % uplink_count_;
      leave(to, now_, packet, bytes);
      for (const auto& queue : sending.waiting) {
        if (!queue.empty()) plan_start(to);
      }
    });
  }

  // Nodes

  void deliver(std::uint32_t to, const DataPacket& packet) {
    Flow& flow = flows_[packet.flow];
    Node& one = nodes_[to];
    mix(one.hash, now_ ^ PacketWord::of(packet.flow, packet.number, packet.payload).bits);
    ++outcome_.data.delivered;
    outcome_.data.delivered_bytes += packet.payload + sizes_.header;
    Acknowledgement ack;
    if (flow.receiver.receive(tcp_, now_, packet.number, 1, ack) > 0) send_back(to, packet.flow, ack, false, 0);
    if (const Picoseconds deadline = flow.receiver.deadline(); deadline != kNever) {
      plan(deadline, at_node, std::uint64_t{1} << 60 | packet.flow, [this, to, deadline, number = packet.flow] {
        if (flows_[number].receiver.deadline() != deadline) return;
        send_back(to, number, flows_[number].receiver.acknowledge(), false, 0);
      });
    }
    while (flow.received < flow.fragments.size() && !before(flow.receiver.next(), flow.fragments[flow.received].end)) {
      Built& event = built_[flow.fragments[flow.received++].event];
      --one.outstanding;
      plan_request(to, now_);
      if (--event.remaining > 0) continue;
      ++outcome_.events_completed;
      outcome_.latency_max_ns = std::max(outcome_.latency_max_ns, (now_ - event.assigned) / kPicosecondsPerNanosecond);
      const double hz = s_.traffic.node_service_hz;
      const auto interval =
          hz > 0 ? static_cast<Picoseconds>(std::llround(static_cast<double>(kPicosecondsPerSecond) / hz)) : 0;
      one.service_free = std::max(now_, one.service_free) + interval;
      const Picoseconds done =
          one.service_free + s_.traffic.processing_ns * kPicosecondsPerNanosecond + way_back_ + out_.of(sizes_.header);
      const std::uint32_t rack = to / per_rack_;
      supervisors_[rack].finish(done, to % per_rack_);
      plan(done, at_supervisor, rack, [] {});
      plan_supervisor(rack);
    }
  }

  const Scenario s_;
  const TcpParameters tcp_;
  const PacketSizes sizes_;
  const std::uint32_t uplink_count_;
  const std::uint32_t per_rack_;
  const LinkTime card_;
  const LinkTime uplink_;
  const LinkTime out_;
  const Picoseconds end_;
  const Picoseconds propagation_;
  const Picoseconds way_back_;
  std::vector<Flow> flows_;
  std::vector<Picoseconds> card_free_;
  std::vector<Picoseconds> service_free_;
  std::vector<Picoseconds> last_answer_;
  std::vector<Random> jitter_;
  std::vector<Picoseconds> uplink_free_;
  std::vector<Node> nodes_;
  std::vector<RackSupervisor> supervisors_;
  std::vector<Built> built_;
  std::vector<std::uint64_t> rack_hash_;
  std::vector<Occupancy> maximum_;
  SegmentRuns runs_;
  std::priority_queue<Event> events_;
  std::uint64_t order_ = 0;
  Picoseconds now_ = 0;
  Outcome outcome_;
};

}  // namespace rodeo::network
