#include "readout/consumer/hlt_request_handler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "formats/fid.h"
#include "readout/builder/builder_common.h"
#include "readout/consumer/end_of_list.h"
#include "transport/replier_keys.h"

namespace rodeo::readout {
namespace {

// The most fragments taken from one queue between two looks at the network.
constexpr int kBatch = 64;

}  // namespace

std::uint64_t RetentionSettings::most_fragments() const {
  if (max_fragments != 0) return max_fragments;
  return static_cast<std::uint64_t>(std::ceil(rate_hz * std::chrono::duration<double>(retention).count()));
}

HltRequestHandler::HltRequestHandler(HltRequestHandlerSettings settings)
    : settings_(std::move(settings)), service_([this] {
        FragmentServiceSettings service = settings_.service;
        service.book.most_fragments = settings_.retention.most_fragments();
        service.most_sending = settings_.retention.sending;
        return service;
      }()) {
  next_ = end_of_list();
  for (std::size_t rob = 0; rob < settings_.service.robs.size(); ++rob)
    queues_.push_back(std::make_unique<Queue>(settings_.retention.queue));
  pending_.resize(queues_.size());
}

HltRequestHandler::~HltRequestHandler() { HltRequestHandler::stop(); }

void HltRequestHandler::link(FragmentConsumer* next) { next_ = next != nullptr ? next : end_of_list(); }

void HltRequestHandler::set_run(const RunInfo& run) { service_.set_run(run.run_number); }

void HltRequestHandler::insert(FragmentPtr fragment) {
  const auto rob = service_.retention().rob(fragment->source_id);
  if (!rob) [[unlikely]] {
    other_robs_.fetch_add(1, std::memory_order_relaxed);
    return next_->insert(std::move(fragment));
  }
  fragment->writable = false;  // the fragment is shared from here on
  FragmentPtr shared = fragment;
  Queue& queue = *queues_[*rob];
  if (!queue.try_push(std::move(shared))) [[unlikely]] {
    stalls_.fetch_add(1, std::memory_order_relaxed);
    base::Backoff backoff(settings_.idle);
    // A refused push leaves the fragment in `shared`.
    while (!queue.try_push(std::move(shared))) backoff.idle();  // NOLINT(bugprone-use-after-move)
  }
  next_->insert(std::move(fragment));
}

void HltRequestHandler::start() {
  thread_ = std::thread([this] { run(); });
}

void HltRequestHandler::stop() {
  run_ends();
  ending_.store(true, std::memory_order_release);
  if (thread_.joinable()) thread_.join();
}

void HltRequestHandler::run() {
  cpu_.attach();
  base::set_thread_name(settings_.name);
  if (settings_.cpu >= 0 && !base::pin_thread(settings_.cpu))
    base::log_warning("{}: its thread cannot be pinned to CPU {}", settings_.name, settings_.cpu);
  base::Backoff backoff(settings_.idle);
  for (;;) {
    // Read before the queues: all fragments were inserted before the flag was set, so an empty queue now stays empty.
    const bool ending = ending_.load(std::memory_order_acquire);
    const std::uint64_t now_ns = base::steady_now_ns();
    const bool progressed = keep_fragments(now_ns);
    const bool all_taken =
        ending && !progressed && std::ranges::none_of(pending_, [](const FragmentPtr& one) { return bool(one); });
    if (all_taken) service_.end();
    const bool busy = service_.serve(now_ns) || progressed;
    if (service_.retention().unplaced() && !unplaced_.exchange(true, std::memory_order_relaxed))
      base::log_error("{}: {}", settings_.name, unplaced().message());
    publish_counters();
    if (all_taken && may_stop(now_ns)) break;
    busy ? backoff.reset() : backoff.idle();
  }
  service_.retention().release_all();
  publish_counters();
  cpu_.detach();
}

bool HltRequestHandler::keep_fragments(std::uint64_t now_ns) {
  // The end is near if the run ends, or if a book is full and no client clears any more.
  const bool ends = ends_.load(std::memory_order_relaxed) || give_up_requested_.load(std::memory_order_relaxed) ||
                    unplaced_.load(std::memory_order_relaxed);
  if (!given_up_ && ends && std::ranges::any_of(pending_, [](const FragmentPtr& one) { return bool(one); }))
    given_up_ = may_stop(now_ns);
  bool progressed = false;
  for (std::size_t rob = 0; rob < queues_.size(); ++rob) {
    FragmentPtr& fragment = pending_[rob];
    bool emptied = false;
    for (int i = 0; i < kBatch; ++i) {
      emptied = !fragment && !queues_[rob]->try_pop(fragment);
      if (emptied) break;
      if (given_up_) {
        fragment.reset();
        ++not_kept_;
      } else if (service_.keep(rob, fragment, now_ns) == FragmentBook::Outcome::full) {
        break;
      }
      progressed = true;
    }
    service_.retention().book(rob).set_waiting_outside(!emptied);
  }
  return progressed;
}

// True if all fragments are cleared and sent, or if no client has fetched or cleared anything for `linger`.
bool HltRequestHandler::may_stop(std::uint64_t now_ns) {
  if (give_up_requested_.load(std::memory_order_relaxed) || unplaced_.load(std::memory_order_relaxed)) return true;
  if (service_.retention().size() == 0 && service_.sending() == 0) return true;
  if (!service_.was_requested()) return true;
  if (waits_since_ns_ == 0) waits_since_ns_ = now_ns;
  return now_ns - std::max(waits_since_ns_, service_.used_ns()) > static_cast<std::uint64_t>(settings_.linger.count());
}

void HltRequestHandler::publish_counters() {
  const Retention& retention = service_.retention();
  const FragmentBook::Counts counts = retention.counts();
  const auto set = [this](RetentionCounter what, std::uint64_t value) {
    published_[static_cast<std::size_t>(what)].set(value);
  };
  set(RetentionCounter::kept, retention.size());
  set(RetentionCounter::kept_bytes, retention.bytes());
  set(RetentionCounter::cleared, counts.cleared);
  set(RetentionCounter::cleared_early, counts.cleared_early);
  set(RetentionCounter::repeated, counts.duplicates);
  set(RetentionCounter::garbage, counts.garbage);
  set(RetentionCounter::uncleared, counts.left_over + not_kept_);
  set(RetentionCounter::late, counts.late);
  set(RetentionCounter::cleared_again, counts.cleared_again);
  set(RetentionCounter::early_forgotten, counts.early_forgotten);
  set(RetentionCounter::waiting, service_.waiting());
  set(RetentionCounter::sending, service_.sending());
  set(RetentionCounter::other_robs, other_robs_.load(std::memory_order_relaxed));
  set(RetentionCounter::kept_limit, settings_.retention.most_fragments() * queues_.size());
  set(RetentionCounter::fill, static_cast<std::uint64_t>(std::lround(100 * retention.fill())));
  taken_.set(counts.arrived + not_kept_);
}

Error HltRequestHandler::unplaced() const {
  return Error{"readout.joined_unplaced",
               fmt::format("the readout joined a run, and its ids of {} bits do not show which events they are",
                           settings_.service.ids.bits),
               "", "start all readouts before the run, set readout.builder.trigger_list = true, or extract more bits"};
}

FragmentConsumer::Status HltRequestHandler::status() const {
  Status out;
  out.name = settings_.name;
  for (const auto& queue : queues_)
    out.queue_fill = std::max(out.queue_fill, static_cast<double>(queue->size()) / static_cast<double>(queue->capacity()));
  out.consumed = taken_.get();
  out.stalls = stalls_.load(std::memory_order_relaxed);
  if (unplaced_.load(std::memory_order_relaxed)) {
    const Error error = unplaced();
    out.failure = fmt::format("{}: {}; {}", error.code, error.what, error.next);
  }
  out.cpu_seconds = cpu_.seconds();
  for (std::size_t i = 0; i < kRetentionInfo.size(); ++i)
    out.counters.push_back({std::string(kRetentionInfo[i].name), published_[i].get()});
  for (std::size_t i = 0; i < std::size(kServiceInfo); ++i)
    out.counters.push_back({std::string(kServiceInfo[i].name), service_.counters().read(static_cast<ServiceCounter>(i))});
  const std::vector<NamedCounter> network = service_.network_counters();
  out.counters.insert(out.counters.end(), network.begin(), network.end());
  return out;
}

namespace {

/// The values of the configuration.
struct HandlerKeys {
  RetentionSettings retention = {};
  std::vector<std::uint32_t> robs = {};
  std::uint32_t reorder_fragments = 256;
  std::chrono::nanoseconds reorder_time = std::chrono::milliseconds{100};
  std::chrono::nanoseconds garbage_age = std::chrono::seconds{180};
  std::size_t early_clears = 65'536;
  std::size_t waiting = 4096;
  std::chrono::nanoseconds patience = std::chrono::seconds{10};
  std::chrono::nanoseconds linger = std::chrono::seconds{5};
  base::IdlePolicy idle = base::IdlePolicy::sleep;
  int cpu = -1;
  transport::ReplierKeys replier = {};
};

const Settings<HandlerKeys>& handler_settings() {
  using H = HandlerKeys;
  using R = RetentionSettings;
  using base::IdlePolicy;
  static const Settings<H> settings{
      setting(
          &H::retention,
          {setting(&R::rate_hz, "rate", "Fragments per second of a ROB for which memory is sized.",
                   {.minimum = 1, .unit = Unit::hertz}),
           setting(&R::retention, "retention",
                   "The time that fragments can be kept at this rate. The builder gets the buffers for it.", {.minimum = 0}),
           setting(&R::max_fragments, "max_fragments",
                   "Most fragments of a ROB that are kept; a full book delays the run. 0: rate x retention.",
                   {.maximum = 1 << 24}),
           setting(&R::queue, "queue", "Fragments of a ROB that may wait to be kept, rounded up to a power of two.",
                   {.minimum = 2, .maximum = 1 << 20}),
           setting(&R::sending, "sending",
                   "Most fragments in unsent replies; one client may have an eighth of them. Further requests "
                   "wait.",
                   {.minimum = 1, .maximum = 1 << 20})}),
      setting(&H::robs, "robs", "Source ids of the ROBs that it serves. Empty: all of the readout."),
      setting(&H::reorder_fragments, "reorder_fragments",
              "A fragment that this many fragments of its ROB have overtaken counts as lost, and clients get this answer.",
              {.maximum = 1 << 20}),
      setting(&H::reorder_time, "reorder_time", "A fragment overtaken this long ago counts as lost, too.", {.minimum = 0}),
      setting(
          &H::garbage_age, "garbage_age",
          "A fragment that came this long before a cleared one is released without a clear. Set this longer than the farm "
          "takes for an event, time-outs included.",
          {.minimum = 1e6}),
      setting(&H::early_clears, "early_clears",
              "Most clears before their fragments that are remembered, separately for each ROB.",
              {.minimum = 1, .maximum = 1 << 24}),
      setting(&H::waiting, "waiting", "Requests that may wait for fragments which have not come yet.",
              {.minimum = 1, .maximum = 1 << 20}),
      setting(&H::patience, "patience", "A client that reads nothing of its replies for this long is cut off.",
              {.minimum = 1e6}),
      setting(&H::linger, "linger",
              "After a run, kept fragments are served until they are cleared, or until no client has fetched or cleared "
              "anything for this long; then they count as uncleared.",
              {.minimum = 0}),
      setting(&H::idle, "idle", {{"spin", IdlePolicy::spin}, {"yield", IdlePolicy::yield}, {"sleep", IdlePolicy::sleep}},
              "What its thread does while there is nothing to do: spin (lowest latency, a core), yield, or sleep (kind to a "
              "laptop)."),
      setting(&H::cpu, "cpu", "Pins its thread to this CPU. -1: not pinned.", {.minimum = -1, .maximum = 4095}),
      setting(&H::replier, transport::replier_keys()),
  };
  return settings;
}

/// The ROBs of the run that the configuration names. Throws SetupError.
std::vector<SourceId> robs_of(const std::vector<std::uint32_t>& wanted, const RunInfo& run) {
  if (wanted.empty()) return run.robs;
  std::vector<SourceId> robs;
  for (const std::uint32_t id : wanted) {
    if (std::ranges::find(run.robs, SourceId{id}) == run.robs.end() || std::ranges::find(robs, SourceId{id}) != robs.end())
      throw SetupError({"readout.handler_robs",
                        fmt::format("{} is not a ROB of this readout, or named twice", formats::to_text(SourceId{id})), "",
                        "name source ids of [[readout.rob]] in `robs`, or leave it out for all of them"});
    robs.push_back(SourceId{id});
  }
  return robs;
}

}  // namespace

std::vector<Key> HltRequestHandler::keys() { return handler_settings().keys(); }

Result<void> HltRequestHandler::check(const Parameters& parameters) {
  RODEO_TRY(handler_settings().read(parameters).replier.replier({}, {}));
  return {};
}

RetentionSettings HltRequestHandler::retention_of(const Parameters& parameters) {
  return handler_settings().read(parameters).retention;
}

std::unique_ptr<FragmentConsumer> HltRequestHandler::create(const Parameters& parameters, const RunInfo& run) {
  const HandlerKeys keys = handler_settings().read(parameters);
  HltRequestHandlerSettings settings{.retention = keys.retention, .linger = keys.linger, .idle = keys.idle, .cpu = keys.cpu};
  if (parameters.has("name")) settings.name = parameters.text("name");
  auto replier = keys.replier.replier(fmt::format("{}.{}", run.readout_name, settings.name), "fragments");
  if (!replier) throw SetupError(replier.error());
  settings.service.replier = *std::move(replier);
  settings.service.robs = robs_of(keys.robs, run);
  settings.service.book = {.reorder_fragments = keys.reorder_fragments,
                           .reorder_ns = static_cast<std::uint64_t>(keys.reorder_time.count()),
                           .garbage_ns = static_cast<std::uint64_t>(keys.garbage_age.count()),
                           .most_early_clears = keys.early_clears,
                           .id_step = run.ids.step_at_start()};
  settings.service.ids = run.ids;
  settings.service.numbering = run.numbering;
  FragmentBook::Settings book = settings.service.book;
  book.most_fragments = settings.retention.most_fragments();
  check_memory(
      static_cast<double>(settings.service.robs.size()) * FragmentBook::memory_bytes(book), 0,
      "books of the fragments that are kept",
      "make `retention`, `max_fragments` or `early_clears` of the hlt_request_handler smaller, or end other programs");
  settings.service.most_waiting = keys.waiting;
  settings.service.patience_ns = static_cast<std::uint64_t>(keys.patience.count());
  settings.service.frame.run_number = run.run_number;
  return std::make_unique<HltRequestHandler>(std::move(settings));
}

}  // namespace rodeo::readout
