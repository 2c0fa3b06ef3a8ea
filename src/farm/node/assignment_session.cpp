#include "farm/node/assignment_session.h"

#include <algorithm>

namespace rodeo::farm {

formats::NodeHello AssignmentSession::make_hello(std::uint32_t slots, std::vector<formats::AssignedEvent> undecided) {
  open_ = false;
  hello_decisions_ = decisions_.size();
  hello_slots_ = slots;
  // The supervisor knows the numbers of the last session, and so which decisions are safe already.
  return {.instance = instance_,
          .slots = slots,
          .session = session_,
          .first = session_ == 0 ? 0 : first_,
          .name = node_,
          .decisions = {decisions_.begin(), decisions_.end()},
          .events = std::move(undecided)};
}

/// Begins the numbers again, with the decisions of HELLO.
void AssignmentSession::on_welcome(const formats::NodeWelcome& welcome) {
  session_ = welcome.session;
  open_ = true;
  first_ = 1;
  sent_ = hello_decisions_;
  assigned_ = 0;
  granted_ = hello_slots_;
}

bool AssignmentSession::has_unsent(std::uint32_t slots) const {
  return first_ + decisions_.size() - 1 > sent_ || assigned_ + slots > granted_;
}

formats::NodeWork AssignmentSession::make_work(std::uint32_t slots) {
  granted_ = std::max(granted_, assigned_ + slots);
  formats::NodeWork work{.session = session_, .granted = granted_, .first = sent_ + 1};
  const std::uint64_t last = first_ + decisions_.size() - 1;
  while (sent_ < last && work.decisions.size() < formats::kMostEventsAtOnce) {
    work.decisions.push_back(decisions_[sent_ + 1 - first_]);
    ++sent_;
  }
  return work;
}

bool AssignmentSession::on_orders(const formats::NodeOrders& orders) {
  const bool follows = orders.events.empty() || orders.first == assigned_ + 1;
  const bool possible = orders.safe <= sent_ && assigned_ + orders.events.size() <= granted_;
  if (!follows || !possible) {
    close();
    return false;
  }
  while (first_ <= orders.safe) {
    decisions_.pop_front();
    ++first_;
  }
  assigned_ += orders.events.size();
  return true;
}

}  // namespace rodeo::farm
