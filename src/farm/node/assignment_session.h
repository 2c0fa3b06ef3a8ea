// A node's side of what it and its supervisor say to each other (docs/formats/assignments.md): sessions, numbers, decisions that are kept until they are
// safe. Pure: no network, no clock.
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
  /// The supervisor has gone, or numbers do not follow: HELLO is next.
  void close() { open_ = false; }

  /// What is held, and room for more besides.
  formats::NodeHello hello(std::uint32_t slots, std::vector<formats::AssignedEvent> undecided);
  /// Its answer.
  void welcome(const formats::NodeWelcome& welcome);

  /// Of an event that is the node's. It is kept until it is safe.
  void decide(const formats::EventDecision& decision) { decisions_.push_back(decision); }
  std::size_t unsafe() const { return decisions_.size(); }

  /// Whether there is something new to say: decisions, or room.
  bool news(std::uint32_t slots) const;
  /// Says it; each decision goes once.
  formats::NodeWork work(std::uint32_t slots);
  /// An answer. False: its numbers do not follow; close() has been called, and its events are not the node's.
  bool orders(const formats::NodeOrders& orders);

 private:
  std::string node_;
  std::uint64_t instance_;
  std::uint64_t session_ = 0;  // the last that there was
  bool open_ = false;
  std::deque<formats::EventDecision> decisions_;  // that are not safe
  std::uint64_t first_ = 1;                       // number of the first of them in this session
  std::uint64_t said_ = 0;                        // number of the last that was said
  std::uint64_t assigned_ = 0;                    // events since HELLO
  std::uint64_t granted_ = 0;
  std::uint64_t greeted_decisions_ = 0;  // that the last HELLO had
  std::uint64_t greeted_slots_ = 0;
};

}  // namespace rodeo::farm
