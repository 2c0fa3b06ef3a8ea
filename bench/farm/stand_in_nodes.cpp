#include "bench/farm/stand_in_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace rodeo::bench {
namespace {

using formats::AssignmentKind;
using Outcome = transport::Requester::Outcome;
using namespace std::chrono_literals;

constexpr std::uint64_t kLookNs = 5'000'000;
constexpr auto kPatience = 60s;

}  // namespace

StandInNodes::StandInNodes(StandInNodesSettings settings, const FarmMeeting& meeting)
    : settings_(std::move(settings)),
      meeting_(meeting),
      requester_({.name = fmt::format("nodes-{}", settings_.first), .bus = settings_.bus, .pages = 4, .most_requests = 4}) {
  for (std::uint32_t i = 0; i < settings_.nodes; ++i)
    nodes_.push_back({.name = fmt::format("node-{}", settings_.first + i), .service = requester_.add(settings_.supervisor)});
}

bool StandInNodes::poll(std::uint64_t now_ns) {
  replies_.clear();
  requester_.poll(now_ns, replies_);
  for (const auto& reply : replies_) take(nodes_[reply.service], reply);
  const bool some = !replies_.empty();
  replies_.clear();
  if (now_ns < looked_ns_ + kLookNs) return some;
  looked_ns_ = now_ns;
  for (Node& node : nodes_) {
    if (node.session == 0 && !node.asked) hello(node);
    if (node.session != 0 && node.works == 0 && !node.over) work(node);
  }
  return some;
}

void StandInNodes::hello(Node& node) {
  if (!requester_.connected(node.service)) return;
  bytes_.clear();
  encode(formats::NodeHello{.instance = 1, .slots = settings_.slots, .name = node.name}, bytes_);
  node.asked = requester_
                   .ask(node.service, static_cast<std::uint16_t>(AssignmentKind::hello), std::span<const std::byte>(bytes_),
                        kPatience)
                   .has_value();
}

void StandInNodes::work(Node& node) {
  formats::NodeWork work{
      .session = node.session, .granted = node.decided + node.decisions.size() + settings_.slots, .first = node.decided + 1};
  work.decisions.swap(node.decisions);
  bytes_.clear();
  encode(work, bytes_);
  if (requester_.ask(node.service, static_cast<std::uint16_t>(AssignmentKind::work), std::span<const std::byte>(bytes_),
                     kPatience)) {
    ++node.works;
    node.decided += work.decisions.size();
    work.decisions.clear();
  }
  node.decisions.swap(work.decisions);
}

void StandInNodes::take(Node& node, const transport::Requester::Reply& reply) {
  if (node.session == 0) {
    node.asked = false;
    formats::NodeWelcome welcome;
    if (reply.outcome != Outcome::answered || !decode(reply.message.in_one_piece(whole_), welcome)) return;
    node.session = welcome.session;
    meeting_->nodes_here.fetch_add(1, std::memory_order_relaxed);
    return work(node);
  }
  --node.works;
  if (reply.outcome != Outcome::answered || !decode(reply.message.in_one_piece(whole_), orders_)) {
    if (!node.over) meeting_->failures.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  orders(node);
}

void StandInNodes::orders(Node& node) {
  if (!orders_.events.empty() && orders_.first != node.assigned + 1)
    meeting_->failures.fetch_add(1, std::memory_order_relaxed);
  node.assigned += orders_.events.size();
  std::uint64_t twice = 0;
  for (const formats::AssignedEvent& event : orders_.events) {
    if (meeting_.set(FarmMeeting::Bit::assigned, event.id)) ++twice;
    const bool accepted = event.id % settings_.accepted_of == 0;
    node.decisions.push_back({.id = event.id,
                              .bytes = accepted ? 2'000'000U : 0U,
                              .verdict = accepted ? formats::Verdict::accepted : formats::Verdict::rejected,
                              .flags = event.build_only() ? formats::EventDecision::kBuildOnly : std::uint8_t{0}});
  }
  if (twice > 0) meeting_->assigned_twice.fetch_add(twice, std::memory_order_relaxed);
  meeting_->assigned.fetch_add(orders_.events.size() - twice, std::memory_order_relaxed);
  meeting_->safe.fetch_add(orders_.safe - node.safe, std::memory_order_relaxed);
  node.safe = orders_.safe;
  if (orders_.over() && !node.over) {
    node.over = true;
    ++over_;
    meeting_->nodes_over.fetch_add(1, std::memory_order_relaxed);
  }
  const bool all = node.assigned == node.decided + node.decisions.size();
  if (!node.over && (node.decisions.size() >= settings_.at_once || node.works == 0 || all)) work(node);
}

}  // namespace rodeo::bench
