#include "farm/node/readout_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "formats/fragment_request.h"

namespace rodeo::farm {

using Outcome = transport::Requester::Outcome;

namespace {

constexpr std::uint64_t kCheckNs = 1'000'000;
constexpr std::uint64_t kRetryNs = 100'000'000;

}  // namespace

ReadoutLinks::ReadoutLinks(const NodeSettings& settings, NodeEvents& events, Requester& requester, EventCollector& collector,
                           Say say)
    : settings_(settings), events_(events), requester_(requester), collector_(collector), say_(std::move(say)) {
  pending_.reserve(4096);
}

void ReadoutLinks::add(const std::string& name, std::uint64_t now_ns) {
  collector_.on_disconnect(static_cast<std::uint32_t>(readouts_.size()), now_ns);
  readouts_.push_back({.name = name, .service = requester_.add(name)});
}

bool ReadoutLinks::all_described() const { return std::ranges::all_of(readouts_, &Readout::described); }

void ReadoutLinks::check_connections(std::uint64_t now_ns) {
  if (now_ns - checked_ns_ < kCheckNs) return;
  checked_ns_ = now_ns;
  for (std::uint32_t i = 0; i < readouts_.size(); ++i) {
    Readout& readout = readouts_[i];
    const bool connected = requester_.connected(readout.service);
    if (connected && !readout.connected) {
      const std::uint64_t instance = requester_.instance(readout.service);
      const bool restarted = readout.instance != 0 && instance != readout.instance;
      if (restarted) {
        say_(readout.name + " was restarted: the fragments that it held are lost");
        readout.described = false;
      }
      readout.instance = instance;
      collector_.on_connect(i, restarted);
    } else if (!connected && readout.connected) {
      say_(readout.name + " is gone");
      readout.describing = false;
      collector_.on_disconnect(i, now_ns);
    }
    readout.connected = connected;
    if (!connected || readout.described || readout.describing || now_ns < readout.describe_at_ns) continue;
    readout.describe_at_ns = now_ns + kRetryNs;
    const auto request = requester_.ask(readout.service, static_cast<std::uint16_t>(formats::FragmentRequest::describe),
                                        std::span<const std::byte>{}, std::chrono::seconds{2});
    if (!request) continue;
    readout.describing = true;
    pending_.emplace(*request, Pending{.describes = true, .number = i});
  }
}

void ReadoutLinks::request_fragments(std::uint64_t now_ns) {
  while (const auto wanted = collector_.next_request()) {
    formats::FetchRequest fetch{.id = events_.slots[wanted->slot].assigned.id,
                                .wait_us = static_cast<std::uint32_t>(settings_.fetch_wait.count() / 1000)};
    if (!wanted->all) {
      for (const auto rob : wanted->robs) fetch.robs.push_back(collector_.source_id(rob));
    }
    bytes_.clear();
    formats::append_fetch_request(bytes_, fetch);
    // The request waits a little longer than its event: a missing answer ends with the event, not before.
    const std::chrono::nanoseconds patience(std::max(wanted->deadline_ns, now_ns) - now_ns + kRetryNs);
    const auto request =
        requester_.ask(readouts_[wanted->readout].service, static_cast<std::uint16_t>(formats::FragmentRequest::fetch),
                       std::span<const std::byte>(bytes_), patience);
    if (!request) {
      collector_.on_unsent(wanted->id, now_ns);
      return;
    }
    if (events_.slots[wanted->slot].asked_ns == 0) events_.slots[wanted->slot].asked_ns = now_ns;
    pending_.emplace(*request, Pending{.number = wanted->id, .slot = wanted->slot});
  }
}

bool ReadoutLinks::on_reply(Requester::Reply& reply, std::uint64_t now_ns) {
  const auto found = pending_.find(reply.request);
  if (found == pending_.end()) return false;
  const Pending pending = found->second;
  pending_.erase(found);
  if (pending.describes) {
    on_description(pending.number, reply, now_ns);
  } else {
    on_fragments(pending.number, pending.slot, reply, now_ns);
  }
  return true;
}

void ReadoutLinks::on_description(std::uint32_t number, Requester::Reply& reply, std::uint64_t now_ns) {
  Readout& readout = readouts_[number];
  readout.describing = false;
  readout.describe_at_ns = now_ns + kRetryNs;
  if (reply.outcome != Outcome::answered) return;
  const auto description = formats::read_describe_reply(reply.message.in_one_piece(scratch_));
  if (!description)
    return say_(fmt::format("the description of {} cannot be read: {}", readout.name, description.error().message()));
  if (!numbering_) {
    numbering_ = description->numbering;
    numbering_of_ = readout.name;
  }
  if (!numbering_->fits(description->numbering) && !other_numbering_) {
    other_numbering_ = Error{"farm.other_numbering",
                             fmt::format("the ids of readout {} count {}, those of readout {} count {}", readout.name,
                                         description->numbering.text(), numbering_of_, numbering_->text()),
                             "", "give all readouts of the farm the same extractor and orbits_per_frame"};
  }
  if (other_numbering_) return;
  if (description->run_number == 0) return;  // The readout waits for its run.
  if (description->run_number != events_.context.run_number) {
    readout.describe_at_ns = now_ns + 10 * kRetryNs;
    return say_(fmt::format("{} has run {}, not {}: no fragments are fetched from it", readout.name, description->run_number,
                            events_.context.run_number));
  }
  readout.described = true;
  collector_.on_description(number, description->robs);
}

void ReadoutLinks::on_fragments(EventCollector::RequestId request, Slot slot, Requester::Reply& reply,
                                std::uint64_t now_ns) {
  const bool answered = reply.outcome == Outcome::answered;
  if (!answered || !collector_.is_awaited(request, slot)) {
    const auto why = static_cast<formats::FragmentRefusal>(reply.status);
    const bool permanent = reply.outcome == Outcome::refused && why != formats::FragmentRefusal::busy;
    collector_.on_failure(request, permanent, now_ns);
    return;
  }
  requested_robs_.clear();
  for (const auto rob : collector_.robs_of_request(request)) {
    if (collector_.state(slot, rob) == RobState::requested) requested_robs_.push_back(rob);
  }
  results_.clear();
  const std::uint64_t bytes = events_.slots[slot].data.parse(std::move(reply.message), requested_robs_, collector_,
                                                             events_.context, results_, events_.data_counters);
  collector_.on_answer(request, results_, bytes, now_ns);
}

std::vector<NodeStatus::Peer> ReadoutLinks::peers() const {
  std::vector<NodeStatus::Peer> peers;
  for (std::uint32_t number = 0; number < readouts_.size(); ++number) {
    const Readout& one = readouts_[number];
    peers.push_back({one.name, requester_.connected(one.service), requester_.trouble(one.service),
                     collector_.lost_fragments_of(number)});
  }
  return peers;
}

}  // namespace rodeo::farm
