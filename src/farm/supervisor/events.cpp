#include "farm/supervisor/events.h"

#include <algorithm>

namespace rodeo::farm {
namespace {

using dispatch::ClearBook;
using dispatch::Dispatcher;

/// Limit of remembered ids that no trigger announced, after a restart or without a trigger authority.
constexpr std::uint32_t kRecentIds = 1 << 20;
constexpr std::size_t kMostUntold = 1 << 20;  // Exceeds what readouts hold; above this limit, the oldest come first.
constexpr std::uint32_t kMostAtOnce = 32;     // Limit of successive events to one node: so many it processes at a time.

static_assert(static_cast<int>(formats::Verdict::accepted) == static_cast<int>(dispatch::Verdict::accepted) &&
              static_cast<int>(formats::Verdict::rejected) == static_cast<int>(dispatch::Verdict::rejected) &&
              static_cast<int>(formats::Verdict::debug) == static_cast<int>(dispatch::Verdict::debug) &&
              static_cast<int>(formats::Verdict::lost) == static_cast<int>(dispatch::Verdict::lost));

Dispatcher::Decision decision_of(const formats::EventDecision& decision) {
  return {.id = decision.id,
          .verdict = static_cast<dispatch::Verdict>(decision.verdict),
          .partial = decision.partial(),
          .build_only = decision.build_only()};
}

}  // namespace

dispatch::Event event_of(const formats::AssignedEvent& event) {
  return {.id = event.id,
          .lumi_block = event.lumi_block,
          .scan_step = event.scan_step,
          .bcid = event.bcid,
          .trigger_type = event.trigger_type};
}

formats::AssignedEvent assigned_event(const dispatch::Event& event, bool build_only) {
  return {.id = event.id,
          .lumi_block = event.lumi_block,
          .scan_step = event.scan_step,
          .bcid = event.bcid,
          .trigger_type = event.trigger_type,
          .flags = build_only ? formats::AssignedEvent::kBuildOnly : std::uint8_t{0}};
}

std::uint32_t kept_for_untold(std::uint32_t events_in_flight) { return std::max(events_in_flight / 16, 1U); }

Events::Events(const SupervisorSettings& settings)
    : dispatcher({.policy = settings.assignment,
                  .capacity = settings.events_in_flight,
                  .reserve = settings.events_in_flight,
                  .timeout_ns = static_cast<std::uint64_t>(settings.event_timeout.count()),
                  .most_at_once = kMostAtOnce,
                  .seed = 1}),
      admission(
          {.kept = settings.trigger.empty() ? 0 : kept_for_untold(settings.events_in_flight),
           .most_untold = kMostUntold,
           .settle_ns = settings.trigger.empty() ? static_cast<std::uint64_t>(settings.assign_after.count()) : kAnnounceNs,
           .turn = settings.trigger.empty() ? dispatch::Offer::Turn::in_order : dispatch::Offer::Turn::ahead}),
      span(static_cast<std::uint32_t>(settings.readouts.size()), static_cast<std::uint64_t>(settings.readout_grace.count())),
      clears({.count = settings.clear_count, .after_ns = static_cast<std::uint64_t>(settings.clear_after.count())}),
      decisions(settings.decisions),
      has_trigger_(!settings.trigger.empty()),
      recent_ids_(kRecentIds) {}

bool Events::announce(const dispatch::Event& event) {
  announced_.back().second = event.id;
  if (recent_ids_.has(event.id)) return false;
  (void)dispatcher.offer(event);
  return true;
}

void Events::add_orphan(std::uint32_t readout, std::uint64_t id, std::uint64_t now_ns) {
  using Place = dispatch::CommonSpan::Place;
  if (has_trigger_) return admission.found(id, now_ns);
  switch (span.place_of(id)) {
    case Place::unknown: unplaced_ = true; return;  // add_orphan() runs again when the begin is known.
    case Place::before: return clear_outside_span(EventsCounter::before_common_start, id, now_ns);
    case Place::after: return clear_outside_span(EventsCounter::after_common_end, id, now_ns);
    case Place::within: break;
  }
  admission.found(id, readout, now_ns, [this](std::uint64_t add_orphan, const dispatch::Holders& holders) {
    return span.all_have(add_orphan, holders);
  });
}

/// Has the readout release the event. The event counts once, as all events that are over.
void Events::clear_outside_span(EventsCounter why, std::uint64_t id, std::uint64_t now_ns) {
  counters_.add(why);
  recent_ids_.add(id);
  clear_again(id, now_ns);
}

std::vector<NamedCounter> Events::counters() const {
  return base::named_counters(counters_, kEventsCounters, [](EventsCounter) { return true; });
}

std::uint64_t Events::count_undecided() {
  admission.forget_announced([this](std::uint64_t id) { return state_of(id) == State::orphan; });
  return dispatcher.waiting() + dispatcher.assigned() + admission.untold();
}

bool Events::was_announced(std::uint64_t id) const {
  const auto behind = std::ranges::upper_bound(announced_, id, {}, [](const auto& one) { return one.first; });
  return behind != announced_.begin() && id <= std::prev(behind)->second;
}

bool Events::is_over(std::uint64_t id) const { return !dispatcher.knows(id) && (was_announced(id) || recent_ids_.has(id)); }

void Events::remove(std::uint64_t id) {
  dispatcher.cleared(id);
  if (!was_announced(id)) recent_ids_.add(id);
}

void Events::finish_decision(Dispatcher::Said outcome, std::uint32_t node, std::uint32_t session,
                             const formats::EventDecision& decision, std::uint64_t now_ns) {
  const bool counted = outcome == Dispatcher::Said::counted;
  if (counted) decisions.add(decision.id, static_cast<dispatch::Verdict>(decision.verdict));
  clears.add({.id = counted ? decision.id : ClearBook::kNoId, .node = node, .session = session}, now_ns);
}

void Events::on_decision(std::uint32_t node, std::uint32_t session, const formats::EventDecision& decision,
                         std::uint64_t now_ns) {
  finish_decision(dispatcher.decide(node, decision_of(decision)), node, session, decision, now_ns);
}

void Events::on_earlier_decision(std::uint32_t node, std::uint32_t session, const formats::EventDecision& decision,
                                 std::uint64_t now_ns) {
  const auto outcome = is_over(decision.id) ? dispatcher.decide(node, decision_of(decision))
                                            : dispatcher.adopt_decision(node, decision_of(decision));
  finish_decision(outcome, node, session, decision, now_ns);
}

void Events::on_given_back(std::uint32_t node, std::uint32_t session, const formats::EventDecision& decision, bool in_work,
                           std::uint64_t now_ns) {
  if (in_work) dispatcher.give_back(node, decision.id, decision.build_only());
  clears.add({.id = ClearBook::kNoId, .node = node, .session = session}, now_ns);
}

bool Events::adopt(std::uint32_t node, const formats::AssignedEvent& event, std::uint64_t now_ns) {
  return !is_over(event.id) && dispatcher.adopt(event_of(event), node, event.build_only(), now_ns);
}

void Events::on_recorded(std::uint64_t id, bool debug, std::uint64_t now_ns) {
  if (dispatcher.knows(id) || is_over(id)) return;
  const formats::EventDecision decision{.id = id, .verdict = debug ? formats::Verdict::debug : formats::Verdict::accepted};
  finish_decision(dispatcher.adopt_decision(kNoNode, decision_of(decision)), kNoNode, 0, decision, now_ns);
}

}  // namespace rodeo::farm
