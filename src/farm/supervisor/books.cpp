#include "farm/supervisor/books.h"

#include <algorithm>

namespace rodeo::farm {
namespace {

using dispatch::ClearBook;
using dispatch::Dispatcher;

/// Limit of remembered ids that no trigger announced, after a restart or without a trigger authority.
constexpr std::uint32_t kLately = 1 << 20;
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

Books::Books(const SupervisorSettings& settings)
    : dispatcher({.policy = settings.assignment,
                  .capacity = settings.events_in_flight,
                  .reserve = settings.events_in_flight,
                  .timeout_ns = static_cast<std::uint64_t>(settings.event_timeout.count()),
                  .most_at_once = kMostAtOnce,
                  .seed = 1}),
      admission(
          {.kept = settings.trigger.empty() ? 0 : kept_for_untold(settings.events_in_flight),
           .most_untold = kMostUntold,
           .settle_ns = settings.trigger.empty() ? static_cast<std::uint64_t>(settings.assign_after.count()) : kSettleNs,
           .turn = settings.trigger.empty() ? dispatch::Offer::Turn::in_order : dispatch::Offer::Turn::ahead}),
      span(static_cast<std::uint32_t>(settings.readouts.size()), static_cast<std::uint64_t>(settings.readout_grace.count())),
      clears({.count = settings.clear_count, .after_ns = static_cast<std::uint64_t>(settings.clear_after.count())}),
      decisions(settings.decisions),
      has_trigger_(!settings.trigger.empty()),
      lately_(kLately) {}

bool Books::trigger(const dispatch::Event& event) {
  told_.back().second = event.id;
  if (lately_.has(event.id)) return false;
  (void)dispatcher.offer(event);
  return true;
}

void Books::found(std::uint32_t readout, std::uint64_t id, std::uint64_t now_ns) {
  using Place = dispatch::CommonSpan::Place;
  if (has_trigger_) return admission.found(id, now_ns);
  switch (span.place_of(id)) {
    case Place::unknown: unplaced_ = true; return;  // found() runs again when the begin is known.
    case Place::before: return outside(BooksCounter::before_common_start, id, now_ns);
    case Place::after: return outside(BooksCounter::after_common_end, id, now_ns);
    case Place::within: break;
  }
  admission.found(id, readout, now_ns,
                  [this](std::uint64_t found, const dispatch::Holders& holders) { return span.all_have(found, holders); });
}

/// Has the readout release the event. The event counts once, as all events that are over.
void Books::outside(BooksCounter why, std::uint64_t id, std::uint64_t now_ns) {
  counters_.add(why);
  lately_.add(id);
  clear_again(id, now_ns);
}

std::vector<NamedCounter> Books::counters() const {
  return base::named_counters(counters_, kBooksCounters, [](BooksCounter) { return true; });
}

std::uint64_t Books::undecided() {
  admission.forget_announced([this](std::uint64_t id) { return held(id) == Held::orphan; });
  return dispatcher.waiting() + dispatcher.assigned() + admission.untold();
}

bool Books::told(std::uint64_t id) const {
  const auto behind = std::ranges::upper_bound(told_, id, {}, [](const auto& one) { return one.first; });
  return behind != told_.begin() && id <= std::prev(behind)->second;
}

bool Books::is_over(std::uint64_t id) const { return !dispatcher.knows(id) && (told(id) || lately_.has(id)); }

void Books::leave(std::uint64_t id) {
  dispatcher.cleared(id);
  if (!told(id)) lately_.add(id);
}

void Books::settle(Dispatcher::Said said, std::uint32_t node, std::uint32_t session, const formats::EventDecision& decision,
                   std::uint64_t now_ns) {
  const bool counted = said == Dispatcher::Said::counted;
  if (counted) decisions.add(decision.id, static_cast<dispatch::Verdict>(decision.verdict));
  clears.add({.id = counted ? decision.id : ClearBook::kNoId, .node = node, .session = session}, now_ns);
}

void Books::decision(std::uint32_t node, std::uint32_t session, const formats::EventDecision& decision,
                     std::uint64_t now_ns) {
  settle(dispatcher.decide(node, decision_of(decision)), node, session, decision, now_ns);
}

void Books::decision_of_before(std::uint32_t node, std::uint32_t session, const formats::EventDecision& decision,
                               std::uint64_t now_ns) {
  const auto said = is_over(decision.id) ? dispatcher.decide(node, decision_of(decision))
                                         : dispatcher.adopt_decision(node, decision_of(decision));
  settle(said, node, session, decision, now_ns);
}

void Books::given_back(std::uint32_t node, std::uint32_t session, const formats::EventDecision& decision, bool heard,
                       std::uint64_t now_ns) {
  if (heard) dispatcher.give_back(node, decision.id, decision.build_only());
  clears.add({.id = ClearBook::kNoId, .node = node, .session = session}, now_ns);
}

bool Books::has(std::uint32_t node, const formats::AssignedEvent& event, std::uint64_t now_ns) {
  return !is_over(event.id) && dispatcher.adopt(event_of(event), node, event.build_only(), now_ns);
}

void Books::recorded_before(std::uint64_t id, bool debug, std::uint64_t now_ns) {
  if (dispatcher.knows(id) || is_over(id)) return;
  const formats::EventDecision decision{.id = id, .verdict = debug ? formats::Verdict::debug : formats::Verdict::accepted};
  settle(dispatcher.adopt_decision(kNoNode, decision_of(decision)), kNoNode, 0, decision, now_ns);
}

}  // namespace rodeo::farm
