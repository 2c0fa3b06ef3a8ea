#include "farm/drain_model.h"

#include <algorithm>
#include <ranges>

#include <fmt/format.h>

#include "readout/fragment_pool.h"

namespace rodeo::test {
namespace {

using dispatch::Dispatcher;
using dispatch::Verdict;
using farm::EventCollector;
using farm::RobLoss;
using farm::RobState;
using readout::FragmentBook;

constexpr std::uint64_t kFarAway = std::uint64_t{1} << 40;  // exceeds all times of the model
constexpr std::uint32_t kReorder = 2;                       // number of fragments

FragmentPtr fragment(std::uint64_t id) {
  static const FragmentPool pool({.links = 1, .chunk_bytes = 4, .links_per_part = 1});
  FragmentPtr made = pool.make(id);
  made->global_id = id;
  return made;
}

std::uint32_t bit(std::uint64_t id) { return std::uint32_t{1} << id; }

}  // namespace

const char* DrainModel::name(Act act) {
  constexpr const char* kNames[] = {"trigger",   "build",        "reorder_time",   "fetch",       "event_time",
                                    "clear",     "survey",       "give_back",      "expire",      "resume",
                                    "greet",     "end",          "untold_time",    "stand_still", "restart_supervisor",
                                    "lose_node", "restart_node", "restart_readout"};
  return kNames[static_cast<std::size_t>(act)];
}

std::shared_ptr<DrainModel::Node> DrainModel::new_node(const DrainSizes& sizes, std::uint32_t session) {
  auto node = std::make_shared<Node>(Node{.collector = EventCollector({.slots = sizes.node_slots,
                                                                       .pending_retry = std::chrono::nanoseconds{0},
                                                                       .readout_grace = std::chrono::nanoseconds{kFarAway}},
                                                                      sizes.readouts),
                                          .slots = std::vector<Event>(sizes.node_slots),
                                          .unsafe = {},
                                          .session = session});
  for (std::uint32_t i = 0; i < sizes.readouts; ++i) {
    const SourceId rob{i};
    node->collector.on_description(i, std::span(&rob, 1));
    node->collector.on_connect(i, false);
  }
  return node;
}

std::shared_ptr<DrainModel::Readout> DrainModel::new_readout(const DrainSizes& sizes) {
  return std::make_shared<Readout>(Readout{.book = FragmentBook({.most_fragments = sizes.kept,
                                                                 .reorder_fragments = kReorder,
                                                                 .reorder_ns = 1,
                                                                 .garbage_ns = kFarAway,
                                                                 .most_early_clears = 16}),
                                           .outside = {},
                                           .recent = {}});
}

std::shared_ptr<DrainModel::Supervisor> DrainModel::new_supervisor(const DrainSizes& sizes) {
  using dispatch::Offer;
  const bool old = sizes.untold_wait_for_room;
  auto made = std::make_shared<Supervisor>(Supervisor{
      .dispatcher = Dispatcher({.capacity = sizes.slots, .reserve = sizes.slots, .timeout_ns = kFarAway}),
      .admission = dispatch::Admission({.kept = old || sizes.no_trigger ? 0U : 1U,
                                        .most_untold = 64,
                                        .settle_ns = sizes.no_trigger ? kFarAway : 0,
                                        .turn = old || sizes.no_trigger ? Offer::Turn::in_order : Offer::Turn::ahead}),
      .clears = dispatch::ClearBook({}),
      .assigned_ns = std::vector<std::uint64_t>(sizes.triggers),
      .span = dispatch::CommonSpan(sizes.readouts, kFarAway),
      .said = std::vector<std::string>(sizes.readouts),
      .found = std::vector<std::uint32_t>(sizes.triggers),
      .had = std::vector<std::uint32_t>(sizes.triggers),
      .clear_list = {}});
  for (std::uint32_t i = 0; i < sizes.nodes; ++i) (void)made->dispatcher.add_node();
  for (std::uint32_t i = 0; i < sizes.readouts; ++i) made->clears.connected(made->clears.add_readout());
  return made;
}

DrainModel::DrainModel(const DrainSizes& sizes)
    : sizes_(sizes), time_outs_(sizes.triggers), supervisor_(new_supervisor(sizes)) {
  for (std::uint32_t i = 0; i < sizes.nodes; ++i) {
    nodes_.push_back(new_node(sizes, 1));
    supervisor_->dispatcher.set_room(i, sizes.node_slots);
  }
  for (std::uint32_t i = 0; i < sizes.readouts; ++i) readouts_.push_back(new_readout(sizes));
}

std::uint32_t DrainModel::how_many(Act act) const {
  switch (act) {
    case Act::build:
    case Act::reorder_time:
    case Act::clear:
    case Act::survey:
    case Act::end:
    case Act::restart_readout: return sizes_.readouts;
    case Act::fetch:
    case Act::event_time:
    case Act::give_back:
    case Act::greet:
    case Act::lose_node:
    case Act::restart_node: return sizes_.nodes;
    default: return 1;
  }
}

bool DrainModel::act(Act act, std::uint32_t which) {
  if (act >= kFirstFault) {
    if (faults_ == sizes_.faults) return false;
    ++faults_;
  }
  const bool stands_still = stands_still_;
  bool changed = true;
  switch (act) {
    case Act::trigger: changed = trigger(); break;
    case Act::build: changed = build(which); break;
    case Act::reorder_time: changed = reorder_time(which); break;
    case Act::fetch: changed = work(which, false); break;
    case Act::event_time: changed = work(which, true); break;
    case Act::clear: changed = !stands_still && clear(which); break;
    case Act::survey: changed = !stands_still && survey(which); break;
    case Act::give_back: changed = !stands_still && give_back(which); break;
    case Act::expire: changed = !stands_still && expire(); break;
    case Act::resume:
      changed = std::exchange(stands_still_, false);
      for (std::uint32_t i = 0; changed && i < sizes_.nodes; ++i) tell(i);
      break;
    case Act::greet:
      changed = !stands_still && nodes_[which]->silent;
      if (changed) greet(which);
      break;
    case Act::end: changed = end(which); break;
    case Act::untold_time: changed = sizes_.no_trigger && !stands_still && untold_time(); break;
    case Act::stand_still: changed = !std::exchange(stands_still_, true); break;
    case Act::restart_supervisor:
      supervisor_ = new_supervisor(sizes_);
      stands_still_ = false;
      for (std::uint32_t i = 0; i < sizes_.nodes; ++i) {
        if (!nodes_[i]->silent) greet(i);
      }
      break;
    case Act::lose_node:
      changed = !stands_still && !nodes_[which]->silent;
      if (!changed) break;
      own(nodes_[which]).silent = true;
      own(supervisor_).dispatcher.node_gone(which);
      break;
    case Act::restart_node:
      if (!stands_still) own(supervisor_).dispatcher.node_gone(which);
      nodes_[which] = new_node(sizes_, nodes_[which]->session + 1);
      nodes_[which]->silent = nodes_[which]->anew = stands_still;  // the node sends HELLO when it can send again
      if (!stands_still) own(supervisor_).dispatcher.set_room(which, sizes_.node_slots);
      break;
    case Act::restart_readout: restart_readout(which); break;
    case Act::count: changed = false;
  }
  if (changed && !stands_still_) supervise();
  return changed;
}

/// The supervisor's own work in each turn.
void DrainModel::supervise() {
  Supervisor& supervisor = own(supervisor_);
  const auto is_untold = [this](std::uint64_t id) { return untold(id); };
  const auto asked = supervisor.admission.ask(0, is_untold);
  if (!asked.empty()) supervisor.admission.answer(std::vector(asked.size(), dispatch::Admission::Recorded::no));
  supervisor.admission.admit(supervisor.dispatcher, is_untold, [](std::uint64_t id) { return dispatch::Event{.id = id}; });
  std::uint32_t again = 0;
  supervisor.dispatcher.for_each_waiting([&](const dispatch::Event& event, bool, dispatch::State state) {
    if (state == dispatch::State::again) again |= bit(event.id);
  });
  supervisor.dispatcher.assign(supervisor.clock_ns, [&](std::uint32_t node, const dispatch::Event& event, bool build_only) {
    supervisor.assigned_ns[event.id] = supervisor.clock_ns++;
    supervisor.had[event.id] = supervisor.last_node = node;
    supervisor.again_was_last = (again & bit(event.id)) != 0;
    begin(node, event.id, build_only, build_only && !sizes_.untold_wait_for_room);
  });
}

bool DrainModel::over(std::uint64_t id) const {
  return !supervisor_->dispatcher.knows(id) && ((supervisor_->told | supervisor_->left) & bit(id)) != 0;
}

bool DrainModel::trigger() {
  if (happened_ == sizes_.triggers) return false;
  for (const auto& readout : readouts_) {
    if (readout->outside.size() >= sizes_.waiting) return false;  // the readout is busy
  }
  const std::uint64_t id = happened_;
  if (!stands_still_ && !sizes_.no_trigger) {
    Supervisor& supervisor = own(supervisor_);
    if (supervisor.admission.room_for_triggers(supervisor.dispatcher) == 0) return false;
    supervisor.told |= bit(id);
    (void)supervisor.dispatcher.offer({.id = id});
  }
  ++happened_;
  for (auto& readout : readouts_) own(readout).outside.push_back(id);
  return true;
}

bool DrainModel::build(std::uint32_t which) {
  if (readouts_[which]->outside.empty()) return false;
  Readout& readout = own(readouts_[which]);
  const std::uint64_t id = readout.outside.front();
  FragmentPtr made = fragment(id);
  const std::size_t known = readout.book.has_newest() ? readout.book.newest() + 1 : 0;
  if (readout.book.keep(made, readout.now_ns) == FragmentBook::Outcome::full) {
    readout.book.set_waiting_outside(true);
    return !std::exchange(readout.outside_waits, true);
  }
  readout.outside.pop_front();
  readout.recent.push_back(std::max<std::uint64_t>(known, id + 1) - 1);
  if (readout.recent.size() > kReorder) readout.recent.erase(readout.recent.begin());
  readout.book.set_waiting_outside(!readout.outside.empty());
  readout.outside_waits = !readout.outside.empty();
  return true;
}

bool DrainModel::reorder_time(std::uint32_t which) {
  const Readout& was = *readouts_[which];
  const bool line_moves = !was.recent.empty() && !was.outside_waits && was.book.size() < was.book.most();
  const bool first_waits = sizes_.no_trigger && was.book.has_newest() && !was.book.first();
  if (!line_moves && !first_waits) return false;
  Readout& readout = own(readouts_[which]);
  readout.now_ns += 2;
  readout.book.advance(readout.now_ns);
  if (line_moves) readout.recent.clear();
  return true;
}

bool DrainModel::end(std::uint32_t which) {
  if (happened_ < sizes_.triggers || !readouts_[which]->outside.empty() || readouts_[which]->book.ended()) return false;
  own(readouts_[which]).book.end();
  return true;
}

void DrainModel::restart_readout(std::uint32_t which) {
  readouts_[which] = new_readout(sizes_);
  for (auto& node : nodes_) {
    own(node).collector.on_disconnect(which, 0);
    own(node).collector.on_connect(which, true);
  }
  Supervisor& supervisor = own(supervisor_);
  supervisor.clears.disconnected(which);
  supervisor.clears.connected(which);
  supervisor.span.started_anew(which);
  supervisor.said[which].clear();
}

bool DrainModel::clear(std::uint32_t which) {
  if (supervisor_->clear_list.empty()) return false;
  Supervisor& supervisor = own(supervisor_);
  const std::uint64_t closed = supervisor.clears.batches_closed();
  supervisor.clears.flush(0, true);
  for (Supervisor::Clear& one : supervisor.clear_list) one.batch = std::min(one.batch, closed);
  const auto batch = supervisor.clears.next(which);
  if (batch) {
    Readout& readout = own(readouts_[which]);
    for (const auto& range : batch->ids->ranges) {
      for (std::uint32_t i = 0; i < range.count; ++i) readout.book.clear(range.first + i, readout.now_ns);
    }
    for (const auto& bitmap : batch->ids->bitmaps) {
      for (std::uint32_t i = 0; i < 64; ++i) {
        if ((bitmap.bits >> i & 1) != 0) readout.book.clear(bitmap.first + i, readout.now_ns);
      }
    }
    supervisor.clears.sent(which, batch->sequence);
    supervisor.clears.answered(which, batch->sequence);
    for (Supervisor::Clear& one : supervisor.clear_list) {
      if (one.batch == batch->sequence) one.cleared |= bit(which);
    }
  }
  bool some = false;
  supervisor.clears.take_over(
      [&](const dispatch::ClearBook::Entry& entry) {
        some = true;
        supervisor.clear_list.erase(supervisor.clear_list.begin());
        if (entry.id != dispatch::ClearBook::kNoId) {
          supervisor.dispatcher.cleared(entry.id);
          if ((supervisor.told & bit(entry.id)) == 0) supervisor.left |= bit(entry.id);
        }
        if (entry.node >= sizes_.nodes) return;
        Node& node = own(nodes_[entry.node]);
        if (node.session != entry.session || node.unsafe.empty()) return;
        node.unsafe.erase(node.unsafe.begin());
        --node.said;
      },
      [](std::uint64_t) {});
  return batch || some || supervisor.clears.batches_closed() != closed;
}

/// Does what Supervisor::on_held and Events::add_orphan do without a trigger.
bool DrainModel::survey_all_there_is(std::uint32_t which) {
  using Place = dispatch::CommonSpan::Place;
  const std::string before = text();
  Supervisor& supervisor = own(supervisor_);
  const FragmentBook& book = readouts_[which]->book;
  if (book.first()) supervisor.span.first(which, *book.first());
  if (book.has_newest()) supervisor.span.newest(which, book.newest());
  if (book.ended()) supervisor.span.ended(which);
  supervisor.said[which] =
      fmt::format("{},{},{}", book.first().value_or(9), book.has_newest() ? book.newest() : 9, book.ended());
  (void)supervisor.span.check_time(0);
  book.for_each_id([&](std::uint64_t id) {
    if (supervisor.dispatcher.knows(id)) return;
    if (over(id)) return supervisor.clear(id, UINT32_MAX, 0);
    const Place place = supervisor.span.place_of(id);
    if (place == Place::unknown) return;
    if (place != Place::within) {
      supervisor.left |= bit(id);
      return supervisor.clear(id, UINT32_MAX, 0);
    }
    supervisor.found[id] |= 1U << which;
    supervisor.admission.found(id, which, 0, [&](std::uint64_t found, const dispatch::Holders& holders) {
      return supervisor.span.all_have(found, holders);
    });
  });
  return text() != before;
}

bool DrainModel::untold_time() {
  const std::string before = text();
  Supervisor& supervisor = own(supervisor_);
  (void)supervisor.span.check_time(kFarAway);
  const auto asked = supervisor.admission.ask(kFarAway, [this](std::uint64_t id) { return untold(id); });
  supervisor.admission.answer(std::vector(asked.size(), dispatch::Admission::Recorded::no));
  return text() != before;
}

bool DrainModel::survey(std::uint32_t which) {
  if (sizes_.no_trigger) return survey_all_there_is(which);
  if (readouts_[which]->book.size() == 0) return false;
  bool some = false;
  Supervisor& supervisor = own(supervisor_);
  const std::size_t before = supervisor.admission.untold();
  readouts_[which]->book.for_each_id([&](std::uint64_t id) {
    if (supervisor.dispatcher.knows(id)) return;
    if (over(id)) {
      supervisor.clear(id, UINT32_MAX, 0);
      some = true;
    } else {
      supervisor.admission.found(id, 0);
    }
  });
  return some || supervisor.admission.untold() != before;
}

std::uint64_t DrainModel::next_to_expire() const {
  std::uint64_t next = UINT64_MAX;
  const auto& since = supervisor_->assigned_ns;
  for (std::uint32_t node = 0; node < sizes_.nodes; ++node) {
    supervisor_->dispatcher.for_each_event_of(node, [&](const dispatch::Event& event, bool) {
      if (next == UINT64_MAX || since[event.id] < since[next]) next = event.id;
    });
  }
  return next;
}

bool DrainModel::may_expire() const {
  const std::uint64_t id = next_to_expire();
  return id != UINT64_MAX && (sizes_.time_outs == 0 || time_outs_[id] < sizes_.time_outs);
}

bool DrainModel::expire() {
  const std::uint64_t id = next_to_expire();
  if (id == UINT64_MAX) return false;
  Supervisor& supervisor = own(supervisor_);
  if (supervisor.dispatcher.expire(supervisor.assigned_ns[id] + kFarAway) == 0) return false;
  if (time_outs_[id] < sizes_.time_outs) ++time_outs_[id];
  return true;
}

bool DrainModel::give_back(std::uint32_t which) {
  const Supervisor& supervisor = *supervisor_;
  if (sizes_.untold_wait_for_room || nodes_[which]->silent) return false;
  if (supervisor.dispatcher.waiting_ahead() == 0 || supervisor.dispatcher.room_of(which) > 0) return false;
  // Chooses the newest event that still waits for fragments, as FilterNode::give_back does.
  const Node& has = *nodes_[which];
  const Event* newest = nullptr;
  for (Slot slot = 0; slot < has.slots.size(); ++slot) {
    const Event& one = has.slots[slot];
    if (one.here && has.collector.is_waiting(slot) && (newest == nullptr || one.id > newest->id)) newest = &one;
  }
  if (newest == nullptr || newest->id <= supervisor.dispatcher.oldest_ahead()) return false;
  const Event event = *newest;
  Node& node = own(nodes_[which]);
  drop(node, event.id);
  own(supervisor_).dispatcher.give_back(which, event.id, event.build_only);
  own(supervisor_).dispatcher.set_room(which, node.collector.free_slots());
  return true;
}

void DrainModel::drop(Node& node, std::uint64_t id) {
  for (Slot slot = 0; slot < node.slots.size(); ++slot) {
    if (!node.slots[slot].here || node.slots[slot].id != id) continue;
    node.slots[slot] = {};
    node.collector.end(slot);
  }
}

void DrainModel::begin(std::uint32_t which, std::uint64_t id, bool build_only, bool last) {
  Node& node = own(nodes_[which]);
  drop(node, id);
  const auto slot = node.collector.begin(1);
  if (!slot) return;
  node.slots[*slot] = {.id = id, .build_only = build_only, .last = last, .here = true};
  node.collector.want_all(*slot);
}

/// A node requests all missing fragments once, and finishes complete events.
bool DrainModel::work(std::uint32_t which, bool time_is_over) {
  const Node& was = *nodes_[which];
  if (was.silent) return false;
  const bool idle = std::ranges::none_of(was.slots, &Event::here) && was.said == was.unsafe.size();
  if (idle && (stands_still_ || supervisor_->dispatcher.room_of(which) == was.collector.free_slots())) return false;
  const std::string before = text();
  Node& node = own(nodes_[which]);
  std::vector<Slot> complete;
  if (!time_is_over) {
    node.collector.poll(0, complete);
    while (const auto ask = node.collector.next_request()) {
      const std::uint64_t id = node.slots[ask->slot].id;
      const auto answer = readouts_[ask->readout]->book.find(id).answer;
      using What = EventCollector::Result::What;
      const EventCollector::Result result{.rob = ask->robs.front(),
                                          .what = answer == FragmentBook::Answer::kept      ? What::arrived
                                                  : answer == FragmentBook::Answer::pending ? What::pending
                                                                                            : What::lost};
      node.collector.on_answer(ask->id, std::span(&result, 1), 4, 0);
    }
  }
  node.collector.poll(time_is_over ? 1 : 0, complete);
  for (const Slot slot : complete) finish(node, slot);
  tell(which);
  return text() != before;
}

/// Decides as a filter node does (FilterNode::on_fetched, build). The selection accepts all events.
void DrainModel::finish(Node& node, Slot slot) {
  const Event event = node.slots[slot];
  if (!event.here) return;
  const auto robs = node.collector.ordered_robs();
  const bool empty =
      std::ranges::none_of(robs, [&](auto rob) { return node.collector.state(slot, rob) == RobState::arrived; });
  const bool lacks = node.collector.lost_robs(slot) > 0;
  const bool may_be_there = (node.collector.has_loss(slot, RobLoss::timed_out) && !event.last) ||
                            node.collector.has_loss(slot, RobLoss::readout_away);
  node.slots[slot] = {};
  node.collector.end(slot);
  if (empty && may_be_there) return;  // the node gives the event up, and the supervisor assigns it again
  const Verdict verdict = empty ? Verdict::lost : lacks || event.build_only ? Verdict::debug : Verdict::accepted;
  node.unsafe.push_back({.said = {.id = event.id, .verdict = verdict, .partial = lacks, .build_only = event.build_only}});
}

/// A node's WORK message: decisions and room.
void DrainModel::tell(std::uint32_t which) {
  if (stands_still_ || nodes_[which]->silent) return;
  Node& node = own(nodes_[which]);
  Supervisor& supervisor = own(supervisor_);
  for (; node.said < node.unsafe.size(); ++node.said) {
    const Dispatcher::Decision& decision = node.unsafe[node.said].said;
    const bool counted = supervisor.dispatcher.decide(which, decision) == Dispatcher::Said::counted;
    supervisor.clear(counted ? decision.id : dispatch::ClearBook::kNoId, which, node.session);
  }
  supervisor.dispatcher.set_room(which, node.collector.free_slots());
}

/// A node's HELLO message: its events and its decisions (Nodes::on_hello, reconcile).
void DrainModel::greet(std::uint32_t which) {
  Node& node = own(nodes_[which]);
  Supervisor& supervisor = own(supervisor_);
  node.silent = false;
  ++node.session;
  if (std::exchange(node.anew, false)) supervisor.dispatcher.node_gone(which);
  std::vector<std::uint64_t> undelivered, let_go;
  std::uint32_t had = 0;
  supervisor.dispatcher.for_each_event_of(which, [&](const dispatch::Event& event, bool build_only) {
    const bool held =
        std::ranges::any_of(
            node.slots, [&](const Event& one) { return one.here && one.id == event.id && one.build_only == build_only; }) ||
        std::ranges::any_of(
            node.unsafe, [&](const Decision& one) { return one.said.id == event.id && one.said.build_only == build_only; });
    if (held) had |= bit(event.id);
    if (!held) undelivered.push_back(event.id);
  });
  for (const std::uint64_t id : undelivered) supervisor.dispatcher.undelivered(which, id);
  for (const Event& event : node.slots) {
    if (!event.here) continue;
    if (over(event.id) || !supervisor.dispatcher.adopt({.id = event.id}, which, event.build_only, supervisor.clock_ns)) {
      let_go.push_back(event.id);
    } else if ((had & bit(event.id)) == 0) {
      supervisor.assigned_ns[event.id] = supervisor.clock_ns++;
      supervisor.had[event.id] = which;
    }
  }
  for (const std::uint64_t id : let_go) drop(node, id);
  for (const Decision& decision : node.unsafe) {
    const auto said = over(decision.said.id) ? supervisor.dispatcher.decide(which, decision.said)
                                             : supervisor.dispatcher.adopt_decision(which, decision.said);
    const bool counted = said == Dispatcher::Said::counted;
    supervisor.clear(counted ? decision.said.id : dispatch::ClearBook::kNoId, which, node.session);
  }
  node.said = node.unsafe.size();
  supervisor.dispatcher.set_room(which, node.collector.free_slots());
}

bool DrainModel::round() {
  bool changed = false;
  const auto all = [&](Act what) {
    bool some = false;
    for (std::uint32_t i = 0; i < how_many(what); ++i) some = act(what, i) || some;
    changed = changed || some;
    return some;
  };
  for (const Act what :
       {Act::resume, Act::greet, Act::trigger, Act::build, Act::fetch, Act::clear, Act::survey, Act::give_back})
    all(what);
  if (changed) return true;
  // If nothing else changes, time passes.
  return all(Act::reorder_time) || all(Act::end) || all(Act::untold_time) || all(Act::event_time) || all(Act::expire);
}

bool DrainModel::step() {
  for (const Act what : {Act::resume, Act::greet, Act::trigger, Act::build, Act::fetch, Act::clear, Act::survey,
                         Act::give_back, Act::reorder_time, Act::end, Act::untold_time, Act::event_time, Act::expire}) {
    for (std::uint32_t i = 0; i < how_many(what); ++i) {
      if (act(what, i)) return true;
    }
  }
  return false;
}

bool DrainModel::drained() const {
  const Dispatcher& dispatcher = supervisor_->dispatcher;
  return happened_ == sizes_.triggers && dispatcher.waiting() + dispatcher.assigned() + dispatcher.decided() == 0 &&
         supervisor_->admission.untold() == 0 && supervisor_->clears.entries() == 0 &&
         std::ranges::all_of(readouts_, [](const auto& one) { return one->outside.empty() && one->book.size() == 0; }) &&
         std::ranges::all_of(nodes_, [&](const auto& one) {
           return one->collector.free_slots() == sizes_.node_slots && one->unsafe.empty();
         });
}

std::string DrainModel::wrong() const {
  const Dispatcher& dispatcher = supervisor_->dispatcher;
  if (!dispatcher.adds_up()) return "the dispatcher does not add up";
  dispatch::Admission admission = supervisor_->admission;
  admission.forget_announced([this](std::uint64_t id) { return untold(id); });
  const std::uint64_t undecided = dispatcher.waiting() + dispatcher.assigned() + admission.untold();
  if (undecided > happened_) return "more events are undecided than triggers happened";
  return {};
}

std::string DrainModel::text() const {
  std::string out;
  out.reserve(256);
  const auto add = [&](std::uint64_t value) { out += static_cast<char>('0' + value); };
  add(happened_);
  add(faults_);
  add(stands_still_);
  const Supervisor& supervisor = *supervisor_;
  for (std::uint64_t id = 0; id < happened_; ++id) {
    if (!over(id)) add(time_outs_[id]);
  }
  add(supervisor.told & 63);
  add(supervisor.left & 63);
  supervisor.dispatcher.for_each_waiting([&](const dispatch::Event& event, bool build_only, dispatch::State state) {
    add(event.id * 4 + (state == dispatch::State::again ? 2 : 0) + (build_only ? 1 : 0));
    add(supervisor.had[event.id]);
  });
  add(supervisor.dispatcher.waiting_ahead());
  add(supervisor.again_was_last);
  add(supervisor.last_node);
  // Events of nodes, in the order of their time-outs.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> assigned;
  for (std::uint32_t node = 0; node < sizes_.nodes; ++node) {
    supervisor.dispatcher.for_each_event_of(node, [&](const dispatch::Event& event, bool build_only) {
      assigned.emplace_back(supervisor.assigned_ns[event.id], event.id * 4 + node * 2 + (build_only ? 1 : 0));
    });
    add(supervisor.dispatcher.room_of(node));
  }
  std::ranges::sort(assigned);
  for (const auto& [time, event] : assigned) add(event);
  out += '|';
  add(supervisor.dispatcher.decided());
  for (std::uint64_t id = 0; id < happened_; ++id) add(supervisor.dispatcher.knows(id));
  add(supervisor.admission.untold());
  if (sizes_.no_trigger) {
    for (std::uint64_t id = 0; id < sizes_.triggers; ++id) {
      add(static_cast<std::uint64_t>(supervisor.span.place_of(id)));
      add(untold(id) ? supervisor.found[id] : 0);
    }
    for (const std::string& said : supervisor.said) out += said + ';';
    for (const auto& readout : readouts_) add(readout->book.first().has_value());
  }
  std::uint64_t batch = 0;
  for (std::size_t i = 0; i < supervisor.clear_list.size(); ++i) {
    const Supervisor::Clear& one = supervisor.clear_list[i];
    if (i > 0 && one.batch != supervisor.clear_list[i - 1].batch) ++batch;
    add(std::min<std::uint64_t>(one.id, 7) * 4 +
        (one.node < sizes_.nodes && nodes_[one.node]->session == one.session ? one.node + 1 : 0));
    add(batch * 4 + one.cleared + (one.batch == UINT64_MAX ? 40 : 0));
  }
  for (const auto& node : nodes_) {
    out += '/';
    add(node->silent * 2 + node->anew);
    for (Slot slot = 0; slot < node->slots.size(); ++slot) {
      if (!node->slots[slot].here) continue;
      add(node->slots[slot].id * 4 + node->slots[slot].build_only * 2 + node->slots[slot].last);
      for (const auto rob : node->collector.ordered_robs())
        add(static_cast<std::uint64_t>(node->collector.state(slot, rob)));
    }
    out += ':';
    for (const Decision& decision : node->unsafe)
      add(decision.said.id * 8 + static_cast<std::uint64_t>(decision.said.verdict) * 2 + decision.said.build_only);
    add(node->said);
  }
  for (const auto& readout : readouts_) {
    out += '/';
    for (const std::uint64_t id : readout->outside) add(id);
    out += ':';
    readout->book.for_each_id([&](std::uint64_t id) { add(id); });
    out += ':';
    for (const std::uint64_t id : readout->recent) add(id);
    add(readout->book.ended());
    for (std::uint32_t id = 0; id < sizes_.triggers; ++id) add(static_cast<std::uint64_t>(readout->book.find(id).answer));
    add(readout->outside_waits);
  }
  return out;
}

}  // namespace rodeo::test
