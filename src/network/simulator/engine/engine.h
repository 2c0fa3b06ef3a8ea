// The simulation itself: readouts, links, switches and filter nodes, advanced together through short steps of virtual time.
//
// An action of a filter node reaches a readout after the time of the way back at the earliest. So virtual time advances in
// steps of that length. Within a step the stages run one after the other: each stage handles all its work in order of time
// and passes its results to the next stage:
//
//   supervisors ──► readouts (TCP senders, cards) ──► core (merge, uplinks) ──► switches (memory) ──► nodes (receivers)
//        ▲                  ▲                                                                           │
//        └── next step   ───┴───────────────── acknowledgements, requests, events done ◄────────────────┘
//
// No global event queue is needed, because only the order within each card, uplink, switch and node matters, and each stage
// keeps the order of time.
//
// The functions of a stage are in one file, which instantiates them at its end for packets and for trains of packets.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "network/simulator/engine/connections.h"
#include "network/simulator/engine/stations.h"
#include "network/simulator/engine/tasks.h"
#include "network/simulator/heads.h"
#include "network/simulator/latencies.h"
#include "network/simulator/simulate.h"
#include "network/simulator/timer_wheel.h"

namespace rodeo::network {

template <bool kTrain>
class SimulationEngine {
 public:
  /// The scenario must have passed check().
  explicit SimulationEngine(const Scenario& scenario, const Observers& observers);

  /// Runs to this time or to the end of the duration. Ends earlier if the observer stops the run, and, with trains, as soon
  /// as they are too coarse.
  void run(Picoseconds until);
  bool stopped() const { return stopped_; }
  Picoseconds now() const { return end_; }
  Outcome outcome();
  void visit_flows(const std::function<void(const FlowRecord&)>& visit) const;

  // Trains: all segments that a connection sends at once are one object, and steps are longer. The result is right while the
  // times of the acknowledgements of single packets have no effect.

  /// Switches to trains, or to single packets. The engine starts with trains if kTrain is set.
  void go(bool in_trains);
  bool in_trains() const { return in_trains_; }
  /// True if trains are too coarse: since go() the times of single packets have had an effect.
  bool disturbed() const { return disturbed_; }
  /// The last time when single packets had an effect: a connection waited for its window or its timer, a node for its
  /// credits, or a packet was lost.
  Picoseconds mattered() const { return mattered_; }
  /// True if no connection waits or retransmits.
  bool calm() const;
  /// The time at which the oldest incomplete event was assigned.
  Picoseconds oldest_assigned() const;

 private:
  using Item = Packet<kTrain>;
  using Rack = network::Rack<kTrain>;
  using Uplink = network::Uplink<kTrain>;

  std::uint32_t readout_of(std::uint32_t flow) const { return flow % readouts_count_; }
  std::uint32_t node_of(std::uint32_t flow) const { return flow_node_[flow]; }
  std::uint32_t rack_of(std::uint32_t node) const { return node / nodes_per_rack_; }
  std::uint64_t ack_bytes(std::uint32_t blocks) const { return sizes_.header + (blocks == 0 ? 0 : 4 + 8 * blocks); }

  // In setup.cpp:
  std::uint32_t largest_train(std::uint64_t packets) const;

  // In steps.cpp:
  void step(Picoseconds begin);
  void choose_steps();
  Picoseconds next_happening() const;

  // In requests.cpp:
  void run_supervisors();
  void assign(std::uint32_t rack, Picoseconds time, std::uint32_t node, std::uint64_t bytes);
  void plan_request(std::uint32_t node, Picoseconds earliest);
  void send_requests(std::uint32_t node);
  void run_requests();
  void ask_in_long_step(std::uint32_t node);

  // In readouts.cpp:
  void run_readouts();
  void add_task(const Task& task);
  void do_task(const Task& task);
  void on_returning(Picoseconds now, const Returning& one, const Acknowledgement& ack);
  void on_request(Picoseconds now, std::uint32_t flow, std::uint32_t event);
  std::uint32_t fragment_bytes(const Event& event, std::uint32_t readout) const;
  void answer(Picoseconds now, std::uint32_t flow, std::uint32_t event);
  void after_sender(std::uint32_t flow);

  // In cards.cpp:
  bool sends_trains(std::uint32_t node) const;
  void hand_to_card(Picoseconds now, std::uint32_t flow);
  void train_to_card(Picoseconds now, std::uint32_t flow, const SegmentRun& run, std::uint32_t last_payload);

  // In core.cpp:
  void run_core();
  void into_uplink(Picoseconds arrival, std::uint32_t flow, PacketWord word, std::uint32_t count);

  // In switches.cpp:
  void run_switches();
  void into_switch(std::uint32_t rack, std::uint32_t input, const Item& item);
  void offer(std::uint32_t rack, std::uint32_t input, Picoseconds now, PacketWord word, std::uint32_t count, bool& split);
  void report_occupancy(std::uint32_t rack, Picoseconds until);

  // In nodes.cpp:
  void run_nodes();
  void run_node(std::uint32_t node);
  void deliver(std::uint32_t node, const Item& item);
  void finish_fragments(std::uint32_t node, Picoseconds now, std::uint32_t flow);
  void acknowledge_train(Picoseconds now, Picoseconds begun, std::uint32_t flow, std::uint32_t cumulative,
                         std::uint32_t count);
  void send_back(std::uint32_t node, Picoseconds now, std::uint32_t flow, const Acknowledgement& ack, std::uint32_t count,
                 std::uint32_t event);

  void note(Picoseconds now) {
    mattered_ = std::max(mattered_, now);
    disturbed_ = true;
  }
  void leave_network(std::uint32_t node, std::uint64_t cells) {
    if (!count_in_network_) return;
    nodes_[node].in_network -= cells;
    racks_[rack_of(node)].in_network -= cells;
  }
  /// Prefetches the memory of the next connection, which is known long in advance.
  void fetch_receiver(std::uint32_t flow) const { __builtin_prefetch(&receiving_[flow], 1); }
  void fetch_sender(std::uint32_t flow) const {
    const char* const sender = reinterpret_cast<const char*>(&flows_[flow]);
    __builtin_prefetch(sender, 1);
    __builtin_prefetch(sender + 64, 1);
    __builtin_prefetch(sender + 128, 1);
    // A train needs nearly all of this memory, a packet does not.
    if (kTrain) {
      for (std::size_t line = 192; line < sizeof(Flow); line += 64) __builtin_prefetch(sender + line, 1);
    }
  }
  void fetch_fragments(std::uint32_t flow) const { __builtin_prefetch(&flows_[flow].fragments, 1); }

  const Scenario scenario_;
  const Observers& observers_;
  const TcpParameters tcp_;
  const PacketSizes sizes_;
  const std::uint32_t readouts_count_;
  const std::uint32_t nodes_count_;
  const std::uint32_t nodes_per_rack_;
  const std::uint32_t uplinks_per_rack_;
  const LinkTime card_link_;
  const LinkTime uplink_link_;
  const LinkTime node_link_;
  const Picoseconds propagation_;
  const Picoseconds end_of_run_;
  Picoseconds way_back_ = 0;  ///< time from the node's card to the readout, for the smallest packet
  Picoseconds step_ = 0;
  Picoseconds long_step_ = 0;  ///< length of a step with trains, if nothing that comes back has an effect within the step
  std::uint32_t piece_ = 0;    ///< largest train, in segments
  Picoseconds doubt_ = 0;      ///< error, with trains, of the time at which an event ends
  bool in_trains_ = kTrain;
  bool long_steps_ = false;
  bool stopped_ = false;
  bool disturbed_ = false;  ///< single packets have had an effect since go()
  Picoseconds mattered_ = 0;
  Picoseconds until_ = 0;
  std::chrono::steady_clock::time_point last_talk_ = std::chrono::steady_clock::now();
  bool count_in_network_ = false;  ///< true with trains, and with a buffer that can be full
  std::uint64_t event_cells_ = 0;
  Picoseconds card_full_ = 0;  ///< time of a full segment on a readout's link
  Picoseconds uplink_full_ = 0;
  Picoseconds request_time_ = 0;  ///< time of a request on a node's link
  Picoseconds answer_interval_ = 0;
  Picoseconds node_interval_ = 0;

  Picoseconds begin_ = 0;  ///< begin of this step
  Picoseconds end_ = 0;
  std::uint64_t step_number_ = 1;

  // The connections; those of a node are adjacent.
  std::vector<Flow> flows_;
  std::vector<Receiving> receiving_;
  std::vector<std::uint32_t> flow_node_;
  std::vector<std::uint32_t> flow_uplink_;
  std::vector<Readout> readouts_;
  std::vector<Uplink> uplinks_;
  std::vector<Rack> racks_;
  std::vector<Node> nodes_;
  std::vector<Event> events_;
  std::vector<std::uint32_t> free_events_;

  Heads card_head_;
  Heads answer_head_;
  Heads uplink_head_;
  Heads node_head_;
  Heads back_head_;
  Heads request_head_;  ///< requests of the nodes, in long steps

  TimerWheel sender_timers_;
  TimerWheel receiver_timers_;
  std::vector<Task> tasks_;
  std::vector<Returned> returned_;
  std::size_t next_task_ = 0;
  std::vector<DelayedAck> delayed_;
  SegmentRuns runs_;
  std::vector<std::uint64_t> tree_;
  std::vector<std::uint32_t> active_;
  Picoseconds next_report_ = kNever;

  PacketCount data_;
  PacketCount ack_;
  PacketCount request_;
  std::uint64_t completed_ = 0;
  Picoseconds first_completed_ = 0;
  Latencies latency_;
};

}  // namespace rodeo::network
