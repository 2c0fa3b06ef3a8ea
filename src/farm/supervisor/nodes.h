// The supervisor's view of filter nodes: the service `assignments`, sessions, waiting requests, and nodes that have gone.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/counters.h"
#include "base/named_counters.h"
#include "farm/supervisor/events.h"
#include "farm/supervisor/settings.h"
#include "formats/assignment.h"
#include "transport/replier.h"

namespace rodeo::farm {

struct SupervisedNode {
  std::string name;
  bool connected = false;
  std::uint32_t events = 0;  ///< Undecided events of the node.
  std::uint32_t room = 0;    ///< Further events for which the node has room.
  std::uint64_t assigned = 0;
  std::uint64_t decisions = 0;
};

enum class NodesCounter : std::uint8_t { hellos, works, orders, nodes_lost, bad_messages, refused_requests, count };
inline constexpr std::array<base::CounterInfo, 6> kNodesCounters{{
    {"hellos", "requests", "Sessions of nodes that began."},
    {"works", "requests", "Requests for work that were taken."},
    {"orders", "replies", "Requests for work that were answered."},
    {"nodes_lost", "nodes", "Times that a node with events or room was away or silent for too long."},
    {"bad_messages", "requests", "Requests of nodes that could not be decoded."},
    {"refused_requests", "requests", "Requests of nodes that were refused for another reason."},
}};

/// The description of the run that nodes receive.
struct RunForNodes {
  std::uint32_t number = 0;  ///< 0: not known yet.
  std::uint32_t type = 0xf;
};

/// One thread, the one of its Replier.
class Nodes {
 public:
  /// Puts the service on the bus. Throws SetupError.
  Nodes(const SupervisorSettings& settings, Events& events);

  void set_run(RunForNodes run) { run_ = run; }
  /// Handles messages of nodes. True if there were some.
  bool poll(std::uint64_t now_ns);
  /// Assigns waiting events, and sends the answers that are due. True if an event was assigned.
  bool assign(std::uint64_t now_ns);
  /// Reports that a decision of this session is safe.
  void on_safe(std::uint32_t node, std::uint32_t session) {
    Node& one = nodes_[node];
    if (one.tag() == session) ++one.safe;
  }
  /// Assigns no more events, and sends all nodes the end of the run.
  void announce_end();
  bool all_informed() const;

  std::vector<SupervisedNode> status() const;
  std::size_t connected() const;
  std::vector<NamedCounter> counters() const;
  std::vector<std::string> take_messages() { return std::exchange(messages_, {}); }

 private:
  using Client = transport::Replier::Client;
  struct Parked {
    std::uint64_t number = 0;
    std::uint64_t since_ns = 0;
  };
  struct Node {
    std::string name;
    std::uint64_t instance = 0;
    std::optional<Client> client = {};  // Empty: the node is away.
    std::uint64_t session = 0;
    std::uint64_t heard_ns = 0;
    std::uint64_t decisions = 0;  // Number of decisions received in this session.
    std::uint64_t safe = 0;       // Number of these decisions that are safe.
    std::uint64_t sent_safe = 0;
    std::uint64_t granted = 0;   // Room that the node gave in this session.
    std::uint64_t assigned = 0;  // Number of events assigned in this session.
    std::uint64_t all_decisions = 0, all_assigned = 0;
    std::vector<formats::AssignedEvent> unsent = {};  // Events that are assigned, but not sent yet.
    std::optional<Parked> parked = {};
    std::uint64_t asked_back_ns = 0;  // Time of the last request to give events back.
    bool dirty = false;               // The node is in dirty_.
    bool lost = false;                // Its events were assigned to other nodes.
    bool end_sent = false;

    std::uint32_t tag() const { return static_cast<std::uint32_t>(session); }
  };

  void on_request(const transport::Replier::Request& request, std::uint64_t now_ns);
  void on_hello(const transport::Replier::Request& request, std::span<const std::byte> bytes, std::uint64_t now_ns);
  void on_work(const transport::Replier::Request& request, std::span<const std::byte> bytes, std::uint64_t now_ns);
  std::optional<std::uint32_t> find_or_add_node(const std::string& name);
  void begin_session(std::uint32_t number, Client client, std::uint64_t now_ns);
  void reconcile(std::uint32_t number, const formats::NodeHello& hello, std::vector<std::uint64_t>& let_go,
                 std::uint64_t now_ns);
  void answer_work(std::uint32_t number);
  bool older_events_wait_for(std::uint32_t number) const;
  void forget_parked(Client client, std::uint64_t request);
  void refuse(const transport::Replier::Request& request, formats::AssignmentRefusal why);
  void check_nodes(std::uint64_t now_ns);
  void lose_node(std::uint32_t number, std::string_view why);
  void disconnect(std::uint32_t number, std::uint64_t now_ns);
  void unassign_unsent(std::uint32_t number);
  void mark_dirty(std::uint32_t number);

  const SupervisorSettings& settings_;
  Events& events_;
  RunForNodes run_;
  transport::Replier replier_;
  std::vector<Node> nodes_;  // Indexed by the dispatcher's numbers.
  std::unordered_map<std::string, std::uint32_t> by_name_;
  std::unordered_map<Client, std::uint32_t> by_client_;
  std::vector<std::uint32_t> dirty_;  // Nodes that may need an answer.
  std::uint64_t sessions_;
  std::uint64_t checked_ns_ = 0;
  std::uint32_t next_to_check_ = 0;  // The next node to look at, modulo their number.
  bool over_ = false;
  std::vector<std::string> messages_;
  base::CounterBlock<NodesCounter> counters_;

  // These buffers are reused.
  std::vector<transport::Replier::Request> requests_;
  std::vector<transport::Replier::Dropped> dropped_;
  std::vector<std::byte> whole_;
  std::vector<std::byte> reply_;
  formats::NodeHello hello_;
  formats::NodeWork work_;
  formats::NodeOrders orders_;
};

}  // namespace rodeo::farm
