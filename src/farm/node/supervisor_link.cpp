#include "farm/node/supervisor_link.h"

#include <fmt/format.h>

#include <random>

namespace rodeo::farm {

using formats::AssignmentKind;
using formats::AssignmentRefusal;
using Outcome = transport::Requester::Outcome;

namespace {

constexpr std::uint64_t kReconnectNs = 100'000'000;

std::uint64_t random_number() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random() | 1;
}

}  // namespace

SupervisorLink::SupervisorLink(const NodeSettings& settings, NodeEvents& events, Requester& requester)
    : settings_(settings), events_(events), requester_(requester), session_(settings.name, random_number()) {
  service_ = requester_.add(settings_.supervisor);
}

bool SupervisorLink::needs_hello(std::uint64_t now_ns) {
  if (requester_.connections(service_) != hello_connections_) session_.close();
  return !session_.open() && !hello_request_ && now_ns >= hello_at_ns_ && requester_.connected(service_);
}

void SupervisorLink::send_hello(std::uint32_t free_slots, std::uint64_t now_ns) {
  std::vector<formats::AssignedEvent> undecided;
  for (const NodeEvent& event : events_.slots) {
    if (event.is_active()) undecided.push_back(event.assigned);
  }
  hello_.clear();
  formats::encode(session_.make_hello(free_slots, std::move(undecided)), hello_);
  hello_parts_.assign(1, hello_);
  hello_connections_ = requester_.connections(service_);
  ++hellos_;
  works_under_way_ = 0;
  hello_request_ = requester_.ask(service_, static_cast<std::uint16_t>(AssignmentKind::hello),
                                  transport::MessageParts(hello_parts_), std::chrono::seconds{5});
  if (!hello_request_) hello_at_ns_ = now_ns + kReconnectNs;
}

void SupervisorLink::send_work(std::uint32_t free_slots, std::uint64_t now_ns) {
  if (works_under_way_ >= 2 || (works_under_way_ == 1 && !session_.has_unsent(free_slots))) return;
  if (!requester_.connected(service_)) return;
  bytes_.clear();
  formats::encode(session_.make_work(free_slots), bytes_);
  const auto request = requester_.ask(service_, static_cast<std::uint16_t>(AssignmentKind::work), std::span(bytes_),
                                      patience_ + std::chrono::seconds{2});
  if (!request) {
    // The WORK was not sent. HELLO repeats all of it.
    session_.close();
    hello_at_ns_ = now_ns + kReconnectNs;
    return;
  }
  ++works_under_way_;
  work_requests_.emplace(*request, hellos_);
}

Result<SupervisorLink::Received> SupervisorLink::on_reply(Requester::Reply& reply, std::uint64_t now_ns) {
  if (hello_request_ == reply.request) return read_welcome(reply, now_ns);
  const auto work = work_requests_.find(reply.request);
  if (work == work_requests_.end()) return Received::other_request;
  const bool current = work->second == hellos_;
  work_requests_.erase(work);
  // An answer to a request before the last HELLO is out of date.
  return current ? read_orders(reply, now_ns) : Received::nothing;
}

Result<SupervisorLink::Received> SupervisorLink::read_welcome(Requester::Reply& reply, std::uint64_t now_ns) {
  hello_request_.reset();
  hello_at_ns_ = now_ns + kReconnectNs;
  if (reply.outcome == Outcome::refused) {
    const auto why = static_cast<AssignmentRefusal>(reply.status);
    if (why == AssignmentRefusal::bad_message || why == AssignmentRefusal::version)
      return std::unexpected(Error{"farm.other_version",
                                   fmt::format("the supervisor {} does not understand this node", settings_.supervisor), "",
                                   "both must be of the same version of Rodeo"});
    return Received::nothing;
  }
  if (reply.outcome != Outcome::answered) return Received::nothing;
  welcome_ = {};
  if (!formats::decode(reply.message.in_one_piece(scratch_), welcome_) || welcome_.version != formats::kAssignmentsVersion) {
    events_.counters.add(NodeCounter::bad_orders);
    return std::unexpected(Error{"farm.other_version",
                                 fmt::format("the answer of the supervisor {} cannot be read", settings_.supervisor), "",
                                 "both must be of the same version of Rodeo"});
  }
  return Received::welcome;
}

void SupervisorLink::accept_welcome() {
  patience_ = std::chrono::nanoseconds(welcome_.patience_ns);
  session_.on_welcome(welcome_);
}

SupervisorLink::Received SupervisorLink::read_orders(Requester::Reply& reply, std::uint64_t now_ns) {
  --works_under_way_;
  if (!session_.open()) return Received::nothing;
  if (reply.outcome != Outcome::answered) {
    session_.close();
    return Received::nothing;
  }
  if (!formats::decode(reply.message.in_one_piece(scratch_), orders_) || !session_.on_orders(orders_)) {
    events_.counters.add(NodeCounter::bad_orders);
    session_.close();
    hello_at_ns_ = now_ns + kReconnectNs;
    return Received::nothing;
  }
  return Received::orders;
}

}  // namespace rodeo::farm
