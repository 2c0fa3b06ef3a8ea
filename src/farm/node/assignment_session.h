// A node's side of the protocol with its supervisor (docs/reference/formats/assignments.md): sessions, numbers, and
// decisions that the node keeps until they are safe. Pure: no network, no clock.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "formats/assignment.h"

namespace rodeo::farm {

/// One thread.
class AssignmentSession {
 public:
  AssignmentSession(std::string node, std::uint64_t instance) : node_(std::move(node)), instance_(instance) {}

  bool open() const { return open_; }
  /// Closes the session, because the supervisor has gone or numbers are out of sequence. HELLO is next.
  void close() { open_ = false; }

  /// Makes a HELLO with all that the node holds, and its free slots.
  formats::NodeHello make_hello(std::uint32_t slots, std::vector<formats::AssignedEvent> undecided);
  /// Applies the answer to HELLO.
  void on_welcome(const formats::NodeWelcome& welcome);

  /// Adds the decision of an event that belongs to this node. Keeps the decision until it is safe.
  void decide(const formats::EventDecision& decision) { decisions_.push_back(decision); }
  std::size_t unsafe_decisions() const { return decisions_.size(); }

  /// True if there are decisions or room to report.
  bool has_unsent(std::uint32_t slots) const;
  /// Makes a WORK; each decision is sent once.
  formats::NodeWork make_work(std::uint32_t slots);
  /// Applies an answer to WORK. False: its numbers do not follow. The session is then closed, and the events in the answer
  /// do not belong to this node.
  bool on_orders(const formats::NodeOrders& orders);

 private:
  std::string node_;
  std::uint64_t instance_;
  std::uint64_t session_ = 0;  // The last session; 0: none yet.
  bool open_ = false;
  std::deque<formats::EventDecision> decisions_;  // Decisions that are not safe.
  std::uint64_t first_ = 1;                       // Number of decisions_.front() in this session.
  std::uint64_t sent_ = 0;                        // Number of the last decision that was sent.
  std::uint64_t assigned_ = 0;                    // Number of events since HELLO.
  std::uint64_t granted_ = 0;
  std::uint64_t hello_decisions_ = 0;  // Decisions in the last HELLO.
  std::uint64_t hello_slots_ = 0;
};

}  // namespace rodeo::farm
