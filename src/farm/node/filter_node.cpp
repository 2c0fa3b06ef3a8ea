#include "farm/node/filter_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/named_counters.h"
#include "base/sentence.h"
#include "formats/draw.h"
#include "formats/fragment_request.h"
#include "transport/bus.h"
#include "transport/secret.h"

namespace rodeo::farm {

using formats::AssignmentKind;
using formats::AssignmentRefusal;
using formats::RecordStatus;
using formats::RecordStream;
using formats::Verdict;
using Outcome = transport::Requester::Outcome;
using enum NodeCounter;

namespace {

constexpr std::uint64_t kShowNs = 50'000'000;
constexpr std::uint64_t kLookNs = 1'000'000;
constexpr std::uint64_t kAgainNs = 100'000'000;        // HELLO, DESCRIBE
constexpr std::uint64_t kRecordAgainNs = 50'000'000;   // the recorder did not answer
constexpr std::uint64_t kAllRefusedNs = 500'000'000;   // each recorder has refused
constexpr std::uint64_t kFarewellNs = 10'000'000'000;  // after end(): for decisions to become safe
constexpr std::uint32_t kMostSteps = 64;

const std::vector<RecordStream> kPartialStream{{.type = "debug", .name = "NodePartial", .obeys_lumi_block = false}};
const std::vector<RecordStream> kBuildOnlyStream{{.type = "debug", .name = "NodeBuildOnly", .obeys_lumi_block = false}};
const std::vector<RecordStream> kSelectionStream{{.type = "debug", .name = "NodeSelection", .obeys_lumi_block = false}};

std::uint64_t utc_now_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count());
}

std::uint64_t random_number() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random() | 1;
}

transport::RequesterSettings requester_settings(const NodeSettings& settings) {
  const auto secret = transport::read_secret(settings.network.secret_file);
  if (!secret) throw SetupError(secret.error());
  return {.name = settings.name,
          .bus = settings.network.bus.empty() ? transport::default_bus() : settings.network.bus,
          .provider = settings.network.providers.empty() ? "auto" : settings.network.providers.front(),
          .secret = *secret,
          .pages = settings.network.pages};
}

// The streams of a verdict that can be carried out; nothing: it cannot.
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

std::uint64_t NodeStatus::operator[](std::string_view counter) const { return base::counter_value(counters, counter); }

FilterNode::FilterNode(const NodeSettings& settings, MakeSelection make)
    : settings_(settings),
      pool_(std::move(make), settings.workers, settings.slots, settings.idle),
      requester_(requester_settings(settings)),
      session_(settings.name, random_number()) {
  pool_.start();
  supervisor_ = requester_.add(settings_.supervisor);
  context_.most_bytes = settings_.most_event_bytes;
  context_.checksum = settings_.event_checksum;
  pending_.reserve(4096);
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
    const bool busy = turn(now_ns);
    const bool ending = ending_.load(std::memory_order_acquire);
    if (ending && leave_at_ns_ == 0) leave_at_ns_ = now_ns + kFarewellNs;
    const bool nothing_left =
        collector_ == nullptr || (collector_->free_slots() == settings_.slots && session_.unsafe() == 0);
    const bool last = leaving_.load(std::memory_order_acquire) || !failure_.empty() || ((ending || over_) && nothing_left) ||
                      (ending && now_ns >= leave_at_ns_);
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

bool FilterNode::turn(std::uint64_t now_ns) {
  replies_.clear();
  requester_.poll(now_ns, replies_);
  bool busy = !replies_.empty();
  for (Requester::Reply& reply : replies_) take_reply(reply, now_ns);
  if (!started_.load(std::memory_order_acquire)) return busy;
  if (requester_.connections(supervisor_) != greeted_connections_) session_.close();
  if (!session_.open() && !greeting_ && now_ns >= hello_at_ns_ && requester_.connected(supervisor_)) say_hello(now_ns);
  if (collector_ == nullptr) return busy;
  if (now_ns - looked_ns_ >= kLookNs) {
    looked_ns_ = now_ns;
    look_after_readouts(now_ns);
  }
  while (SelectionJob* job = pool_.take()) {
    busy = true;
    selected(*job, now_ns);
  }
  complete_.clear();
  collector_->poll(now_ns, complete_);
  busy = busy || !complete_.empty();
  for (std::size_t i = 0; i < complete_.size(); ++i) fetched(complete_[i], now_ns);
  fetch(now_ns);
  if (recording_ > 0) record(now_ns);
  if (session_.open()) say_work(now_ns);
  return busy;
}

void FilterNode::take_reply(Requester::Reply& reply, std::uint64_t now_ns) {
  const auto found = pending_.find(reply.request);
  if (found == pending_.end()) return;
  const Pending pending = found->second;
  pending_.erase(found);
  switch (pending.what) {
    case Pending::What::hello: return take_welcome(reply, now_ns);
    case Pending::What::work:
      // An answer to what was said before the last HELLO is no answer any more.
      if (pending.number == greetings_) take_orders(reply, now_ns);
      return;
    case Pending::What::describe: return take_description(pending.number, reply, now_ns);
    case Pending::What::fetch: return take_fragments(pending.number, pending.slot, reply, now_ns);
    case Pending::What::have: return take_have_answer(pending.number, reply, now_ns);
    case Pending::What::record: return take_record_answer(pending.number, reply, now_ns);
  }
}

// ---- The supervisor

std::uint32_t FilterNode::slots_free() const {
  if (collector_ == nullptr || ending_.load(std::memory_order_relaxed) || over_) return 0;
  if (!all_described() && base::steady_now_ns() < described_by_ns_) return 0;
  return collector_->free_slots();
}

void FilterNode::say_hello(std::uint64_t now_ns) {
  std::vector<formats::AssignedEvent> undecided;
  for (const Event& event : events_) {
    if (event.state != State::free && !event.dropped) undecided.push_back(event.assigned);
  }
  hello_.clear();
  formats::encode(session_.hello(slots_free(), std::move(undecided)), hello_);
  hello_parts_.assign(1, hello_);
  greeted_connections_ = requester_.connections(supervisor_);
  ++greetings_;
  works_under_way_ = 0;
  const auto request = requester_.ask(supervisor_, static_cast<std::uint16_t>(AssignmentKind::hello),
                                      transport::MessageParts(hello_parts_), std::chrono::seconds{5});
  if (!request) {
    hello_at_ns_ = now_ns + kAgainNs;
    return;
  }
  greeting_ = true;
  pending_.emplace(*request, Pending{.what = Pending::What::hello});
}

void FilterNode::take_welcome(Requester::Reply& reply, std::uint64_t now_ns) {
  greeting_ = false;
  hello_at_ns_ = now_ns + kAgainNs;
  if (reply.outcome == Outcome::refused) {
    const auto why = static_cast<AssignmentRefusal>(reply.status);
    if (why == AssignmentRefusal::bad_message || why == AssignmentRefusal::version)
      fail({"farm.other_version", fmt::format("the supervisor {} does not understand this node", settings_.supervisor), "",
            "both must be of the same version of Rodeo"});
    return;
  }
  if (reply.outcome != Outcome::answered) return;
  formats::NodeWelcome welcome;
  if (!formats::decode(reply.message.in_one_piece(scratch_), welcome) || welcome.version != formats::kAssignmentsVersion) {
    counters_.add(bad_orders);
    return fail({"farm.other_version", fmt::format("the answer of the supervisor {} cannot be read", settings_.supervisor),
                 "", "both must be of the same version of Rodeo"});
  }
  const std::uint32_t wanted = wanted_run_.load(std::memory_order_relaxed);
  const std::uint32_t run = collector_ != nullptr ? context_.run_number : wanted;
  if (run != 0 && welcome.run_number != run)
    return fail({"farm.other_run",
                 fmt::format("the supervisor {} has run {}, this node {}", settings_.supervisor, welcome.run_number, run),
                 "", "start both for the same run"});
  event_timeout_ns_ = welcome.event_timeout_ns;
  patience_ns_ = welcome.patience_ns;
  if (collector_ == nullptr) {
    context_.run_number = welcome.run_number;
    context_.run_type = welcome.run_type;
    system_ = welcome.system;
    collector_ = std::make_unique<EventCollector>(CollectorSettings{.slots = settings_.slots,
                                                                    .credit_fragments = settings_.credit_fragments,
                                                                    .credit_bytes = settings_.credit_bytes,
                                                                    .pending_retry = settings_.pending_retry,
                                                                    .readout_grace = settings_.readout_grace},
                                                  static_cast<std::uint32_t>(welcome.readouts.size()));
    events_ = std::vector<Event>(settings_.slots);
    for (const std::string& name : welcome.readouts) {
      collector_->down(static_cast<std::uint32_t>(readouts_.size()), now_ns);
      readouts_.push_back({.name = name, .service = requester_.add(name)});
    }
    for (const std::string& name : welcome.recorders) recorders_.push_back({.name = name, .service = requester_.add(name)});
    if (recorders_.empty()) say("there is no recorder: what is accepted is not recorded");
    described_by_ns_ = now_ns + static_cast<std::uint64_t>(settings_.readout_grace.count());
    say(fmt::format("run {}: {}, {}", welcome.run_number, base::counted(readouts_.size(), "readout"),
                    base::counted(recorders_.size(), "recorder")));
  }
  session_.welcome(welcome);
  for (const std::uint64_t id : welcome.let_go) {
    for (Slot slot = 0; slot < events_.size(); ++slot) {
      if (events_[slot].state != State::free && !events_[slot].dropped && events_[slot].assigned.id == id) drop(slot);
    }
  }
}

void FilterNode::say_work(std::uint64_t now_ns) {
  const std::uint32_t slots = slots_free();
  if (works_under_way_ >= 2 || (works_under_way_ == 1 && !session_.news(slots))) return;
  if (!requester_.connected(supervisor_)) return;
  bytes_.clear();
  formats::encode(session_.work(slots), bytes_);
  const auto request = requester_.ask(supervisor_, static_cast<std::uint16_t>(AssignmentKind::work), std::span(bytes_),
                                      std::chrono::nanoseconds(patience_ns_) + std::chrono::seconds{2});
  if (!request) {
    // What was to be said is not: it is said again, all of it.
    session_.close();
    hello_at_ns_ = now_ns + kAgainNs;
    return;
  }
  ++works_under_way_;
  pending_.emplace(*request, Pending{.what = Pending::What::work, .number = greetings_});
}

void FilterNode::take_orders(Requester::Reply& reply, std::uint64_t now_ns) {
  --works_under_way_;
  if (!session_.open()) return;
  if (reply.outcome != Outcome::answered) {
    session_.close();
    return;
  }
  if (!formats::decode(reply.message.in_one_piece(scratch_), orders_) || !session_.orders(orders_)) {
    counters_.add(bad_orders);
    session_.close();
    hello_at_ns_ = now_ns + kAgainNs;
    return;
  }
  if (orders_.over()) over_ = true;
  for (const formats::AssignedEvent& event : orders_.events) begin(event, now_ns);
}

// ---- Readouts

bool FilterNode::all_described() const { return std::ranges::all_of(readouts_, &Readout::described); }

void FilterNode::look_after_readouts(std::uint64_t now_ns) {
  for (std::uint32_t i = 0; i < readouts_.size(); ++i) {
    Readout& readout = readouts_[i];
    const bool connected = requester_.connected(readout.service);
    if (connected && !readout.connected) {
      const std::uint64_t instance = requester_.instance(readout.service);
      const bool anew = readout.instance != 0 && instance != readout.instance;
      if (anew) {
        say(readout.name + " was started anew: what it held is lost");
        readout.described = false;
      }
      readout.instance = instance;
      collector_->up(i, anew);
    } else if (!connected && readout.connected) {
      say(readout.name + " is gone");
      readout.describing = false;
      collector_->down(i, now_ns);
    }
    readout.connected = connected;
    if (!connected || readout.described || readout.describing || now_ns < readout.describe_at_ns) continue;
    readout.describe_at_ns = now_ns + kAgainNs;
    const auto request = requester_.ask(readout.service, static_cast<std::uint16_t>(formats::FragmentRequest::describe),
                                        std::span<const std::byte>{}, std::chrono::seconds{2});
    if (!request) continue;
    readout.describing = true;
    pending_.emplace(*request, Pending{.what = Pending::What::describe, .number = i});
  }
}

void FilterNode::take_description(std::uint32_t number, Requester::Reply& reply, std::uint64_t now_ns) {
  Readout& readout = readouts_[number];
  readout.describing = false;
  readout.describe_at_ns = now_ns + kAgainNs;
  if (reply.outcome != Outcome::answered) return;
  const auto description = formats::read_describe_reply(reply.message.in_one_piece(scratch_));
  if (!description)
    return say(fmt::format("{} describes itself as nobody can read: {}", readout.name, description.error().message()));
  if (description->run_number == 0) return;  // it waits for its run
  if (description->run_number != context_.run_number) {
    readout.describe_at_ns = now_ns + 10 * kAgainNs;
    return say(fmt::format("{} has run {}, not {}: nothing is asked of it", readout.name, description->run_number,
                           context_.run_number));
  }
  readout.described = true;
  collector_->describe(number, description->robs);
}

void FilterNode::fetch(std::uint64_t now_ns) {
  while (const auto ask = collector_->next()) {
    formats::FetchRequest fetch{.id = {events_[ask->slot].assigned.l1id()},
                                .wait_us = static_cast<std::uint32_t>(settings_.fetch_wait.count() / 1000)};
    if (!ask->all || ask->robs.size() > formats::kMostFetchRobs) {
      for (const auto rob : ask->robs.first(std::min(ask->robs.size(), formats::kMostFetchRobs)))
        fetch.robs.push_back(collector_->source_id(rob));
    }
    bytes_.clear();
    formats::append_fetch_request(bytes_, fetch);
    const auto request =
        requester_.ask(readouts_[ask->readout].service, static_cast<std::uint16_t>(formats::FragmentRequest::fetch),
                       std::span<const std::byte>(bytes_), settings_.fetch_timeout + settings_.fetch_wait);
    if (!request) {
      collector_->not_sent(ask->id, now_ns);
      return;
    }
    if (events_[ask->slot].asked_ns == 0) events_[ask->slot].asked_ns = now_ns;
    pending_.emplace(*request, Pending{.what = Pending::What::fetch, .number = ask->id, .slot = ask->slot});
  }
}

void FilterNode::take_fragments(EventCollector::AskId ask, Slot slot, Requester::Reply& reply, std::uint64_t now_ns) {
  const bool answered = reply.outcome == Outcome::answered;
  if (!answered || !collector_->awaited(ask, slot)) {
    const auto why = static_cast<formats::FragmentRefusal>(reply.status);
    const bool for_good = reply.outcome == Outcome::refused && why != formats::FragmentRefusal::busy;
    collector_->failed(ask, for_good, now_ns);
    return;
  }
  asked_.clear();
  for (const auto rob : collector_->robs_of_ask(ask)) {
    if (collector_->state(slot, rob) == RobState::asked) asked_.push_back(rob);
  }
  results_.clear();
  const std::uint64_t bytes =
      events_[slot].data.take(std::move(reply.message), asked_, *collector_, context_, results_, data_counters_);
  collector_->answered(ask, results_, bytes, now_ns);
}

// ---- Events

void FilterNode::begin(const formats::AssignedEvent& assigned, std::uint64_t now_ns) {
  counters_.add(NodeCounter::assigned);
  if (assigned.build_only()) counters_.add(build_only);
  for (Slot slot = 0; slot < events_.size(); ++slot) {
    // Its time was over; what is done with it here is nobody's any more.
    if (events_[slot].state != State::free && !events_[slot].dropped && events_[slot].assigned.id == assigned.id) drop(slot);
  }
  // Of its time half is for fragments.
  const auto slot = collector_->begin(now_ns + event_timeout_ns_ / 2);
  if (!slot) {
    counters_.add(given_up);
    return;
  }
  Event& event = events_[*slot];
  event.state = State::fetching;
  event.dropped = event.wants_all = event.built = false;
  event.knew_all = all_described();
  event.assigned = assigned;
  event.assigned_ns = now_ns;
  event.asked_ns = 0;
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
    // One that nobody has: the selection sees all there is, and says what it makes of that.
  }
  want_all(*slot);
}

void FilterNode::want_all(Slot slot) {
  events_[slot].wants_all = true;
  collector_->want_all(slot);
}

void FilterNode::drop(Slot slot) {
  Event& event = events_[slot];
  counters_.add(let_go);
  event.dropped = true;
  if (event.state == State::selecting) return;  // ends when the selection does
  if (event.request) {
    requester_.cancel(*event.request);
    return;
  }
  free_slot(slot);
}

void FilterNode::free_slot(Slot slot) {
  Event& event = events_[slot];
  if (event.state == State::recording) --recording_;
  event.state = State::free;
  event.data.end();
  collector_->end(slot);
}

void FilterNode::fetched(Slot slot, std::uint64_t now_ns) {
  Event& event = events_[slot];
  if (event.state != State::fetching && event.state != State::completing) return;
  if (event.asked_ns != 0) collecting_.record(now_ns - std::exchange(event.asked_ns, 0));
  if (event.wants_all && !std::exchange(event.built, true)) building_.record(now_ns - event.assigned_ns);
  const bool lacks = lacks_fragments(slot);
  if (event.state == State::fetching && !lacks && !event.assigned.build_only()) return select(slot);
  if (event.state == State::fetching) {
    // It is not shown to the selection: whatever else there is of it is fetched, and recorded.
    event.state = State::completing;
    event.verdict = Verdict::debug;
    event.streams = event.assigned.build_only() ? kBuildOnlyStream : kPartialStream;
    want_all(slot);
    return;  // complete again at once, if there is nothing more
  }
  if (event.data.empty()) {
    bool timed_out = false;
    for (EventCollector::RobIndex rob = 0; rob < collector_->robs(); ++rob)
      timed_out =
          timed_out || collector_->loss(slot, rob) == RobLoss::timed_out || collector_->loss(slot, rob) == RobLoss::bad;
    if (!timed_out && event.knew_all) return decide(slot, Verdict::lost, now_ns);
    // Readouts may have it, and cannot be reached from here: another node may.
    counters_.add(given_up);
    return free_slot(slot);
  }
  make_record(slot, now_ns);
}

void FilterNode::select(Slot slot) {
  Event& event = events_[slot];
  event.state = State::selecting;
  const std::uint32_t step = event.job.event.step;
  event.job.event = event.data.view(context_, *collector_, step);
  pool_.submit(event.job);
}

void FilterNode::selected(SelectionJob& job, std::uint64_t now_ns) {
  const Slot slot = job.slot;
  Event& event = events_[slot];
  if (event.dropped) return free_slot(slot);
  const auto to_debug = [&](NodeCounter why, const std::string& text) {
    counters_.add(why);
    if (counters_.read(why) <= 10) say(fmt::format("selection of event {}: {}", event.assigned.id, text));
    event.status |= formats::event_status::kProcessingProblem;
    keep(slot, Verdict::debug, kSelectionStream, now_ns);
  };
  if (!job.error.empty()) return to_debug(selection_failed, job.error);
  switch (job.selected.verdict) {
    case Selected::Verdict::rejected: return decide(slot, Verdict::rejected, now_ns);
    case Selected::Verdict::accepted: {
      auto streams = streams_of(job.selected);
      if (!streams) return to_debug(bad_selection, "its streams are none, too many, or have names that cannot be");
      return keep(slot, Verdict::accepted, std::move(*streams), now_ns);
    }
    case Selected::Verdict::more: break;
  }
  if (++job.event.step > kMostSteps) return to_debug(bad_selection, "it asks for more and more");
  std::vector<EventCollector::RobIndex> robs;
  for (const SourceId id : job.selected.robs) {
    const auto rob = collector_->find(id);
    if (!rob) return to_debug(bad_selection, fmt::format("no readout has the ROB {:#010x} that it asks for", id.value));
    robs.push_back(*rob);
  }
  event.state = State::fetching;
  if (robs.empty()) {
    want_all(slot);
  } else {
    collector_->want(slot, robs);
  }
}

void FilterNode::keep(Slot slot, Verdict verdict, std::vector<RecordStream> streams, std::uint64_t) {
  Event& event = events_[slot];
  event.verdict = verdict;
  event.streams = std::move(streams);
  event.state = State::completing;
  want_all(slot);  // what is not here yet; complete at once if nothing is missing
}

void FilterNode::make_record(Slot slot, std::uint64_t now_ns) {
  Event& event = events_[slot];
  const bool lacks = lacks_fragments(slot);
  event.data.make({.streams = event.streams, .status = event.status, .partial = lacks}, slot, *collector_, context_,
                  data_counters_);
  event.state = State::recording;
  ++recording_;
  event.refusals = 0;
  event.unanswered = false;
  event.recorder_since_ns = now_ns;
  event.record_at_ns = 0;
  event.request.reset();
  if (recorders_.empty()) return decide(slot, event.verdict, now_ns);
  // One that was another node's may be with a recorder that is not its first: each of the others is asked, the first tells by itself.
  event.to_ask = event.assigned.build_only() ? static_cast<std::uint32_t>(recorders_.size() - 1) : 0;
  event.recorder = recorder_of(event);
}

std::uint32_t FilterNode::recorder_of(const Event& event) const {
  return static_cast<std::uint32_t>((formats::draw::mix(event.assigned.id) + event.to_ask) % recorders_.size());
}

void FilterNode::record(std::uint64_t now_ns) {
  const auto count = static_cast<std::uint32_t>(recorders_.size());
  for (Slot slot = 0; slot < events_.size(); ++slot) {
    Event& event = events_[slot];
    if (event.state != State::recording || event.request || now_ns < event.record_at_ns) continue;
    const Recorder& recorder = recorders_[event.recorder];
    if (requester_.connected(recorder.service)) {
      const bool asks = event.to_ask > 0;
      if (asks) {
        have_bytes_.clear();
        formats::append_have(have_bytes_, std::span(&event.assigned.id, 1));
        event.request = requester_.ask(recorder.service, formats::event_request::kHave,
                                       std::span<const std::byte>(have_bytes_), settings_.record_timeout);
      } else {
        event.request = requester_.ask(recorder.service, formats::event_request::kRecord,
                                       transport::MessageParts(event.data.record()), settings_.record_timeout);
      }
      const auto what = asks ? Pending::What::have : Pending::What::record;
      if (event.request) pending_.emplace(*event.request, Pending{.what = what, .number = slot});
      continue;
    }
    if (event.to_ask > 0) {
      // One that does not come back is not asked: what it has may be there twice.
      if (now_ns - event.recorder_since_ns < static_cast<std::uint64_t>(settings_.recorder_patience.count())) continue;
      counters_.add(recorded_elsewhere);
      --event.to_ask;
      event.recorder = recorder_of(event);
      event.recorder_since_ns = now_ns;
      continue;
    }
    if (count == 1 || now_ns - event.recorder_since_ns < static_cast<std::uint64_t>(settings_.recorder_patience.count()))
      continue;
    if (event.unanswered) counters_.add(recorded_elsewhere);
    event.unanswered = false;
    event.recorder = (event.recorder + 1) % count;
    event.recorder_since_ns = now_ns;
  }
}

void FilterNode::take_have_answer(Slot slot, Requester::Reply& reply, std::uint64_t now_ns) {
  Event& event = events_[slot];
  event.request.reset();
  if (event.dropped) return free_slot(slot);
  std::vector<std::byte> whole;
  const auto have = reply.outcome == Outcome::answered ? formats::decode_have_answer(reply.message.in_one_piece(whole), 1)
                                                       : std::unexpected(formats::DecodeError{});
  if (!have) {
    event.record_at_ns = now_ns + kRecordAgainNs;
    return;
  }
  if (have->front()) {
    counters_.add(had_already);
    return decide(slot, event.verdict, now_ns);
  }
  --event.to_ask;
  event.recorder = recorder_of(event);
  event.recorder_since_ns = now_ns;
}

void FilterNode::take_record_answer(Slot slot, Requester::Reply& reply, std::uint64_t now_ns) {
  Event& event = events_[slot];
  event.request.reset();
  if (event.dropped) return free_slot(slot);
  if (reply.outcome == Outcome::answered) {
    if (reply.status == static_cast<std::uint16_t>(RecordStatus::had_already)) counters_.add(had_already);
    counters_.add(recorded_bytes, event.data.event_bytes());
    return decide(slot, event.verdict, now_ns);
  }
  if (reply.outcome != Outcome::refused) {
    event.unanswered = true;
    event.record_at_ns = now_ns + kRecordAgainNs;
    counters_.add(record_again);
    return;
  }
  counters_.add(record_refused);
  if (counters_.read(record_refused) <= 10)
    say(fmt::format("{} refuses event {}: {}", recorders_[event.recorder].name, event.assigned.id,
                    formats::record_status_name(reply.status)));
  const auto why = static_cast<RecordStatus>(reply.status);
  if (why == RecordStatus::malformed || why == RecordStatus::unknown_request) {
    counters_.add(given_up);
    return free_slot(slot);
  }
  // It is not there, for sure: the next may have it.
  const auto count = static_cast<std::uint32_t>(recorders_.size());
  event.recorder = (event.recorder + 1) % count;
  event.recorder_since_ns = now_ns;
  event.unanswered = false;
  if (++event.refusals % count == 0) event.record_at_ns = now_ns + kAllRefusedNs;
}

void FilterNode::decide(Slot slot, Verdict verdict, std::uint64_t now_ns) {
  Event& event = events_[slot];
  const bool recorded = event.state == State::recording && !recorders_.empty();
  const bool lacks = verdict != Verdict::rejected && lacks_fragments(slot);
  formats::EventDecision decision{.id = event.assigned.id, .verdict = verdict};
  if (recorded) decision.bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(event.data.event_bytes(), 0xffffffff));
  if (lacks) decision.flags |= formats::EventDecision::kPartial;
  if (event.assigned.build_only()) decision.flags |= formats::EventDecision::kBuildOnly;
  session_.decide(decision);
  switch (verdict) {
    case Verdict::accepted: counters_.add(accepted); break;
    case Verdict::rejected: counters_.add(rejected); break;
    case Verdict::debug: counters_.add(debug); break;
    case Verdict::lost: counters_.add(NodeCounter::lost); break;
  }
  if (lacks) counters_.add(partial);
  deciding_.record(now_ns - event.assigned_ns);
  free_slot(slot);
}

void FilterNode::show(std::uint64_t now_ns, bool last) {
  if (!last && now_ns - shown_ns_ < kShowNs) return;
  shown_ns_ = now_ns;
  NodeStatus status;
  status.connected = session_.open() && requester_.connected(supervisor_);
  status.over = over_;
  status.run_number = context_.run_number;
  status.system = system_;
  status.supervisor_trouble = requester_.trouble(supervisor_);
  const auto append = [&](const std::vector<NamedCounter>& counters) {
    status.counters.insert(status.counters.end(), counters.begin(), counters.end());
  };
  append(base::named_counters(counters_, kNodeCounters, [](NodeCounter) { return true; }));
  if (collector_ != nullptr) {
    append(base::named_counters(collector_->counters(), kCollectorCounters, [](CollectorCounter) { return true; }));
    status.slots_used = settings_.slots - collector_->free_slots();
    status.fragments_under_way = collector_->fragments_under_way();
    status.bytes_under_way = collector_->bytes_under_way();
  }
  append(base::named_counters(data_counters_, kDataCounters, [](DataCounter) { return true; }));
  append(pool_.counters());
  for (const NamedCounter& counter : requester_.counters())
    status.counters.push_back({"network_" + counter.name, counter.value});
  for (const Event& event : events_) {
    status.fetching += event.state == State::fetching || event.state == State::completing ? 1 : 0;
    status.selecting += event.state == State::selecting ? 1 : 0;
    status.recording += event.state == State::recording ? 1 : 0;
  }
  status.unsafe_decisions = session_.unsafe();
  for (const Readout& one : readouts_)
    status.readouts.push_back({one.name, requester_.connected(one.service), requester_.trouble(one.service)});
  for (const Recorder& one : recorders_)
    status.recorders.push_back({one.name, requester_.connected(one.service), requester_.trouble(one.service)});
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
