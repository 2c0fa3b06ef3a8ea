#include "farm/node/recorder_links.h"

#include <fmt/format.h>

#include <span>
#include <utility>

#include "formats/draw.h"
#include "formats/event_record.h"

namespace rodeo::farm {

using formats::RecordStatus;
using Outcome = transport::Requester::Outcome;
using enum NodeCounter;

namespace {

constexpr std::uint64_t kRetryNs = 50'000'000;        // Pause after a missing answer.
constexpr std::uint64_t kAllRefusedNs = 500'000'000;  // Pause after all recorders have refused.

}  // namespace

RecorderLinks::RecorderLinks(const NodeSettings& settings, NodeEvents& events, Requester& requester, Say say)
    : settings_(settings), events_(events), requester_(requester), say_(std::move(say)), deliveries_(settings.slots) {}

void RecorderLinks::add(const std::string& name) { recorders_.push_back({.name = name, .service = requester_.add(name)}); }

void RecorderLinks::begin(Slot slot, std::uint64_t now_ns) {
  ++active_;
  // If the event was another node's, any recorder may have it. The node asks all but the first one, whose answer to the
  // event says so.
  const bool may_be_recorded = events_.slots[slot].assigned.build_only();
  deliveries_[slot] = {.active = true,
                       .recorders_to_ask = may_be_recorded ? static_cast<std::uint32_t>(recorders_.size() - 1) : 0,
                       .since_ns = now_ns};
  deliveries_[slot].recorder = recorder_of(slot);
}

void RecorderLinks::end(Slot slot) {
  if (!deliveries_[slot].active) return;
  --active_;
  deliveries_[slot].active = false;
}

bool RecorderLinks::cancel(Slot slot) {
  const Delivery& delivery = deliveries_[slot];
  if (!delivery.active || !delivery.request) return false;
  requester_.cancel(*delivery.request);
  return true;
}

std::uint32_t RecorderLinks::recorder_of(Slot slot) const {
  return static_cast<std::uint32_t>(
      (formats::draw::mix(events_.slots[slot].assigned.id) + deliveries_[slot].recorders_to_ask) % recorders_.size());
}

void RecorderLinks::set_recorder(Slot slot, std::uint32_t recorder, std::uint64_t now_ns) {
  deliveries_[slot].recorder = recorder;
  deliveries_[slot].since_ns = now_ns;
}

void RecorderLinks::send(std::uint64_t now_ns) {
  if (active_ == 0) return;
  for (Slot slot = 0; slot < deliveries_.size(); ++slot) {
    const Delivery& delivery = deliveries_[slot];
    if (delivery.active && !delivery.request && now_ns >= delivery.at_ns) send(slot, now_ns);
  }
}

void RecorderLinks::send(Slot slot, std::uint64_t now_ns) {
  Delivery& delivery = deliveries_[slot];
  const NodeEvent& event = events_.slots[slot];
  const Requester::Service service = recorders_[delivery.recorder].service;
  if (requester_.connected(service)) {
    const bool asks = delivery.recorders_to_ask > 0;
    if (asks) {
      have_bytes_.clear();
      formats::append_have(have_bytes_, std::span(&event.assigned.id, 1));
      delivery.request = requester_.ask(service, formats::event_request::kTakeOver, std::span<const std::byte>(have_bytes_),
                                        settings_.record_timeout);
    } else {
      delivery.request = requester_.ask(service, formats::event_request::kRecord,
                                        transport::MessageParts(event.data.record()), settings_.record_timeout);
    }
    if (delivery.request) pending_.emplace(*delivery.request, Pending{.asks = asks, .slot = slot});
    return;
  }
  if (!may_wait(delivery, now_ns)) skip_recorder(slot, now_ns);
}

bool RecorderLinks::may_wait(const Delivery& delivery, std::uint64_t now_ns) const {
  return now_ns - delivery.since_ns < static_cast<std::uint64_t>(settings_.recorder_patience.count());
}

// Goes on without the recorder in turn, which stays away or does not say what it has.
void RecorderLinks::skip_recorder(Slot slot, std::uint64_t now_ns) {
  Delivery& delivery = deliveries_[slot];
  if (delivery.recorders_to_ask > 0) {
    // A recorder that stays away gives no answer, so the event may be recorded twice.
    events_.counters.add(recorded_elsewhere);
    --delivery.recorders_to_ask;
    return set_recorder(slot, recorder_of(slot), now_ns);
  }
  const auto count = static_cast<std::uint32_t>(recorders_.size());
  if (count == 1) return;
  if (delivery.unanswered || events_.slots[slot].assigned.build_only()) events_.counters.add(recorded_elsewhere);
  delivery.unanswered = false;
  set_recorder(slot, (delivery.recorder + 1) % count, now_ns);
}

RecorderLinks::DeliveryResult RecorderLinks::on_reply(Requester::Reply& reply, std::uint64_t now_ns) {
  const auto found = pending_.find(reply.request);
  if (found == pending_.end()) return {};
  const Pending pending = found->second;
  pending_.erase(found);
  deliveries_[pending.slot].request.reset();
  if (events_.slots[pending.slot].dropped) return {.progress = Progress::dropped, .slot = pending.slot};
  return pending.asks ? on_have_answer(pending.slot, reply, now_ns) : on_record_answer(pending.slot, reply, now_ns);
}

RecorderLinks::DeliveryResult RecorderLinks::on_have_answer(Slot slot, Requester::Reply& reply, std::uint64_t now_ns) {
  Delivery& delivery = deliveries_[slot];
  std::vector<std::byte> whole;
  const auto have = reply.outcome == Outcome::answered ? formats::decode_have_answer(reply.message.in_one_piece(whole), 1)
                                                       : std::unexpected(formats::DecodeError{});
  if (!have) {
    delivery.at_ns = now_ns + kRetryNs;
    if (reply.outcome == Outcome::refused && !may_wait(delivery, now_ns)) skip_recorder(slot, now_ns);
    return {.progress = Progress::under_way, .slot = slot};
  }
  if (have->has(0)) {
    events_.counters.add(had_already);
    const bool debug = have->stream(0).type == "debug";
    return {.progress = Progress::safe, .slot = slot, .copy = debug ? formats::Verdict::debug : formats::Verdict::accepted};
  }
  --delivery.recorders_to_ask;
  set_recorder(slot, recorder_of(slot), now_ns);
  return {.progress = Progress::under_way, .slot = slot};
}

RecorderLinks::DeliveryResult RecorderLinks::on_record_answer(Slot slot, Requester::Reply& reply, std::uint64_t now_ns) {
  Delivery& delivery = deliveries_[slot];
  const NodeEvent& event = events_.slots[slot];
  if (reply.outcome == Outcome::answered) {
    DeliveryResult safe{.progress = Progress::safe, .slot = slot};
    if (reply.status == static_cast<std::uint16_t>(RecordStatus::had_already)) safe.copy = formats::Verdict::accepted;
    if (reply.status == static_cast<std::uint16_t>(RecordStatus::had_already_debug)) safe.copy = formats::Verdict::debug;
    if (safe.copy) events_.counters.add(had_already);
    events_.counters.add(recorded_bytes, event.data.event_bytes());
    return safe;
  }
  if (reply.outcome != Outcome::refused) {
    delivery.unanswered = true;
    delivery.at_ns = now_ns + kRetryNs;
    events_.counters.add(record_again);
    return {.progress = Progress::under_way, .slot = slot};
  }
  events_.counters.add(record_refused);
  if (events_.counters.read(record_refused) <= 10)
    say_(fmt::format("{} refuses event {}: {}", recorders_[delivery.recorder].name, event.assigned.id,
                     formats::record_status_name(reply.status)));
  const auto why = static_cast<RecordStatus>(reply.status);
  if (why == RecordStatus::malformed || why == RecordStatus::unknown_request) {
    events_.counters.add(given_up);
    return {.progress = Progress::given_up, .slot = slot};
  }
  if (why == RecordStatus::taken_over) {
    events_.counters.add(let_go);
    return {.progress = Progress::dropped, .slot = slot};
  }
  if (why == RecordStatus::not_ready && (delivery.unanswered || event.assigned.build_only())) {
    // The recorder has not read back its files yet, and may have the event.
    delivery.at_ns = now_ns + kRetryNs;
    if (!may_wait(delivery, now_ns)) skip_recorder(slot, now_ns);
    return {.progress = Progress::under_way, .slot = slot};
  }
  // This recorder certainly lacks the event: the next one gets it.
  const auto count = static_cast<std::uint32_t>(recorders_.size());
  set_recorder(slot, (delivery.recorder + 1) % count, now_ns);
  delivery.unanswered = false;
  if (++delivery.refusals % count == 0) delivery.at_ns = now_ns + kAllRefusedNs;
  return {.progress = Progress::under_way, .slot = slot};
}

std::vector<NodeStatus::Peer> RecorderLinks::peers() const {
  std::vector<NodeStatus::Peer> peers;
  for (const Recorder& one : recorders_)
    peers.push_back({one.name, requester_.connected(one.service), requester_.trouble(one.service), 0});
  return peers;
}

}  // namespace rodeo::farm
