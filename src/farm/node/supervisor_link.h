// A filter node's connection to its supervisor: when to send HELLO, and the exchange of WORK
// (docs/reference/formats/assignments.md).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "farm/node/assignment_session.h"
#include "farm/node/node_events.h"
#include "farm/node/settings.h"
#include "transport/requester.h"

namespace rodeo::farm {

/// One thread, the node's.
class SupervisorLink {
 public:
  using Requester = transport::Requester;

  SupervisorLink(const NodeSettings& settings, NodeEvents& events, Requester& requester);

  bool open() const { return session_.open(); }
  bool connected() const { return session_.open() && requester_.connected(service_); }
  const std::string& trouble() const { return requester_.trouble(service_); }

  /// True if HELLO must be sent now: there is no session, or its connection has ended.
  bool needs_hello(std::uint64_t now_ns);
  void send_hello(std::uint32_t free_slots, std::uint64_t now_ns);
  /// Sends decisions and room if there is something new, or if the supervisor has no WORK to answer.
  void send_work(std::uint32_t free_slots, std::uint64_t now_ns);

  enum class Received : std::uint8_t { other_request, nothing, welcome, orders };
  /// Reads a reply, and returns what it brings. After an error the node must end.
  Result<Received> on_reply(Requester::Reply& reply, std::uint64_t now_ns);
  /// The last welcome. The session is open after accept_welcome().
  const formats::NodeWelcome& welcome() const { return welcome_; }
  const formats::NodeOrders& orders() const { return orders_; }
  void accept_welcome();

  void decide(const formats::EventDecision& decision) { session_.decide(decision); }
  std::size_t unsafe_decisions() const { return session_.unsafe_decisions(); }

 private:
  Result<Received> read_welcome(Requester::Reply& reply, std::uint64_t now_ns);
  Received read_orders(Requester::Reply& reply, std::uint64_t now_ns);

  const NodeSettings& settings_;
  NodeEvents& events_;
  Requester& requester_;
  Requester::Service service_ = 0;
  AssignmentSession session_;
  std::map<Requester::Request, std::uint32_t> work_requests_;  // Number of the HELLO before each WORK under way.
  std::optional<Requester::Request> hello_request_;            // The HELLO under way.
  std::uint32_t hellos_ = 0;
  std::uint32_t works_under_way_ = 0;  // WORKs since the last HELLO.
  std::uint64_t hello_connections_ = 0;
  std::uint64_t hello_at_ns_ = 0;
  std::chrono::nanoseconds patience_ = std::chrono::milliseconds{500};
  std::vector<std::byte> hello_;
  std::vector<std::span<const std::byte>> hello_parts_;
  std::vector<std::byte> bytes_;
  std::vector<std::byte> scratch_;
  formats::NodeWelcome welcome_;
  formats::NodeOrders orders_;
};

}  // namespace rodeo::farm
