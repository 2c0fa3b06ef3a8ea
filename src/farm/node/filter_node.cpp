#include "farm/node/filter_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/named_counters.h"
#include "base/need.h"
#include "base/sentence.h"
#include "transport/bus.h"
#include "transport/secret.h"

namespace rodeo::farm {

using formats::RecordStream;
using formats::Verdict;
using State = NodeEvent::State;
using enum NodeCounter;

namespace {

constexpr std::uint64_t kShowNs = 50'000'000;
constexpr std::uint64_t kFarewellNs = 10'000'000'000;  // Time after end() in which decisions may become safe.
constexpr std::uint32_t kMostSteps = 64;

const std::vector<RecordStream> kPartialStream{{.type = "debug", .name = "NodePartial", .obeys_lumi_block = false}};
const std::vector<RecordStream> kBuildOnlyStream{{.type = "debug", .name = "NodeBuildOnly", .obeys_lumi_block = false}};
const std::vector<RecordStream> kSelectionStream{{.type = "debug", .name = "NodeSelection", .obeys_lumi_block = false}};

std::uint64_t utc_now_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count());
}

transport::RequesterSettings requester_settings(const NodeSettings& settings) {
  return {.name = settings.name,
          .bus = settings.network.bus.empty() ? transport::default_bus() : settings.network.bus,
          .provider = settings.network.providers.empty() ? "auto" : settings.network.providers.front(),
          .secret = need(transport::read_secret(settings.network.secret_file)),
          .pages = settings.network.pages,
          // A reply may have any size of a message: each ROB that is too large is left out and counted, and the connection
          // survives.
          .most_reply_bytes = 0xffff'ffff};
}

// Returns the streams of a verdict, or nothing if they are not valid.
std::optional<std::vector<RecordStream>> streams_of(const Selected& selected) {
  if (selected.streams.empty() || selected.streams.size() > formats::kMostRecordStreams) return std::nullopt;
  std::vector<RecordStream> streams;
  for (const SelectedStream& one : selected.streams) {
    const bool good = formats::good_stream_text(one.type, formats::kMostStreamType) &&
                      formats::good_stream_text(one.name, formats::kMostStreamName);
    const bool twice = std::ranges::any_of(
        streams, [&](const RecordStream& other) { return other.type == one.type && other.name == one.name; });
    if (!good || twice) return std::nullopt;
    streams.push_back({.type = one.type, .name = one.name, .obeys_lumi_block = one.obeys_lumi_block});
  }
  return streams;
}

}  // namespace

FilterNode::FilterNode(const NodeSettings& settings, MakeSelection make)
    : settings_(settings),
      pool_(std::move(make), settings.workers, settings.slots, settings.idle),
      requester_(requester_settings(settings)),
      supervisor_(settings_, events_, requester_),
      recorders_(settings_, events_, requester_, [this](std::string text) { say(std::move(text)); }) {
  pool_.start();
  events_.context.most_bytes = settings_.most_event_bytes;
  events_.context.checksum = settings_.event_checksum;
  thread_ = std::thread([this] { run(); });
}

FilterNode::~FilterNode() {
  leaving_.store(true, std::memory_order_release);
  thread_.join();
}

void FilterNode::start(std::uint32_t run_number) {
  wanted_run_.store(run_number, std::memory_order_relaxed);
  started_.store(true, std::memory_order_release);
}

void FilterNode::end() { ending_.store(true, std::memory_order_release); }

NodeStatus FilterNode::status() const {
  const std::lock_guard lock(mutex_);
  return shown_;
}

std::vector<std::string> FilterNode::take_messages() {
  const std::lock_guard lock(mutex_);
  return std::exchange(messages_, {});
}

void FilterNode::say(std::string text) {
  const std::lock_guard lock(mutex_);
  if (messages_.size() < 100) messages_.push_back(std::move(text));
}

void FilterNode::fail(const Error& error) {
  if (failure_.empty()) failure_ = base::in_a_line(error);
}

void FilterNode::run() {
  cpu_.attach();
  base::set_thread_name("filter-node");
  base::Backoff backoff(settings_.idle);
  for (;;) {
    const std::uint64_t now_ns = base::steady_now_ns();
    const bool busy = step(now_ns);
    const bool last = must_end(now_ns);
    show(now_ns, last);
    if (last) break;
    if (busy) {
      backoff.reset();
    } else {
      backoff.idle();
    }
  }
  ended_.store(true, std::memory_order_release);
  cpu_.detach();
}

bool FilterNode::must_end(std::uint64_t now_ns) {
  const bool ending = ending_.load(std::memory_order_acquire);
  if (ending && end_by_ns_ == 0) end_by_ns_ = now_ns + kFarewellNs;
  const bool nothing_left =
      collector_ == nullptr || (collector_->free_slots() == settings_.slots && supervisor_.unsafe_decisions() == 0);
  return leaving_.load(std::memory_order_acquire) || !failure_.empty() || ((ending || run_over_) && nothing_left) ||
         (ending && now_ns >= end_by_ns_);
}

bool FilterNode::step(std::uint64_t now_ns) {
  replies_.clear();
  requester_.poll(now_ns, replies_);
  bool busy = !replies_.empty();
  for (Requester::Reply& reply : replies_) on_reply(reply, now_ns);
  if (!started_.load(std::memory_order_acquire)) return busy;
  if (supervisor_.needs_hello(now_ns)) supervisor_.send_hello(free_slots(), now_ns);
  if (collector_ == nullptr) return busy;
  readouts_->check_connections(now_ns);
  if (readouts_->other_numbering()) fail(*readouts_->other_numbering());
  while (SelectionJob* job = pool_.next_finished()) {
    busy = true;
    on_selected(*job, now_ns);
  }
  complete_.clear();
  collector_->poll(now_ns, complete_);
  busy = busy || !complete_.empty();
  for (std::size_t i = 0; i < complete_.size(); ++i) on_fetched(complete_[i], now_ns);
  readouts_->request_fragments(now_ns);
  recorders_.send(now_ns);
  if (supervisor_.open()) supervisor_.send_work(free_slots(), now_ns);
  return busy;
}

void FilterNode::on_reply(Requester::Reply& reply, std::uint64_t now_ns) {
  if (readouts_ != nullptr && readouts_->on_reply(reply, now_ns)) return;
  using Progress = RecorderLinks::Progress;
  const auto [progress, slot, copy] = recorders_.on_reply(reply, now_ns);
  switch (progress) {
    case Progress::other_request: break;
    case Progress::under_way: return;
    case Progress::safe: return decide(slot, copy.value_or(events_.slots[slot].verdict), now_ns, copy.has_value());
    case Progress::given_up:
    case Progress::dropped: return free_slot(slot);
  }
  const auto received = supervisor_.on_reply(reply, now_ns);
  if (!received) return fail(received.error());
  if (*received == SupervisorLink::Received::welcome) return on_welcome(now_ns);
  if (*received != SupervisorLink::Received::orders) return;
  const formats::NodeOrders& orders = supervisor_.orders();
  if (orders.over()) run_over_ = true;
  give_back(orders.give_back, orders.newer_than);
  for (const formats::AssignedEvent& event : orders.events) begin(event, now_ns);
}

void FilterNode::on_welcome(std::uint64_t now_ns) {
  const formats::NodeWelcome& welcome = supervisor_.welcome();
  EventContext& context = events_.context;
  const std::uint32_t run = collector_ != nullptr ? context.run_number : wanted_run_.load(std::memory_order_relaxed);
  if (run != 0 && welcome.run_number != run)
    return fail({"farm.other_run",
                 fmt::format("the supervisor {} has run {}, and this node has run {}", settings_.supervisor,
                             welcome.run_number, run),
                 "", "start both for the same run"});
  event_timeout_ns_ = welcome.event_timeout_ns;
  if (collector_ == nullptr) {
    context.run_number = welcome.run_number;
    context.run_type = welcome.run_type;
    system_ = welcome.system;
    collector_ = std::make_unique<EventCollector>(CollectorSettings{.slots = settings_.slots,
                                                                    .credit_fragments = settings_.credit_fragments,
                                                                    .credit_bytes = settings_.credit_bytes,
                                                                    .pending_retry = settings_.pending_retry,
                                                                    .readout_grace = settings_.readout_grace},
                                                  static_cast<std::uint32_t>(welcome.readouts.size()));
    events_.slots = std::vector<NodeEvent>(settings_.slots);
    readouts_ = std::make_unique<ReadoutLinks>(settings_, events_, requester_, *collector_,
                                               [this](std::string text) { say(std::move(text)); });
    for (const std::string& name : welcome.readouts) readouts_->add(name, now_ns);
    for (const std::string& name : welcome.recorders) recorders_.add(name);
    if (recorders_.empty()) say("there is no recorder: accepted events are not recorded");
    described_by_ns_ = now_ns + static_cast<std::uint64_t>(settings_.readout_grace.count());
    say(fmt::format("run {}: {}, {}", welcome.run_number, base::counted(welcome.readouts.size(), "readout"),
                    base::counted(welcome.recorders.size(), "recorder")));
  }
  supervisor_.accept_welcome();
  for (const std::uint64_t id : welcome.let_go) drop_all_of(id);
}

std::uint32_t FilterNode::free_slots() const {
  if (collector_ == nullptr || ending_.load(std::memory_order_relaxed) || run_over_) return 0;
  if (all_selections_hang_) return 0;
  if (!collector_->any_connected()) return 0;  // Without a readout, the node could only give events up.
  if (!readouts_->all_described() && base::steady_now_ns() < described_by_ns_) return 0;
  return collector_->free_slots();
}

// ---- Events

void FilterNode::begin(const formats::AssignedEvent& assigned, std::uint64_t now_ns) {
  events_.counters.add(NodeCounter::assigned);
  if (assigned.build_only()) events_.counters.add(build_only);
  drop_all_of(assigned.id);  // The earlier assignment timed out, and its work here is void.
  // Fragments may take half of the event's time.
  const auto slot = collector_->begin(now_ns + event_timeout_ns_ / 2);
  if (!slot) {
    events_.counters.add(given_up);
    return;
  }
  NodeEvent& event = events_.slots[*slot];
  event.state = State::fetching;
  event.dropped = event.wants_all = event.built = false;
  event.asked_ns = 0;
  event.all_readouts_known = readouts_->all_described();
  event.assigned = assigned;
  event.assigned_ns = now_ns;
  event.status = assigned.build_only() ? formats::event_status::kRecovered : 0;
  event.job.slot = *slot;
  event.job.event.step = 0;
  event.data.begin(assigned, collector_->robs(), utc_now_ns());
  if (settings_.building == Building::steps && !assigned.build_only() && !pool_.first_robs().empty()) {
    std::vector<EventCollector::RobIndex> first;
    for (const SourceId id : pool_.first_robs()) {
      if (const auto rob = collector_->find(id)) first.push_back(*rob);
    }
    if (first.size() == pool_.first_robs().size()) return collector_->want(*slot, first);
    // No readout has one of these ROBs. The selection gets the whole event and decides.
  }
  want_all(*slot);
}

void FilterNode::want_all(Slot slot) {
  events_.slots[slot].wants_all = true;
  collector_->want_all(slot);
}

/// True if the event waits for fragments and no selection has seen it.
bool FilterNode::may_give_back(Slot slot) const {
  const NodeEvent& event = events_.slots[slot];
  const bool unseen = (event.state == State::fetching && event.job.event.step == 0) ||
                      (event.state == State::completing && event.assigned.build_only());
  return unseen && !event.dropped && collector_->is_waiting(slot);
}

/// Older events fill the readouts, and newer ones wait until these are cleared. So the newest events go back first.
void FilterNode::give_back(std::uint32_t count, std::uint64_t newer_than) {
  for (; count > 0; --count) {
    std::optional<Slot> newest;
    for (Slot slot = 0; slot < events_.slots.size(); ++slot) {
      if (may_give_back(slot) && (!newest || events_.slots[slot].assigned.id > events_.slots[*newest].assigned.id))
        newest = slot;
    }
    if (!newest || events_.slots[*newest].assigned.id <= newer_than) return;
    const formats::AssignedEvent& event = events_.slots[*newest].assigned;
    supervisor_.decide({.id = event.id,
                        .verdict = Verdict::given_back,
                        .flags = event.build_only() ? formats::EventDecision::kBuildOnly : std::uint8_t{0}});
    events_.counters.add(given_back);
    free_slot(*newest);
  }
}

void FilterNode::drop(Slot slot) {
  NodeEvent& event = events_.slots[slot];
  events_.counters.add(let_go);
  event.dropped = true;
  if (event.state == State::selecting) return;  // on_selected() frees the slot later.
  if (!recorders_.cancel(slot)) free_slot(slot);
}

void FilterNode::drop_all_of(std::uint64_t id) {
  for (Slot slot = 0; slot < events_.slots.size(); ++slot) {
    if (events_.slots[slot].is_active() && events_.slots[slot].assigned.id == id) drop(slot);
  }
}

void FilterNode::free_slot(Slot slot) {
  NodeEvent& event = events_.slots[slot];
  recorders_.end(slot);
  event.state = State::free;
  event.data.end();
  collector_->end(slot);
}

void FilterNode::on_fetched(Slot slot, std::uint64_t now_ns) {
  NodeEvent& event = events_.slots[slot];
  if (event.state != State::fetching && event.state != State::completing) return;
  if (event.asked_ns != 0) collecting_.record(now_ns - std::exchange(event.asked_ns, 0));
  if (event.wants_all && !std::exchange(event.built, true)) building_.record(now_ns - event.assigned_ns);
  const bool lacks = lacks_fragments(slot);
  if (event.state == State::fetching && !lacks && !event.assigned.build_only()) return select(slot);
  if (event.state == State::fetching) {
    // The selection does not see the event: its other fragments are fetched and recorded.
    event.state = State::completing;
    event.verdict = Verdict::debug;
    event.streams = event.assigned.build_only() ? kBuildOnlyStream : kPartialStream;
    want_all(slot);
    return;  // If no fragment is missing, the event is complete again at once.
  }
  build(slot, now_ns);
}

void FilterNode::build(Slot slot, std::uint64_t now_ns) {
  NodeEvent& event = events_.slots[slot];
  if (event.data.empty()) {
    // A readout out of reach may have the event, and another node may reach that readout. The other readouts may still get
    // the event, but not for ever.
    const bool may_come = collector_->has_loss(slot, RobLoss::timed_out) && !event.assigned.last();
    const bool may_be_there = !event.all_readouts_known || may_come || collector_->has_loss(slot, RobLoss::readout_away);
    const bool bad = collector_->has_loss(slot, RobLoss::bad);
    // Each readout has said that it has nothing, or has restarted since.
    if (!may_be_there && !bad) return decide(slot, Verdict::lost, now_ns);
    // Two nodes could keep none of its fragments, and a third one could not either. The event is recorded without fragments.
    const bool last = !may_be_there && event.assigned.build_only();
    if (!last) {
      events_.counters.add(given_up);
      return free_slot(slot);
    }
  }
  make_record(slot, now_ns);
}

void FilterNode::select(Slot slot) {
  NodeEvent& event = events_.slots[slot];
  event.state = State::selecting;
  const std::uint32_t step = event.job.event.step;
  event.job.event = event.data.view(events_.context, *collector_, step);
  pool_.submit(event.job);
}

void FilterNode::on_selected(SelectionJob& job, std::uint64_t now_ns) {
  const Slot slot = job.slot;
  NodeEvent& event = events_.slots[slot];
  if (event.dropped) return free_slot(slot);
  const auto to_debug = [&](NodeCounter why, const std::string& text) {
    events_.counters.add(why);
    if (events_.counters.read(why) <= 10) say(fmt::format("selection of event {}: {}", event.assigned.id, text));
    event.status |= formats::event_status::kProcessingProblem;
    keep(slot, Verdict::debug, kSelectionStream);
  };
  if (!job.error.empty()) return to_debug(selection_failed, job.error);
  switch (job.selected.verdict) {
    case Selected::Verdict::rejected: return decide(slot, Verdict::rejected, now_ns);
    case Selected::Verdict::accepted: {
      auto streams = streams_of(job.selected);
      if (!streams) return to_debug(bad_selection, "its streams are missing, too many, listed twice, or have bad names");
      // The streams decide the verdict, because another node may have to derive the verdict from the files alone.
      const bool debug = std::ranges::all_of(*streams, [](const RecordStream& one) { return one.type == "debug"; });
      return keep(slot, debug ? Verdict::debug : Verdict::accepted, std::move(*streams));
    }
    case Selected::Verdict::more: break;
  }
  if (++job.event.step > kMostSteps) return to_debug(bad_selection, "it asked for further ROBs too often");
  std::vector<EventCollector::RobIndex> robs;
  for (const SourceId id : job.selected.robs) {
    const auto rob = collector_->find(id);
    if (!rob) return to_debug(bad_selection, fmt::format("it asks for the ROB {:#010x}, which no readout has", id.value));
    robs.push_back(*rob);
  }
  event.state = State::fetching;
  if (robs.empty()) {
    want_all(slot);
  } else {
    collector_->want(slot, robs);
  }
}

void FilterNode::keep(Slot slot, Verdict verdict, std::vector<RecordStream> streams) {
  NodeEvent& event = events_.slots[slot];
  event.verdict = verdict;
  event.streams = std::move(streams);
  event.state = State::completing;
  want_all(slot);  // Fetches the missing fragments; without any, the event is complete at once.
}

void FilterNode::make_record(Slot slot, std::uint64_t now_ns) {
  NodeEvent& event = events_.slots[slot];
  const bool lacks = lacks_fragments(slot);
  event.data.make_record({.streams = event.streams, .status = event.status, .partial = lacks}, slot, *collector_,
                         events_.context, events_.data_counters);
  event.state = State::recording;
  if (recorders_.empty()) return decide(slot, event.verdict, now_ns);
  recorders_.begin(slot, now_ns);
}

void FilterNode::decide(Slot slot, Verdict verdict, std::uint64_t now_ns, bool another_copy) {
  NodeEvent& event = events_.slots[slot];
  const bool recorded = event.state == State::recording && !recorders_.empty();
  const bool lacks = verdict != Verdict::rejected && !another_copy && lacks_fragments(slot);
  formats::EventDecision decision{.id = event.assigned.id, .verdict = verdict};
  if (recorded) decision.bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(event.data.event_bytes(), 0xffffffff));
  if (lacks) decision.flags |= formats::EventDecision::kPartial;
  if (event.assigned.build_only()) decision.flags |= formats::EventDecision::kBuildOnly;
  supervisor_.decide(decision);
  switch (verdict) {
    case Verdict::accepted: events_.counters.add(accepted); break;
    case Verdict::rejected: events_.counters.add(rejected); break;
    case Verdict::debug: events_.counters.add(debug); break;
    case Verdict::lost: events_.counters.add(NodeCounter::lost); break;
    case Verdict::given_back: break;
  }
  if (lacks) events_.counters.add(partial);
  deciding_.record(now_ns - event.assigned_ns);
  free_slot(slot);
}

// A thread that hangs in user code cannot be ended. If all threads hang, the node accepts no more events and logs this.
void FilterNode::check_selections(std::uint64_t now_ns, NodeStatus& status) {
  for (const NodeEvent& event : events_.slots) {
    const std::uint64_t began_ns = event.state == State::selecting ? event.job.began_ns.load(std::memory_order_relaxed) : 0;
    if (began_ns == 0 || began_ns > now_ns) continue;
    status.selecting_longest_ns = std::max(status.selecting_longest_ns, now_ns - began_ns);
    status.hanging += now_ns - began_ns > event_timeout_ns_ ? 1 : 0;
  }
  const bool all = status.hanging >= settings_.workers;
  if (all && !all_selections_hang_)
    say(
        fmt::format("the selection {} hangs: {} of {} threads have been at one event for more than event_timeout; no "
                    "event is accepted",
                    settings_.selection.type, status.hanging, settings_.workers));
  if (!all && all_selections_hang_) say("the selection works again: events are accepted");
  all_selections_hang_ = all;
}

void FilterNode::show(std::uint64_t now_ns, bool last) {
  if (!last && now_ns - shown_ns_ < kShowNs) return;
  shown_ns_ = now_ns;
  NodeStatus status;
  status.connected = supervisor_.connected();
  status.over = run_over_;
  status.run_number = events_.context.run_number;
  status.system = system_;
  status.supervisor_trouble = supervisor_.trouble();
  const auto append = [&](const std::vector<NamedCounter>& counters) {
    status.counters.insert(status.counters.end(), counters.begin(), counters.end());
  };
  append(base::named_counters(events_.counters, kNodeCounters, [](NodeCounter) { return true; }));
  if (collector_ != nullptr) {
    append(base::named_counters(collector_->counters(), kCollectorCounters, [](CollectorCounter) { return true; }));
    status.slots_used = settings_.slots - collector_->free_slots();
    status.fragments_under_way = collector_->fragments_under_way();
    status.bytes_under_way = collector_->bytes_under_way();
  }
  append(base::named_counters(events_.data_counters, kDataCounters, [](DataCounter) { return true; }));
  append(pool_.counters());
  for (const NamedCounter& counter : requester_.counters())
    status.counters.push_back({"network_" + counter.name, counter.value});
  for (const NodeEvent& event : events_.slots) {
    status.fetching += event.state == State::fetching || event.state == State::completing ? 1 : 0;
    status.selecting += event.state == State::selecting ? 1 : 0;
    status.recording += event.state == State::recording ? 1 : 0;
  }
  check_selections(now_ns, status);
  status.unsafe_decisions = supervisor_.unsafe_decisions();
  if (readouts_ != nullptr) status.readouts = readouts_->peers();
  status.recorders = recorders_.peers();
  status.cpu_seconds = cpu_.seconds();
  status.selection_cpu_seconds = pool_.cpu_seconds();
  base::LatencySummary collecting;
  collecting_.add_to(collecting);
  base::LatencySummary building;
  building_.add_to(building);
  base::LatencySummary deciding;
  deciding_.add_to(deciding);
  status.collecting_p50_ns = collecting.percentile_ns(0.5);
  status.collecting_p99_ns = collecting.percentile_ns(0.99);
  status.building_p50_ns = building.percentile_ns(0.5);
  status.building_p99_ns = building.percentile_ns(0.99);
  status.deciding_p50_ns = deciding.percentile_ns(0.5);
  status.deciding_p99_ns = deciding.percentile_ns(0.99);
  status.failure = failure_;
  const std::lock_guard lock(mutex_);
  shown_ = std::move(status);
}

}  // namespace rodeo::farm
