#include "farm/supervisor/supervisor.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/need.h"
#include "transport/secret.h"

namespace rodeo::farm {
namespace {

constexpr std::uint64_t kTickNs = 1'000'000;
constexpr std::uint64_t kShowNs = 50'000'000;
constexpr std::uint64_t kPartNs = 1'000'000'000;  // Time in which nodes may learn that the run is over.

transport::RequesterSettings requester_settings(const SupervisorSettings& settings) {
  return {.name = settings.name,
          .bus = settings.network.bus,
          .secret = need(transport::read_secret(settings.network.secret_file)),
          .pages = settings.network.pages};
}

}  // namespace

const char* stage_name(Stage stage) {
  constexpr const char* kNames[] = {"idle", "rebuilding", "running", "holding", "draining", "parting", "over"};
  return kNames[static_cast<std::size_t>(stage)];
}

Supervisor::Supervisor(SupervisorSettings settings)
    : settings_(std::move(settings)),
      requester_(requester_settings(settings_)),
      events_(settings_),
      nodes_(settings_, events_),
      readouts_(settings_, requester_, events_.clears, events_.span,
                [this](std::uint32_t readout, std::uint64_t id) { on_held(readout, id); }),
      orphans_(events_, requester_, settings_.recorders) {
  if (!settings_.trigger.empty()) triggers_.emplace(settings_, events_);
  readouts_.follow(!triggers_);
  thread_ = std::jthread([this] { run(); });
}

Supervisor::~Supervisor() {
  leave_.store(true, std::memory_order_release);
  thread_.join();
}

void Supervisor::start(std::uint32_t run_number) {
  events_.decisions.open();  // Its directory may be linked to the run's folder only now.
  run_number_.store(run_number, std::memory_order_release);
}

void Supervisor::run() {
  base::set_thread_name("supervisor");
  cpu_.attach();
  base::Backoff backoff(settings_.idle);
  while (!leave_.load(std::memory_order_relaxed)) {
    if (step(base::steady_now_ns())) {
      backoff.reset();
    } else {
      backoff.idle();
    }
  }
  cpu_.detach();
}

/// Handles an id that a readout holds: it is known, over, or announced by no trigger.
void Supervisor::on_held(std::uint32_t readout, std::uint64_t id) {
  switch (events_.state_of(id)) {
    case Events::State::known: return;
    case Events::State::over: return events_.clear_again(id, now_ns_);
    case Events::State::orphan: return events_.add_orphan(readout, id, now_ns_);
  }
}

bool Supervisor::step(std::uint64_t now_ns) {
  now_ns_ = now_ns;
  bool busy = nodes_.poll(now_ns);
  replies_.clear();
  requester_.poll(now_ns, replies_);
  for (const auto& reply : replies_) {
    if (!readouts_.on_reply(reply, now_ns)) (void)orphans_.on_reply(reply, now_ns);
  }
  busy = busy || !replies_.empty();
  replies_.clear();
  if (stage_ == Stage::idle) readouts_.ask_descriptions(now_ns);
  if (stage_ != Stage::idle && stage_ != Stage::over) {
    if (triggers_ && stage_ < Stage::holding) busy = triggers_->poll() || busy;
    if (stage_ < Stage::parting) busy = nodes_.assign(now_ns) || busy;
    events_.clears.flush(now_ns);
    if (triggers_) readouts_.set_run_at(triggers_->newest());
    readouts_.poll(now_ns);
    const std::uint64_t before = events_.dispatcher.counter(dispatch::DispatchCounter::cleared);
    if (const auto written = events_.decisions.flush(); !written && trouble_.empty()) {
      trouble_ = written.error().what;
      const std::lock_guard lock(mutex_);
      messages_.push_back(trouble_);
    } else if (written && !trouble_.empty()) {
      trouble_.clear();
    }
    events_.remove_cleared([&](std::uint32_t node, std::uint32_t session) { nodes_.on_safe(node, session); });
    if (triggers_) triggers_->done(events_.dispatcher.counter(dispatch::DispatchCounter::cleared) - before);
  }
  if (now_ns >= ticked_ns_ + kTickNs) {
    ticked_ns_ = now_ns;
    update_stage(now_ns);
    if (now_ns >= shown_ns_ + kShowNs) publish_status(now_ns);
  }
  return busy;
}

std::uint16_t Supervisor::block_by_time(std::uint64_t now_ns) const {
  const auto length = static_cast<std::uint64_t>(settings_.lumi_block.count());
  return static_cast<std::uint16_t>(1 + (length == 0 ? 0 : (now_ns - began_ns_) / length));
}

void Supervisor::begin_run(std::uint64_t now_ns) {
  began_ns_ = now_ns;
  nodes_.set_run({.number = run_number_.load(std::memory_order_acquire), .type = settings_.run_type});
  enter_stage(Stage::rebuilding, now_ns);
}

void Supervisor::enter_stage(Stage stage, std::uint64_t now_ns) {
  stage_ = stage;
  entered_ns_ = now_ns;
  if (stage == Stage::over) ended_ns_ = now_ns;
  publish_status(now_ns);
  if (stage == Stage::over) over_.store(true, std::memory_order_release);
}

/// Acts on time, and on the progress of the other parts. Called a thousand times a second.
void Supervisor::update_stage(std::uint64_t now_ns) {
  const auto in_stage = [&] { return now_ns - entered_ns_; };
  const bool stop = stop_.load(std::memory_order_acquire);
  const bool give_up = give_up_.load(std::memory_order_acquire);
  if (readouts_.other_numbering() && stage_ != Stage::over) return refuse(*readouts_.other_numbering(), now_ns);
  if (stage_ != Stage::idle && stage_ != Stage::over) {
    // The supervisor must know first what the ids of the readouts count. One of the readouts may be away.
    if (triggers_ && !triggers_started_ && (readouts_.all_described() || stage_ > Stage::rebuilding)) {
      triggers_->start();
      triggers_started_ = true;
    }
    (void)events_.dispatcher.expire(now_ns);
    if (triggers_ && triggers_->take_gap()) {
      marks_ = triggers_->report().marks;
      readouts_.survey(0);
    }
    if (triggers_) readouts_.watch(triggers_->announced_from());
    if (events_.admission.take_overflow()) readouts_.survey(0);
    orphans_.poll(now_ns, stage_ > Stage::rebuilding, marks_, triggers_ ? 0 : block_by_time(now_ns));
  }
  switch (stage_) {
    case Stage::idle:
      if (stop) return enter_stage(Stage::over, now_ns);
      if (run_number_.load(std::memory_order_acquire) != 0) begin_run(now_ns);
      return;
    case Stage::rebuilding: {
      // If readouts hold no unannounced event, no node can have one either.
      const bool nothing = readouts_.surveyed() && readouts_.all_described() && events_.admission.untold() == 0 &&
                           !events_.has_unplaced() && (!triggers_ || in_stage() >= kAnnounceNs);
      // All processes that could have events have reported them.
      const bool all = settings_.nodes > 0 && nodes_.connected() >= settings_.nodes && readouts_.surveyed() &&
                       (!triggers_ || in_stage() >= kAnnounceNs);
      if (stop || nothing || all || in_stage() >= static_cast<std::uint64_t>(settings_.rebuild_time.count()))
        enter_stage(Stage::running, now_ns);
      return;
    }
    case Stage::running:
      if (stop || (!triggers_ && readouts_.all_ended() && events_.empty())) enter_stage(Stage::holding, now_ns);
      return;
    case Stage::holding:
      if (triggers_ && !triggers_->hold() && !give_up &&
          in_stage() < static_cast<std::uint64_t>(settings_.drain_time.count()))
        return;
      if (triggers_) triggers_->end();
      events_.span.stop();
      readouts_.survey(0);
      return enter_stage(Stage::draining, now_ns);
    case Stage::draining: {
      events_.clears.flush(now_ns, events_.dispatcher.waiting() + events_.dispatcher.assigned() == 0);
      if (readouts_.surveyed()) readouts_.follow(false);  // Later events are behind the end.
      // Unannounced events may still be on their way through a readout.
      const bool found =
          readouts_.watch_is_over() || in_stage() >= static_cast<std::uint64_t>(settings_.readout_grace.count());
      const bool all = found && events_.empty() && readouts_.surveyed();
      if (!all && !give_up && in_stage() < static_cast<std::uint64_t>(settings_.drain_time.count())) return;
      undecided_ = events_.count_undecided();
      nodes_.announce_end();
      return enter_stage(Stage::parting, now_ns);
    }
    case Stage::parting:
      (void)nodes_.assign(now_ns);
      if (nodes_.all_informed() || in_stage() >= kPartNs) enter_stage(Stage::over, now_ns);
      return;
    case Stage::over: return;
  }
}

/// Ends the run: equal ids would mean different data, so the supervisor assigns nothing.
void Supervisor::refuse(const Error& why, std::uint64_t now_ns) {
  trouble_ = why.what;
  nodes_.announce_end();
  {
    const std::lock_guard lock(mutex_);
    refused_ = why;
  }
  enter_stage(Stage::over, now_ns);
}

std::optional<Error> Supervisor::refused() const {
  const std::lock_guard lock(mutex_);
  return refused_;
}

void Supervisor::publish_status(std::uint64_t now_ns) {
  shown_ns_ = now_ns;
  using namespace dispatch;
  SupervisorStatus status{
      .at_ns = now_ns,
      .stage = stage_,
      .run_number = run_number_.load(std::memory_order_relaxed),
      .seconds = began_ns_ == 0 ? 0 : static_cast<double>((ended_ns_ != 0 ? ended_ns_ : now_ns) - began_ns_) * 1e-9,
      .counters =
          base::named_counters(events_.dispatcher.counters(), kDispatchCounters, [](DispatchCounter) { return true; }),
      .waiting = events_.dispatcher.waiting(),
      .assigned = events_.dispatcher.assigned(),
      .uncleared = events_.dispatcher.decided(),
      .orphans = events_.admission.untold(),
      .room = events_.room(),
      .undecided = undecided_,
      .adds_up = events_.dispatcher.adds_up(),
      .nodes = nodes_.status(),
      .readouts = readouts_.status(),
      .trouble = trouble_,
      .cpu_seconds = cpu_.seconds()};
  for (const auto& more :
       {events_.counters(), nodes_.counters(), readouts_.counters(), orphans_.counters(), requester_.counters()})
    status.counters.insert(status.counters.end(), more.begin(), more.end());
  if (triggers_) {
    status.trigger = triggers_->report();
    status.lumi_block = status.trigger->lumi_block;
    status.scan_step = status.trigger->scan_step;
    if (const auto refused = triggers_->refused()) status.trouble = refused->what;
  } else if (began_ns_ != 0) {
    status.lumi_block = block_by_time(now_ns);
  }
  const std::lock_guard lock(mutex_);
  shown_ = std::move(status);
  for (auto& messages : {nodes_.take_messages(), readouts_.take_messages()})
    messages_.insert(messages_.end(), messages.begin(), messages.end());
}

SupervisorStatus Supervisor::status() const {
  const std::lock_guard lock(mutex_);
  return shown_;
}

std::vector<std::string> Supervisor::take_messages() {
  const std::lock_guard lock(mutex_);
  return std::exchange(messages_, {});
}

/// Returns the place where events wait, if there is no room for more or many wait.
std::string SupervisorStatus::limited_by() const {
  const std::uint64_t all = waiting + assigned + uncleared;
  if (all == 0 || room > all / 8) return waiting > 0 && assigned > 0 ? "filter nodes" : "nothing";
  if (uncleared > all / 2) {
    const auto slowest = std::ranges::max_element(readouts, {}, &SupervisedReadout::behind);
    return slowest == readouts.end() || slowest->behind == 0 ? "clears" : "readout " + slowest->name;
  }
  return "filter nodes";
}

}  // namespace rodeo::farm
