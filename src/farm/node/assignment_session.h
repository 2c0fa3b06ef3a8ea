// A node's side of the protocol with its supervisor (docs/formats/assignments.md): sessions, numbers, and decisions that the
// node keeps until they are safe. Pure: no network, no clock.
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
  /// The supervisor has gone, or numbers are out of sequence: HELLO is next.
  void close() { open_ = false; }

  /// Makes a HELLO: all that the node holds, and its free slots.
  formats::NodeHello hello(std::uint32_t slots, std::vector<formats::AssignedEvent> undecided);
  /// Takes the answer to HELLO.
  void welcome(const formats::NodeWelcome& welcome);

  /// Adds the decision of an event that is the node's. The decision is kept until it is safe.
  void decide(const formats::EventDecision& decision) { decisions_.push_back(decision); }
  std::size_t unsafe() const { return decisions_.size(); }

  /// True if there is something new to send: decisions, or room.
  bool news(std::uint32_t slots) const;
  /// Makes a WORK; each decision is sent once.
  formats::NodeWork work(std::uint32_t slots);
  /// Takes an answer to WORK. False: its numbers do not follow. The session is then closed; its events are not the node's.
  bool orders(const formats::NodeOrders& orders);

 private:
  std::string node_;
  std::uint64_t instance_;
  std::uint64_t session_ = 0;  // The last one; 0: none yet.
  bool open_ = false;
  std::deque<formats::EventDecision> decisions_;  // Decisions that are not safe.
  std::uint64_t first_ = 1;                       // Number of the first of them in this session.
  std::uint64_t said_ = 0;                        // Number of the last decision that was sent.
  std::uint64_t assigned_ = 0;                    // Events since HELLO.
  std::uint64_t granted_ = 0;
  std::uint64_t greeted_decisions_ = 0;  // Decisions in the last HELLO.
  std::uint64_t greeted_slots_ = 0;
};

}  // namespace rodeo::farm
