// Stand-ins for filter nodes: they take events, decide each at once, and check that no event arrives twice.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/farm/farm_meeting.h"
#include "formats/assignment.h"
#include "transport/requester.h"

namespace rodeo::bench {

struct StandInNodesSettings {
  std::filesystem::path bus;
  std::string supervisor;
  std::uint32_t first = 0;  ///< number of the first node
  std::uint32_t nodes = 1;
  std::uint32_t slots = 32;        ///< slots of each node
  std::uint32_t at_once = 16;      ///< decisions in one message, while the node has other events
  std::uint32_t accepted_of = 33;  ///< one event in this many is accepted, the others are rejected
};

/// Any number of nodes on one Requester, each with its own connection and session. For one thread.
class StandInNodes {
 public:
  StandInNodes(StandInNodesSettings settings, const FarmMeeting& meeting);

  /// True if it had work to do.
  bool poll(std::uint64_t now_ns);
  /// True if all nodes know the end of the run.
  bool over() const { return over_ == nodes_.size(); }

 private:
  struct Node {
    std::string name;
    transport::Requester::Service service = 0;
    std::uint64_t session = 0;  // 0: no session yet
    bool asked = false;         // a HELLO is under way
    std::uint32_t works = 0;    // requests under way
    std::uint64_t assigned = 0;
    std::uint64_t decided = 0;  // decisions sent
    std::uint64_t safe = 0;
    std::vector<formats::EventDecision> decisions = {};  // decisions to send
    bool over = false;
  };

  void hello(Node& node);
  void work(Node& node);
  void take(Node& node, const transport::Requester::Reply& reply);
  void orders(Node& node);

  const StandInNodesSettings settings_;
  const FarmMeeting& meeting_;
  transport::Requester requester_;
  std::vector<Node> nodes_;
  std::size_t over_ = 0;
  std::uint64_t looked_ns_ = 0;
  std::vector<transport::Requester::Reply> replies_;
  std::vector<std::byte> bytes_;
  std::vector<std::byte> whole_;
  formats::NodeOrders orders_;
};

}  // namespace rodeo::bench
