#include "readout/application.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <system_error>

#include "base/clock.h"
#include "base/log.h"
#include "base/sentence.h"
#include "base/thread.h"
#include "formats/link_names.h"
#include "input/network_input.h"
#include "readout/check.h"
#include "readout/extractor/rdh_extractor.h"
#include "readout/rob_links.h"
#include "readout/silence_limit.h"

namespace rodeo::readout {
namespace {

// Interval at which back-pressure and the link policy are judged: long enough for cheap status calls, short enough for
// bursts.
constexpr std::uint64_t kCheckIntervalNs = 50'000'000;

using formats::to_text;

/// The component that a factory made. On an error, throws it with the place of the component's table.
template <typename T>
std::unique_ptr<T> made_or_throw(Result<std::unique_ptr<T>> result, const ComponentSettings& settings) {
  if (result) return *std::move(result);
  Error error = std::move(result).error();
  if (error.where.empty()) error.where = settings.where;
  throw SetupError(std::move(error));
}

/// The name of a component in messages.
std::string component_name(const base::ComponentRegistry& registry, base::ComponentKind kind, const std::string& type) {
  const auto found = registry.find(kind, type);
  const std::string name = fmt::format("{} `{}`", base::kind_name(kind), type);
  return !found || (*found)->origin == "built in" ? name : fmt::format("{} of plug-in {}", name, (*found)->origin);
}

/// Number of fragments in one event of these links. Each has its own source id.
std::uint32_t groups_of(const ReadoutSettings& settings, const std::vector<BuilderLink>& links) {
  return settings.builder.type != "gbt" && !links.empty() ? links.back().group + 1 : 1;
}

/// Advice after a failed thread creation. Each thread also takes address space.
std::string more_threads() {
  rlimit space{};
  const bool limited = ::getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY;
  return limited ? "raise the limit of address space (ulimit -v), or that of processes and threads (ulimit -u)"
                 : "raise the limit of processes and threads (ulimit -u)";
}

}  // namespace

Application::Application(ReadoutSettings settings, const base::ComponentRegistry& registry)
    : settings_(std::move(settings)) {
  check_source_ids(settings_.robs);
  input_ = made_or_throw(registry.make_input(settings_.input.type, settings_.input.parameters), settings_.input);
  find_links();
  const TriggerFields fields = trigger_fields(registry);
  settings_.run.ids = id_layout(fields);
  settings_.run.numbering.orbits = orbits_of_chunks(settings_.extractor.type, settings_.extractor.parameters);
  settings_.run.free_strings.push_back(formats::IdsMark{settings_.run.ids}.text());
  set_run_info(settings_.run);
  for (const std::string& warning : warnings_of(settings_)) base::log_warning("{}", warning);
  log_silences(fields);
  make_consumers(registry);
  make_builders(registry);
}

Application::~Application() {
  if (phase() == Phase::running || phase() == Phase::draining) {
    stop();
    finish();
  }
  // Destroyed last to first: consumers further down may still hold copies of earlier consumers.
  while (!consumers_.empty()) consumers_.pop_back();
}

TriggerFields Application::trigger_fields(const base::ComponentRegistry& registry) const {
  return made_or_throw(registry.make_extractor(settings_.extractor.type, settings_.extractor.parameters),
                       settings_.extractor)
      ->fields();
}

void Application::log_silences(const TriggerFields& fields) const {
  std::vector<std::size_t> links;
  for (const Rob& rob : robs_) links.push_back(rob.links.size());
  for (const SilenceNote& note : silence_notes(settings_, fields, links)) {
    if (note.is_short) {
      base::log_warning("{}", note.text);
    } else {
      base::log_info("{}", note.text);
    }
  }
}

// The trigger's own list counts resets, even if chunks carry no reset count.
formats::IdLayout Application::id_layout(const TriggerFields& fields) const {
  formats::IdLayout ids = formats::IdLayout::of(fields);
  const Parameters& builder = settings_.builder.parameters;
  if (builder.has("trigger_list") && builder.boolean("trigger_list")) ids.has_resets = ids.counter_bits() == 24;
  return ids;
}

void Application::make_consumers(const base::ComponentRegistry& registry) {
  FragmentConsumer* last = &meter_;
  for (const ComponentSettings& consumer : settings_.consumers) {
    consumers_.push_back(made_or_throw(registry.make_consumer(consumer.type, consumer.parameters), consumer));
    last->link(consumers_.back().get());
    last = consumers_.back().get();
  }
  last->link(nullptr);
}

// Files list the links of each ROB, in the order of the bitmaps in its events.
void Application::find_links() {
  AssignedLinks assigned;
  for (const RobSettings& rob : settings_.robs) {
    std::vector<BuilderLink> links = rob_links(rob, input_->links(), assigned);
    settings_.run.free_strings.push_back(links_string(rob.source_id, links));
    const std::uint32_t groups = groups_of(settings_, links);
    for (std::uint32_t group = 0; group < groups; ++group) settings_.run.robs.push_back({rob.source_id.value + group});
    std::vector<LinkState> requested_states(links.size(), LinkState::active);
    robs_.push_back(
        {rob.source_id, std::move(links), std::move(requested_states), LinkPolicy(settings_.link_policy), nullptr});
  }
}

void Application::make_builders(const base::ComponentRegistry& registry) {
  // Builders call these once per worker, at any time in their life.
  const auto extractor = [this, &registry] {
    return made_or_throw(registry.make_extractor(settings_.extractor.type, settings_.extractor.parameters),
                         settings_.extractor);
  };
  std::function<std::unique_ptr<IntegrityChecker>()> checker;
  if (settings_.checker) {
    checker = [this, &registry] {
      return made_or_throw(registry.make_checker(settings_.checker->type, settings_.checker->parameters),
                           *settings_.checker);
    };
  }
  for (Rob& rob : robs_) {
    const BuilderContext context{
        .source_id = rob.source_id,
        .links = rob.links,
        .input = input_.get(),
        .consumer = &meter_,
        .make_extractor = extractor,
        .make_checker = checker,
        .extractor_name = component_name(registry, base::ComponentKind::extractor, settings_.extractor.type),
        .checker_name =
            settings_.checker ? component_name(registry, base::ComponentKind::checker, settings_.checker->type) : ""};
    rob.builder = made_or_throw(registry.make_builder(settings_.builder.type, settings_.builder.parameters, context),
                                settings_.builder);
    if (auto* const shares = dynamic_cast<SharesReaderTracks*>(rob.builder.get())) shares->share(reader_tracks_);
  }
}

void Application::hold() {
  if (phase() == Phase::prepared) phase_ = Phase::ready;
}

void Application::set_run(std::uint32_t number, std::uint32_t type) {
  RunInfo run = settings_.run;
  run.run_number = number;
  run.run_type = type;
  for (const auto& consumer : consumers_) {
    if (auto* const aware = dynamic_cast<RunAware*>(consumer.get())) aware->set_run(run);
  }
  settings_.run = run;
  set_run_info(std::move(run));
}

void Application::start() {
  try {
    start_all();
  } catch (const SetupError&) {
    undo_start();
    throw;
  } catch (const std::system_error& error) {
    undo_start();
    const bool thread = error.code() == std::errc::resource_unavailable_try_again;
    throw SetupError({"readout.start", (thread ? "cannot start a thread: " : "") + std::string(error.what()), "",
                      thread ? more_threads() : ""});
  } catch (const std::exception& error) {
    undo_start();
    throw SetupError({"readout.start", error.what(), "", ""});
  }
}

void Application::start_all() {
  for (; started_consumers_ < consumers_.size(); ++started_consumers_) consumers_[started_consumers_]->start();
  // Counted before start(): a builder that throws may have started threads already.
  while (started_builders_ < robs_.size()) robs_[started_builders_++].builder->start();
  unix_start_ = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  start_ns_ = base::steady_now_ns();
  input_->start();
  phase_ = Phase::running;
  drain_ = std::thread([this] { drain(); });
}

void Application::undo_start() {
  phase_ = Phase::prepared;
  if (started_builders_ > 0) input_->stop();
  for (std::size_t i = 0; i < started_builders_; ++i) robs_[i].builder->join();
  for (std::size_t i = 0; i < started_consumers_; ++i) stop_consumer(i);
}

void Application::stop_consumer(std::size_t number) {
  try {
    consumers_[number]->stop();
  } catch (const std::exception& error) {
    const std::string& name = settings_.consumers[number].name;
    if (drain_failure_.empty())
      drain_failure_ = fmt::format("{}: {}", name.empty() ? consumers_[number]->status().name : name, error.what());
  }
}

/// Runs in its own thread: waiting for builders and consumers blocks, but status and signals must continue.
void Application::drain() {
  base::set_thread_name("drain");
  for (const Rob& rob : robs_) rob.builder->join();
  std::uint64_t not_ended = 0;
  end_ns_.compare_exchange_strong(not_ended, base::steady_now_ns());
  Phase ended_by_itself = Phase::running;
  phase_.compare_exchange_strong(ended_by_itself, Phase::draining);
  for (std::size_t i = 0; i < consumers_.size(); ++i) stop_consumer(i);
  drained_.store(true, std::memory_order_release);
}

void Application::give_up() {
  if (phase() != Phase::running && phase() != Phase::draining) return;
  for (const Rob& rob : robs_) rob.builder->give_up();
  consumers_give_up_ns_ = base::steady_now_ns() + static_cast<std::uint64_t>(settings_.stop_limit.count()) / 12;
}

void Application::stop() {
  if (phase() == Phase::running || phase() == Phase::draining) stopping_ = true;
  if (phase() != Phase::running) return;
  phase_ = Phase::draining;
  stopped_ = true;
  std::uint64_t not_ended = 0;
  end_ns_.compare_exchange_strong(not_ended, base::steady_now_ns());
  input_->stop();
  for (const auto& consumer : consumers_) consumer->run_ends();
}

void Application::step() {
  if (phase() != Phase::running && phase() != Phase::draining) return;
  const std::uint64_t now_ns = base::steady_now_ns();
  if (const std::uint64_t fragments = meter_.fragments(); fragments != fragments_seen_) {
    if (fragments_seen_ == 0) data_from_ns_ = std::max(start_ns_, stepped_ns_);
    fragments_seen_ = fragments;
    data_to_ns_ = now_ns;
  }
  stepped_ns_ = now_ns;
  if (now_ns - checked_ns_ >= kCheckIntervalNs) {
    checked_ns_ = now_ns;
    ReadoutStatus now = status();
    if (failure_.empty() && !now.failure.empty()) {
      failure_ = now.failure;
      stop();
    }
    // Waiting while the run ends is not back-pressure.
    if (phase() == Phase::running) {
      cause_ = first_cause(previous_, now);
      history_.add(cause_);
      apply_link_policy(now);
    }
    warn_of_duplicates(now);
    warn_of_full_keepers(now);
    previous_ = std::move(now);
  }
  // Perhaps only builders were blocked: consumers get half of the remaining time to empty their queues.
  if (consumers_give_up_ns_ != 0 && now_ns >= consumers_give_up_ns_) {
    consumers_give_up_ns_ = 0;
    for (const auto& consumer : consumers_) consumer->give_up();
  }
  if (drained_.load(std::memory_order_acquire)) finish();
}

void Application::finish() {
  drain_.join();
  // Also stops the threads of an input that ended without a command.
  input_->stop();
  const ReadoutStatus last = status();
  warn_of_duplicates(last);
  if (failure_.empty()) failure_ = last.failure.empty() ? drain_failure_ : last.failure;
  phase_ = Phase::stopped;
}

ReadoutStatus Application::status() {
  ReadoutStatus out;
  out.phase = phase();
  out.run_number = settings_.run.run_number;
  if (const auto* const network = dynamic_cast<const input::NetworkInput*>(input_.get()))
    out.input_ready = network->connected();
  const std::uint64_t end_ns = end_ns_.load();
  if (start_ns_ != 0) {
    out.seconds = static_cast<double>((end_ns != 0 ? end_ns : base::steady_now_ns()) - start_ns_) * 1e-9;
    out.unix_start = unix_start_;
  }
  out.data_seconds = static_cast<double>(data_to_ns_ - data_from_ns_) * 1e-9;
  out.stopped = stopped_;
  out.failure = failure_;
  // Downstream first: all fragments that consumers count are then in the builders' counts, and their chunks in the input's.
  for (std::size_t i = 0; i < consumers_.size(); ++i) {
    FragmentConsumer::Status status = consumers_[i]->status();
    if (!settings_.consumers[i].name.empty()) status.name = settings_.consumers[i].name;
    if (out.failure.empty() && !status.failure.empty()) out.failure = fmt::format("{}: {}", status.name, status.failure);
    out.consumers.push_back(std::move(status));
  }
  out.fragments = meter_.fragments();
  const base::LatencySummary latency = meter_.latency();
  out.latency = {.p50_us = static_cast<double>(latency.percentile_ns(0.50)) * 1e-3,
                 .p99_us = static_cast<double>(latency.percentile_ns(0.99)) * 1e-3,
                 .max_us = static_cast<double>(latency.max_ns()) * 1e-3};
  for (const Rob& rob : robs_) {
    out.robs.push_back({rob.source_id, rob.builder->status(), groups_of(settings_, rob.links)});
    if (const auto* const counts = dynamic_cast<const CountsBytes*>(rob.builder.get()))
      out.robs.back().chunk_bytes = counts->chunk_bytes();
    if (const auto* const knows = dynamic_cast<const KnowsPlaces*>(rob.builder.get()))
      out.robs.back().places = knows->link_places();
    for (FragmentBuilder::Link& link : out.robs.back().builder.links) {
      if (rob.policy.removed(link.fid)) link.removed_by_policy = true;
    }
  }
  out.input = input_->counters();
  out.input_cpu_seconds = input_->cpu_seconds();
  if (out.failure.empty()) out.failure = input_->failure();
  out.limited_by = cause_;
  return out;
}

void Application::apply_link_policy(const ReadoutStatus& now) {
  for (std::size_t i = 0; i < robs_.size(); ++i) {
    for (const LinkChange& change : robs_[i].policy.judge(now.robs[i].builder.links)) {
      set_state(robs_[i], change.fid, change.state);
      messages_.push_back(
          change.state == LinkState::removed
              ? fmt::format("link {} removed by policy: {} in a row without it", formats::named_link(change.fid),
                            base::counted(change.silent_events, "event"))
              : fmt::format("link {} restored by policy: it delivers again", formats::named_link(change.fid)));
    }
  }
}

/// A consumer that keeps fragments needs a farm that clears them. Without one the trigger waits for ever.
void Application::warn_of_full_keepers(const ReadoutStatus& now) {
  if (keeper_told_) return;
  for (const FragmentConsumer::Status& consumer : now.consumers) {
    const std::uint64_t limit = counter_value(consumer.counters, "kept_limit");
    const bool cleared = counter_value(consumer.counters, "cleared") + counter_value(consumer.counters, "cleared_early") > 0;
    if (limit == 0 || cleared || cause_ != consumer.name) continue;
    keeper_told_ = true;
    messages_.push_back(fmt::format(
        "warning: {} keeps {}, and has no room for more; no farm has cleared any, so the trigger waits. Start a farm (rodeo "
        "farm supervise, rodeo farm filter), or the whole chain (rodeo control examples/systems/farm.toml)",
        consumer.name, base::counted(counter_value(consumer.counters, "kept"), "fragment")));
  }
}

/// Many duplicates mean that the data do not fit this builder. Only this warning says so.
void Application::warn_of_duplicates(const ReadoutStatus& now) {
  constexpr std::uint64_t kEnough = 1000;
  for (std::size_t i = 0; i < robs_.size(); ++i) {
    const std::uint64_t duplicates = counter_value(now.robs[i].builder.lost, "duplicate");
    const std::uint64_t received = now.robs[i].builder.chunks_received;
    if (robs_[i].duplicates_warned || duplicates < kEnough || duplicates < received / 10) continue;
    robs_[i].duplicates_warned = true;
    messages_.push_back(fmt::format(
        "warning: {} of {} chunks of ROB {} are duplicates and lost: {}", duplicates, received, to_text(robs_[i].source_id),
        settings_.builder.type == "full"
            ? "links of one group bring the same events. If links take turns, set their number in "
              "readout.rob.links_per_group; "
              "if each brings every event, set links_per_group = 1, or readout.builder.type = \"gbt\""
            : "its links send the same events again"));
  }
}

/// Builders obey between two pages. `requested_states` has the last state that was asked for, also before the builder obeys.
void Application::set_state(Rob& rob, Fid fid, LinkState state) {
  rob.builder->set_link(fid, state);
  rob.requested_states[static_cast<std::size_t>(std::ranges::find(rob.links, fid, &BuilderLink::fid) - rob.links.begin())] =
      state;
}

Result<void> Application::set_link(Fid fid, LinkState state) {
  if (phase() != Phase::running) {
    return std::unexpected(Error{"readout.not_running", phase() == Phase::prepared || phase() == Phase::ready
                                                            ? "the run has not begun: links are not changed yet"
                                                            : "the run is ending: links are not changed any more"});
  }
  for (Rob& rob : robs_) {
    const auto link = std::ranges::find(rob.links, fid, &BuilderLink::fid);
    if (link == rob.links.end()) continue;
    if (rob.requested_states[static_cast<std::size_t>(link - rob.links.begin())] == state) {
      return std::unexpected(Error{"readout.link_state", fmt::format("link {} is {} already", formats::named_link(fid),
                                                                     state == LinkState::active ? "active" : "removed")});
    }
    set_state(rob, fid, state);
    rob.policy.set_by_hand(fid);
    messages_.push_back(
        fmt::format("link {} {} by hand", formats::named_link(fid), state == LinkState::active ? "restored" : "removed"));
    return {};
  }
  return std::unexpected(Error{"readout.no_such_link",
                               fmt::format("no ROB of this readout has link {}", formats::named_link(fid)), "",
                               "rodeo readout link list"});
}

std::vector<std::string> Application::take_messages() { return std::exchange(messages_, {}); }

}  // namespace rodeo::readout
