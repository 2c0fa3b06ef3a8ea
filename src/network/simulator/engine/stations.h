// The stations of packets: readouts with their cards, uplinks, racks with their switches, filter nodes; and the events under
// way.
#pragma once

#include <cstdint>

#include "network/simulator/packet.h"
#include "network/simulator/rack_supervisor.h"
#include "network/simulator/random.h"
#include "network/simulator/ring.h"
#include "network/simulator/scenario.h"
#include "network/simulator/switch_memory.h"
#include "network/simulator/tcp_sender.h"
#include "network/simulator/time.h"

namespace rodeo::network {

/// Segments that wait for a readout's card.
struct CardRun {
  Picoseconds departure;  ///< departure of the first segment's last bit; of the last segment's if they go as a train
  std::uint32_t flow;
  std::uint32_t number;
  std::uint32_t count;
  std::uint32_t last_payload;
  bool whole;  ///< the segments go as a train
};

/// A fragment that a readout is preparing.
struct Answer {
  Picoseconds time;
  std::uint32_t flow;
  std::uint32_t event;
};

struct Readout {
  Ring<CardRun> card;
  Picoseconds card_free = 0;
  Ring<Answer> answers;
  Picoseconds service_free = 0;
  Picoseconds last_answer = 0;
  Random jitter{0, 0};
};

/// A physical link from the core to a rack.
template <bool kTrain>
struct Uplink {
  Ring<Packet<kTrain>> queue;
  Picoseconds free = 0;
};

/// A switch, and the supervisor that gives events to the nodes behind it.
template <bool kTrain>
struct Rack {
  Rack(const Scenario& scenario, const PacketSizes& sizes, LinkTime in, LinkTime out, std::uint32_t number)
      : supervisor(scenario.topology, scenario.traffic, number, scenario.seed),
        memory(scenario.buffer, sizes, in, out, scenario.topology.nodes / scenario.topology.racks,
               scenario.topology.uplink_sharing == UplinkSharing::ideal ? 1 : scenario.topology.uplinks) {}

  RackSupervisor supervisor;
  SwitchMemory<kTrain> memory;
  std::uint64_t hash = 0;
  std::uint64_t in_network = 0;  ///< bytes under way to all its nodes
  std::uint64_t drops_reported = 0;
  Picoseconds reported = 0;
};

/// An event of which a node still has to request fragments.
struct Pending {
  Picoseconds time;
  std::uint32_t event;
  std::uint32_t next_readout;
};

/// A filter node.
struct Node {
  Ring<Pending> pending;  ///< events whose requests are not all sent
  Ring<Returning> back;
  Ring<Acknowledgement> blocks;
  Picoseconds card_free = 0;
  Picoseconds request_time = kNever;
  Picoseconds request_earliest = 0;
  Picoseconds service_free = 0;
  std::uint32_t outstanding = 0;  ///< fragments requested and not received
  std::uint64_t hash = 0;
  std::uint64_t in_network = 0;  ///< bytes (cells) under way to the node, if trains need the number
  Random processing;
};

struct Event {
  std::uint64_t bytes;
  Picoseconds assigned;
  std::uint32_t remaining;
  std::uint32_t node;
  bool lost;
  Picoseconds begun = 0;  ///< with trains: time at which the first one began to leave the switch
};

}  // namespace rodeo::network
