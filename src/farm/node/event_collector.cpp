#include "farm/node/event_collector.h"

#include <algorithm>

#include "formats/fragment_request.h"

namespace rodeo::farm {

using enum CollectorCounter;

EventCollector::EventCollector(CollectorSettings settings, std::uint32_t readouts)
    : settings_(settings), readouts_(readouts), events_(settings.slots) {
  for (Slot slot = settings.slots; slot > 0; --slot) free_.push_back(slot - 1);
}

EventCollector::EventCollector(const EventCollector& other)
    : settings_(other.settings_),
      readouts_(other.readouts_),
      robs_(other.robs_),
      order_(other.order_),
      events_(other.events_),
      free_(other.free_),
      begun_(other.begun_),
      ready_(other.ready_),
      later_(other.later_),
      requests_(other.requests_),
      free_requests_(other.free_requests_),
      complete_(other.complete_),
      fragments_under_way_(other.fragments_under_way_),
      bytes_under_way_(other.bytes_under_way_),
      waited_for_credit_(other.waited_for_credit_) {
  for (std::size_t i = 0; i < kCollectorCounters.size(); ++i)
    counters_.add(static_cast<CollectorCounter>(i), other.counters_.read(static_cast<CollectorCounter>(i)));
}

void EventCollector::on_description(std::uint32_t readout, std::span<const SourceId> robs) {
  Readout& one = readouts_[readout];
  one.known = true;
  one.robs.clear();
  for (const SourceId source_id : robs) {
    const auto same =
        std::ranges::find_if(robs_, [&](const Rob& rob) { return rob.readout == readout && rob.source_id == source_id; });
    one.robs.push_back(static_cast<RobIndex>(same - robs_.begin()));
    if (same == robs_.end()) robs_.push_back({.source_id = source_id, .readout = readout});
  }
  order_.clear();
  for (const Readout& each : readouts_) order_.insert(order_.end(), each.robs.begin(), each.robs.end());
  // ROBs that the readout does not have any more come last.
  for (RobIndex rob = 0; rob < robs_.size(); ++rob) {
    if (std::ranges::find(order_, rob) == order_.end()) order_.push_back(rob);
  }
}

std::optional<EventCollector::RobIndex> EventCollector::find(SourceId source_id) const {
  const auto found = std::ranges::find(robs_, source_id, &Rob::source_id);
  if (found == robs_.end()) return std::nullopt;
  return static_cast<RobIndex>(found - robs_.begin());
}

void EventCollector::on_connect(std::uint32_t readout, bool restarted) {
  Readout& one = readouts_[readout];
  // The new process may have events that began since on_disconnect(). The collector asks for these, and the process answers
  // LOST for those that it missed.
  if (restarted && one.known) lose_all_of(readout, RobLoss::readout_died, one.begun_before);
  one.connected = true;
  one.given_up = false;
}

void EventCollector::on_disconnect(std::uint32_t readout, std::uint64_t now_ns) {
  Readout& one = readouts_[readout];
  if (one.connected || one.down_since_ns == 0) {
    one.down_since_ns = now_ns;
    one.begun_before = begun_;
  }
  one.connected = false;
}

std::optional<EventCollector::Slot> EventCollector::begin(std::uint64_t deadline_ns) {
  if (free_.empty()) return std::nullopt;
  const Slot slot = free_.back();
  free_.pop_back();
  Event& event = events_[slot];
  event.active = true;
  event.armed = false;
  event.begun = ++begun_;
  event.deadline_ns = deadline_ns;
  event.open = event.lost = 0;
  event.robs.assign(robs_.size(), {});
  event.work.assign(readouts_.size(), {});
  return slot;
}

void EventCollector::want(Slot slot, std::span<const RobIndex> robs) {
  Event& event = events_[slot];
  event.armed = true;
  for (const RobIndex rob : robs) {
    // An event has only ROBs that were described before it began.
    if (rob >= event.robs.size() || event.robs[rob].state != RobState::unwanted) continue;
    const std::uint32_t readout = robs_[rob].readout;
    event.robs[rob].state = RobState::wanted;
    ++event.open;
    ++event.work[readout].wanted;
    if (readouts_[readout].given_up) {
      lose(slot, rob, RobLoss::readout_away);
    } else {
      queue(slot, readout);
    }
  }
  if (event.open == 0) complete_.push_back(slot);
}

void EventCollector::want_all(Slot slot) {
  Event& event = events_[slot];
  event.armed = true;
  // Each event begins with another readout. Otherwise all events would ask the first readout first.
  for (std::uint32_t i = 0; i < readouts(); ++i) want(slot, readouts_[(i + event.number) % readouts()].robs);
}

void EventCollector::end(Slot slot) {
  Event& event = events_[slot];
  event.active = event.armed = false;
  ++event.number;
  free_.push_back(slot);
}

void EventCollector::queue(Slot slot, std::uint32_t readout) {
  Work& work = events_[slot].work[readout];
  if (work.queued || work.asked) return;
  work.queued = true;
  ready_.push_back({.slot = slot, .number = events_[slot].number, .readout = readout});
}

void EventCollector::queue_later(Slot slot, std::uint32_t readout, std::uint64_t now_ns) {
  Work& work = events_[slot].work[readout];
  if (work.queued || work.asked) return;
  work.queued = true;
  later_.push_back({.slot = slot,
                    .number = events_[slot].number,
                    .readout = readout,
                    .due_ns = now_ns + static_cast<std::uint64_t>(settings_.pending_retry.count())});
}

void EventCollector::lose(Slot slot, RobIndex rob, RobLoss loss) {
  Event& event = events_[slot];
  EventRob& one = event.robs[rob];
  if (one.state == RobState::wanted) --event.work[robs_[rob].readout].wanted;
  one = {.state = RobState::lost, .loss = loss};
  --event.open;
  ++event.lost;
  ++readouts_[robs_[rob].readout].lost;
  switch (loss) {
    case RobLoss::none: break;
    case RobLoss::by_readout: counters_.add(lost_by_readout); break;
    case RobLoss::bad: counters_.add(lost_bad); break;
    case RobLoss::readout_died: counters_.add(lost_readout_died); break;
    case RobLoss::readout_away: counters_.add(lost_readout_away); break;
    case RobLoss::timed_out: counters_.add(lost_timed_out); break;
  }
}

void EventCollector::lose_all_of(std::uint32_t readout, RobLoss loss, std::uint64_t begun_up_to) {
  for (Slot slot = 0; slot < events_.size(); ++slot) {
    Event& event = events_[slot];
    if (!event.active || event.open == 0 || event.begun > begun_up_to) continue;
    for (const RobIndex rob : readouts_[readout].robs) {
      if (rob >= event.robs.size()) continue;
      const RobState state = event.robs[rob].state;
      if (state == RobState::wanted || state == RobState::requested) lose(slot, rob, loss);
    }
    if (event.open == 0 && event.armed) complete_.push_back(slot);
  }
}

bool EventCollector::has_credit_for(std::uint32_t fragments, std::uint64_t bytes) const {
  if (fragments_under_way_ == 0) return true;  // A single request always goes.
  if (settings_.credit_fragments > 0 && fragments_under_way_ + fragments > settings_.credit_fragments) return false;
  return settings_.credit_bytes == 0 || bytes_under_way_ + bytes <= settings_.credit_bytes;
}

std::optional<EventCollector::Request> EventCollector::next_request() {
  while (!ready_.empty()) {
    const Item item = ready_.front();
    Event& event = events_[item.slot];
    Work& work = event.work[item.readout];
    Readout& readout = readouts_[item.readout];
    if (!event.active || event.number != item.number || work.wanted == 0) {
      ready_.pop_front();
      if (event.active && event.number == item.number) work.queued = false;
      continue;
    }
    if (!readout.connected) {
      // poll() puts it back into this queue.
      ready_.pop_front();
      later_.push_back(item);
      continue;
    }
    // A request without a list asks for all ROBs. A list has a largest size; the next request takes the rest.
    const bool all = work.wanted == readout.robs.size();
    const auto count = all ? work.wanted : std::min<std::uint32_t>(work.wanted, formats::kMostFetchRobs);
    const auto bytes = static_cast<std::uint64_t>(readout.fragment_bytes * count);
    if (!has_credit_for(count, bytes)) {
      if (!waited_for_credit_) counters_.add(waits_for_credit);
      waited_for_credit_ = true;
      return std::nullopt;
    }
    waited_for_credit_ = false;
    ready_.pop_front();
    if (free_requests_.empty()) {
      free_requests_.push_back(static_cast<RequestId>(requests_.size()));
      requests_.emplace_back();
    }
    const RequestId id = free_requests_.back();
    free_requests_.pop_back();
    OpenRequest& request = requests_[id];
    request.robs.clear();
    for (const RobIndex rob : readout.robs) {
      if (request.robs.size() == count) break;
      if (rob >= event.robs.size() || event.robs[rob].state != RobState::wanted) continue;
      event.robs[rob].state = RobState::requested;
      request.robs.push_back(rob);
    }
    request.open = true;
    request.slot = item.slot;
    request.number = item.number;
    request.readout = item.readout;
    request.fragments = static_cast<std::uint32_t>(request.robs.size());
    request.bytes = bytes;
    work.wanted -= request.fragments;
    work.queued = false;
    work.asked = true;
    fragments_under_way_ += request.fragments;
    bytes_under_way_ += request.bytes;
    counters_.add(requests);
    return Request{.id = id,
                   .slot = item.slot,
                   .readout = item.readout,
                   .all = all,
                   .deadline_ns = event.deadline_ns,
                   .robs = request.robs};
  }
  return std::nullopt;
}

bool EventCollector::close_request(RequestId id) {
  OpenRequest& request = requests_[id];
  if (!request.open) return false;
  request.open = false;
  fragments_under_way_ -= request.fragments;
  bytes_under_way_ -= request.bytes;
  free_requests_.push_back(id);
  Event& event = events_[request.slot];
  if (!event.active || event.number != request.number) return false;
  event.work[request.readout].asked = false;
  return true;
}

void EventCollector::on_unsent(RequestId id, std::uint64_t now_ns) { on_failure(id, false, now_ns); }

void EventCollector::on_failure(RequestId id, bool permanent, std::uint64_t now_ns) {
  if (!close_request(id)) return;
  const OpenRequest& request = requests_[id];
  Event& event = events_[request.slot];
  const bool gone = readouts_[request.readout].given_up;
  bool again = false;
  for (const RobIndex rob : request.robs) {
    if (event.robs[rob].state != RobState::requested) continue;
    if (permanent || gone) {
      lose(request.slot, rob, permanent ? RobLoss::bad : RobLoss::readout_away);
    } else {
      event.robs[rob].state = RobState::wanted;
      ++event.work[request.readout].wanted;
      again = true;
    }
  }
  if (again) {
    counters_.add(asked_again);
    queue_later(request.slot, request.readout, now_ns);
  }
  if (event.open == 0 && event.armed) complete_.push_back(request.slot);
}

bool EventCollector::on_answer(RequestId id, std::span<const Result> results, std::uint64_t bytes, std::uint64_t now_ns) {
  if (!close_request(id)) return false;
  const OpenRequest& request = requests_[id];
  Event& event = events_[request.slot];
  std::uint32_t arrived = 0;
  for (const Result& result : results) {
    if (result.rob >= event.robs.size() || event.robs[result.rob].state != RobState::requested) continue;
    switch (result.what) {
      case Result::What::arrived:
        event.robs[result.rob].state = RobState::arrived;
        --event.open;
        ++arrived;
        break;
      case Result::What::pending:
        event.robs[result.rob].state = RobState::wanted;
        ++event.work[request.readout].wanted;
        counters_.add(pending);
        break;
      case Result::What::lost: lose(request.slot, result.rob, RobLoss::by_readout); break;
      case Result::What::bad: lose(request.slot, result.rob, RobLoss::bad); break;
    }
  }
  for (const RobIndex rob : request.robs) {
    if (event.robs[rob].state == RobState::requested) lose(request.slot, rob, RobLoss::bad);
  }
  counters_.add(fragments, arrived);
  counters_.add(fragment_bytes, bytes);
  if (arrived > 0) {
    double& average = readouts_[request.readout].fragment_bytes;
    const double now = static_cast<double>(bytes) / arrived;
    average = average == 0 ? now : average + (now - average) / 16;
  }
  if (event.work[request.readout].wanted > 0) queue_later(request.slot, request.readout, now_ns);
  if (event.open == 0 && event.armed) complete_.push_back(request.slot);
  return true;
}

void EventCollector::poll(std::uint64_t now_ns, std::vector<Slot>& complete) {
  while (!later_.empty() && later_.front().due_ns <= now_ns) {
    Item item = later_.front();
    later_.pop_front();
    if (!readouts_[item.readout].connected && !readouts_[item.readout].given_up) {
      // The ROB waits again. The order of times stays.
      item.due_ns = now_ns + static_cast<std::uint64_t>(settings_.pending_retry.count()) + 1;
      later_.push_back(item);
      continue;
    }
    ready_.push_back(item);
  }
  for (std::uint32_t i = 0; i < readouts(); ++i) {
    Readout& readout = readouts_[i];
    if (readout.connected || readout.given_up || readout.down_since_ns == 0) continue;
    if (now_ns - readout.down_since_ns < static_cast<std::uint64_t>(settings_.readout_grace.count())) continue;
    readout.given_up = true;
    lose_all_of(i, RobLoss::readout_away, begun_);
  }
  for (Slot slot = 0; slot < events_.size(); ++slot) {
    Event& event = events_[slot];
    if (!event.active || event.open == 0 || now_ns < event.deadline_ns) continue;
    for (RobIndex rob = 0; rob < event.robs.size(); ++rob) {
      const RobState state = event.robs[rob].state;
      if (state == RobState::wanted || state == RobState::requested) lose(slot, rob, RobLoss::timed_out);
    }
    complete_.push_back(slot);
  }
  for (const Slot slot : complete_) {
    Event& event = events_[slot];
    if (!event.active || !event.armed || event.open > 0) continue;
    event.armed = false;
    complete.push_back(slot);
  }
  complete_.clear();
}

}  // namespace rodeo::farm
