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

bool SupervisorLink::greets(std::uint64_t now_ns) {
  if (requester_.connections(service_) != greeted_connections_) session_.close();
  return !session_.open() && !greeting_ && now_ns >= hello_at_ns_ && requester_.connected(service_);
}

void SupervisorLink::say_hello(std::uint32_t free_slots, std::uint64_t now_ns) {
  std::vector<formats::AssignedEvent> undecided;
  for (const NodeEvent& event : events_.slots) {
    if (event.here()) undecided.push_back(event.assigned);
  }
  hello_.clear();
  formats::encode(session_.hello(free_slots, std::move(undecided)), hello_);
  hello_parts_.assign(1, hello_);
  greeted_connections_ = requester_.connections(service_);
  ++greetings_;
  works_under_way_ = 0;
  greeting_ = requester_.ask(service_, static_cast<std::uint16_t>(AssignmentKind::hello),
                             transport::MessageParts(hello_parts_), std::chrono::seconds{5});
  if (!greeting_) hello_at_ns_ = now_ns + kReconnectNs;
}

void SupervisorLink::say_work(std::uint32_t free_slots, std::uint64_t now_ns) {
  if (works_under_way_ >= 2 || (works_under_way_ == 1 && !session_.news(free_slots))) return;
  if (!requester_.connected(service_)) return;
  bytes_.clear();
  formats::encode(session_.work(free_slots), bytes_);
  const auto request = requester_.ask(service_, static_cast<std::uint16_t>(AssignmentKind::work), std::span(bytes_),
                                      patience_ + std::chrono::seconds{2});
  if (!request) {
    // The WORK was not sent. HELLO repeats all of it.
    session_.close();
    hello_at_ns_ = now_ns + kReconnectNs;
    return;
  }
  ++works_under_way_;
  works_.emplace(*request, greetings_);
}

Result<SupervisorLink::Heard> SupervisorLink::take(Requester::Reply& reply, std::uint64_t now_ns) {
  if (greeting_ == reply.request) return take_welcome(reply, now_ns);
  const auto work = works_.find(reply.request);
  if (work == works_.end()) return Heard::not_for_it;
  const bool current = work->second == greetings_;
  works_.erase(work);
  // An answer to a request before the last HELLO is out of date.
  return current ? take_orders(reply, now_ns) : Heard::nothing;
}

Result<SupervisorLink::Heard> SupervisorLink::take_welcome(Requester::Reply& reply, std::uint64_t now_ns) {
  greeting_.reset();
  hello_at_ns_ = now_ns + kReconnectNs;
  if (reply.outcome == Outcome::refused) {
    const auto why = static_cast<AssignmentRefusal>(reply.status);
    if (why == AssignmentRefusal::bad_message || why == AssignmentRefusal::version)
      return std::unexpected(Error{"farm.other_version",
                                   fmt::format("the supervisor {} does not understand this node", settings_.supervisor), "",
                                   "both must be of the same version of Rodeo"});
    return Heard::nothing;
  }
  if (reply.outcome != Outcome::answered) return Heard::nothing;
  welcome_ = {};
  if (!formats::decode(reply.message.in_one_piece(scratch_), welcome_) || welcome_.version != formats::kAssignmentsVersion) {
    events_.counters.add(NodeCounter::bad_orders);
    return std::unexpected(Error{"farm.other_version",
                                 fmt::format("the answer of the supervisor {} cannot be read", settings_.supervisor), "",
                                 "both must be of the same version of Rodeo"});
  }
  return Heard::welcome;
}

void SupervisorLink::accept_welcome() {
  patience_ = std::chrono::nanoseconds(welcome_.patience_ns);
  session_.welcome(welcome_);
}

SupervisorLink::Heard SupervisorLink::take_orders(Requester::Reply& reply, std::uint64_t now_ns) {
  --works_under_way_;
  if (!session_.open()) return Heard::nothing;
  if (reply.outcome != Outcome::answered) {
    session_.close();
    return Heard::nothing;
  }
  if (!formats::decode(reply.message.in_one_piece(scratch_), orders_) || !session_.orders(orders_)) {
    events_.counters.add(NodeCounter::bad_orders);
    session_.close();
    hello_at_ns_ = now_ns + kReconnectNs;
    return Heard::nothing;
  }
  return Heard::orders;
}

}  // namespace rodeo::farm
