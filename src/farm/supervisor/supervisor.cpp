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
      books_(settings_),
      nodes_(settings_, books_),
      readouts_(settings_, requester_, books_.clears, books_.span,
                [this](std::uint32_t readout, std::uint64_t id) { found(readout, id); }),
      orphans_(books_, requester_, settings_.recorders) {
  if (!settings_.trigger.empty()) triggers_.emplace(settings_, books_);
  readouts_.follow(!triggers_);
  thread_ = std::jthread([this] { run(); });
}

Supervisor::~Supervisor() {
  leave_.store(true, std::memory_order_release);
  thread_.join();
}

void Supervisor::start(std::uint32_t run_number) {
  books_.decisions.open();  // Its directory may be linked to the run's folder only now.
  run_number_.store(run_number, std::memory_order_release);
}

void Supervisor::run() {
  base::set_thread_name("supervisor");
  cpu_.attach();
  base::Backoff backoff(settings_.idle);
  while (!leave_.load(std::memory_order_relaxed)) {
    if (turn(base::steady_now_ns())) {
      backoff.reset();
    } else {
      backoff.idle();
    }
  }
  cpu_.detach();
}

/// Handles an id that a readout holds: it is known, over, or announced by no trigger.
void Supervisor::found(std::uint32_t readout, std::uint64_t id) {
  switch (books_.held(id)) {
    case Books::Held::known: return;
    case Books::Held::over: return books_.clear_again(id, now_ns_);
    case Books::Held::orphan: return books_.found(readout, id, now_ns_);
  }
}

bool Supervisor::turn(std::uint64_t now_ns) {
  now_ns_ = now_ns;
  bool busy = nodes_.poll(now_ns);
  replies_.clear();
  requester_.poll(now_ns, replies_);
  for (const auto& reply : replies_) {
    if (!readouts_.take(reply, now_ns)) (void)orphans_.take(reply, now_ns);
  }
  busy = busy || !replies_.empty();
  replies_.clear();
  if (stage_ == Stage::idle) readouts_.describe(now_ns);
  if (stage_ != Stage::idle && stage_ != Stage::over) {
    if (triggers_ && stage_ < Stage::holding) busy = triggers_->poll() || busy;
    if (stage_ < Stage::parting) busy = nodes_.assign(now_ns) || busy;
    books_.clears.flush(now_ns);
    if (triggers_) readouts_.set_run_at(triggers_->newest());
    readouts_.poll(now_ns);
    const std::uint64_t before = books_.dispatcher.counter(dispatch::DispatchCounter::cleared);
    if (const auto written = books_.decisions.flush(); !written && trouble_.empty()) {
      trouble_ = written.error().what;
      const std::lock_guard lock(mutex_);
      messages_.push_back(trouble_);
    } else if (written && !trouble_.empty()) {
      trouble_.clear();
    }
    books_.take_over([&](std::uint32_t node, std::uint32_t session) { nodes_.safe(node, session); });
    if (triggers_) triggers_->done(books_.dispatcher.counter(dispatch::DispatchCounter::cleared) - before);
  }
  if (now_ns >= ticked_ns_ + kTickNs) {
    ticked_ns_ = now_ns;
    move_on(now_ns);
    if (now_ns >= shown_ns_ + kShowNs) show(now_ns);
  }
  return busy;
}

std::uint16_t Supervisor::block_by_time(std::uint64_t now_ns) const {
  const auto length = static_cast<std::uint64_t>(settings_.lumi_block.count());
  return static_cast<std::uint16_t>(1 + (length == 0 ? 0 : (now_ns - began_ns_) / length));
}

void Supervisor::begin(std::uint64_t now_ns) {
  began_ns_ = now_ns;
  nodes_.set_run({.number = run_number_.load(std::memory_order_acquire), .type = settings_.run_type});
  enter(Stage::rebuilding, now_ns);
}

void Supervisor::enter(Stage stage, std::uint64_t now_ns) {
  stage_ = stage;
  entered_ns_ = now_ns;
  if (stage == Stage::over) ended_ns_ = now_ns;
  show(now_ns);
  if (stage == Stage::over) over_.store(true, std::memory_order_release);
}

/// Acts on time, and on the progress of the other parts. Called a thousand times a second.
void Supervisor::move_on(std::uint64_t now_ns) {
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
    (void)books_.dispatcher.expire(now_ns);
    if (triggers_ && triggers_->take_gap()) {
      marks_ = triggers_->report().marks;
      readouts_.survey(0);
    }
    if (triggers_) readouts_.watch(triggers_->told_from());
    if (books_.admission.take_overflow()) readouts_.survey(0);
    orphans_.poll(now_ns, stage_ > Stage::rebuilding, marks_, triggers_ ? 0 : block_by_time(now_ns));
  }
  switch (stage_) {
    case Stage::idle:
      if (stop) return enter(Stage::over, now_ns);
      if (run_number_.load(std::memory_order_acquire) != 0) begin(now_ns);
      return;
    case Stage::rebuilding: {
      // If readouts hold no unannounced event, no node can have one either.
      const bool nothing = readouts_.surveyed() && readouts_.all_described() && books_.admission.untold() == 0 &&
                           !books_.has_unplaced() && (!triggers_ || in_stage() >= kSettleNs);
      // All processes that could have events have reported them.
      const bool all = settings_.nodes > 0 && nodes_.connected() >= settings_.nodes && readouts_.surveyed() &&
                       (!triggers_ || in_stage() >= kSettleNs);
      if (stop || nothing || all || in_stage() >= static_cast<std::uint64_t>(settings_.rebuild_time.count()))
        enter(Stage::running, now_ns);
      return;
    }
    case Stage::running:
      if (stop || (!triggers_ && readouts_.all_ended() && books_.empty())) enter(Stage::holding, now_ns);
      return;
    case Stage::holding:
      if (triggers_ && !triggers_->hold() && !give_up &&
          in_stage() < static_cast<std::uint64_t>(settings_.drain_time.count()))
        return;
      if (triggers_) triggers_->end();
      books_.span.stop();
      readouts_.survey(0);
      return enter(Stage::draining, now_ns);
    case Stage::draining: {
      books_.clears.flush(now_ns, books_.dispatcher.waiting() + books_.dispatcher.assigned() == 0);
      if (readouts_.surveyed()) readouts_.follow(false);  // Later events are behind the end.
      // Unannounced events may still be on their way through a readout.
      const bool found = readouts_.watched() || in_stage() >= static_cast<std::uint64_t>(settings_.readout_grace.count());
      const bool all = found && books_.empty() && readouts_.surveyed();
      if (!all && !give_up && in_stage() < static_cast<std::uint64_t>(settings_.drain_time.count())) return;
      undecided_ = books_.undecided();
      nodes_.say_over();
      return enter(Stage::parting, now_ns);
    }
    case Stage::parting:
      (void)nodes_.assign(now_ns);
      if (nodes_.all_told() || in_stage() >= kPartNs) enter(Stage::over, now_ns);
      return;
    case Stage::over: return;
  }
}

/// Ends the run: equal ids would mean different data, so the supervisor assigns nothing.
void Supervisor::refuse(const Error& why, std::uint64_t now_ns) {
  trouble_ = why.what;
  nodes_.say_over();
  {
    const std::lock_guard lock(mutex_);
    refused_ = why;
  }
  enter(Stage::over, now_ns);
}

std::optional<Error> Supervisor::refused() const {
  const std::lock_guard lock(mutex_);
  return refused_;
}

void Supervisor::show(std::uint64_t now_ns) {
  shown_ns_ = now_ns;
  using namespace dispatch;
  SupervisorStatus status{
      .at_ns = now_ns,
      .stage = stage_,
      .run_number = run_number_.load(std::memory_order_relaxed),
      .seconds = began_ns_ == 0 ? 0 : static_cast<double>((ended_ns_ != 0 ? ended_ns_ : now_ns) - began_ns_) * 1e-9,
      .counters =
          base::named_counters(books_.dispatcher.counters(), kDispatchCounters, [](DispatchCounter) { return true; }),
      .waiting = books_.dispatcher.waiting(),
      .assigned = books_.dispatcher.assigned(),
      .uncleared = books_.dispatcher.decided(),
      .orphans = books_.admission.untold(),
      .room = books_.room(),
      .undecided = undecided_,
      .adds_up = books_.dispatcher.adds_up(),
      .nodes = nodes_.status(),
      .readouts = readouts_.status(),
      .trouble = trouble_,
      .cpu_seconds = cpu_.seconds()};
  for (const auto& more :
       {books_.counters(), nodes_.counters(), readouts_.counters(), orphans_.counters(), requester_.counters()})
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
  for (auto& said : {nodes_.take_messages(), readouts_.take_messages()})
    messages_.insert(messages_.end(), said.begin(), said.end());
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
