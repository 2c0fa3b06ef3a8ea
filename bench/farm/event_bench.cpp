#include "bench/farm/event_bench.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "base/child_process.h"
#include "base/error.h"
#include "base/log.h"
#include "bench/network/bare.h"
#include "bench/network/bare_requests.h"
#include "bench/network/kept_fragments.h"
#include "bench/network/two_processes.h"
#include "bench/readout/scaling.h"
#include "farm/node/filter_node.h"
#include "farm/supervisor/supervisor.h"
#include "rodeo/selection.h"
#include "trigger/authority.h"
#include "trigger/server.h"

namespace rodeo::bench {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kRobExtraBytes = 84;   // bytes of a ROB in addition to its data
constexpr std::uint32_t kRequestBytes = 16;  // FETCH of all ROBs, with its framing
constexpr auto kPatience = 25s;
constexpr std::uint32_t kQueue = 32;

/// The results of supervisor and nodes at the end of a round.
struct Told {
  std::atomic<bool> over{false};  ///< no node asks readouts any more
  double latency_p50_us = 0, latency_p99_us = 0, building_p50_us = 0, building_p99_us = 0;
  std::uint64_t events = 0;
  std::uint64_t wrong = 0;
  std::uint64_t waits_for_credit = 0;
};

class SharedTold {
 public:
  SharedTold()
      : memory_(::mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), sizeof(Told)) {
    if (!memory_) throw SetupError({"bench.processes", "no shared memory"});
    new (memory_.data()) Told{};
  }
  Told& operator*() const { return *std::launder(reinterpret_cast<Told*>(memory_.data())); }
  Told* operator->() const { return &**this; }

 private:
  base::Mapping memory_;
};

/// Compares each byte of an event, and rejects the event.
class Prover final : public EventSelection {
 public:
  Prover(const EventBenchSettings& settings, Meeting& meeting) : settings_(settings), meeting_(meeting) {}

  Selected select(const WholeEvent& event) override {
    std::uint64_t good = 0;
    for (std::uint32_t i = 0; i < settings_.readouts && i < event.robs.size(); ++i) {
      const EventRob& rob = event.robs[i];
      good += rob.source_id == kept_source(i) && proves_kept_rob(rob.parts, settings_.fragment_bytes, event.global_id, i)
                  ? 1
                  : 0;
    }
    if (event.robs.size() != settings_.readouts) meeting_.lost.fetch_add(1, std::memory_order_relaxed);
    meeting_.mismatches.fetch_add(settings_.readouts - good, std::memory_order_relaxed);
    meeting_.chunks.fetch_add(good, std::memory_order_relaxed);
    meeting_.bytes.fetch_add(good * settings_.fragment_bytes, std::memory_order_relaxed);
    return Selected::reject();
  }

 private:
  const EventBenchSettings& settings_;
  Meeting& meeting_;
};

/// The fragments that all nodes may have under way; one node may have an eighth of them.
std::uint32_t sending(const EventBenchSettings& settings) { return std::max(8U, settings.nodes) * settings.slots + 64; }

/// Runs trigger, supervisor and nodes until `stop`, then ends them in order.
void run_farm(const EventBenchSettings& settings, const std::filesystem::path& bus, bool shaped, Meeting& meeting,
              Told& told) {
  const std::string trigger_name = fmt::format("bench-events-{}", ::getpid());
  trigger::TriggerAuthority authority({});
  const trigger::TriggerServer server({.address = trigger_name, .name = "trigger", .timeout = 60s}, authority);
  farm::SupervisorSettings supervised{.name = "supervisor",
                                      .trigger = trigger_name,
                                      .events_in_flight = std::min(settings.kept, 2 * settings.nodes * settings.slots),
                                      .event_timeout = 60s,
                                      .readout_grace = 60s,
                                      .node_grace = 60s,
                                      .rebuild_time = 0s};
  for (std::uint32_t i = 0; i < settings.readouts; ++i) supervised.readouts.push_back(kept_service(i));
  supervised.network.bus = bus;
  farm::Supervisor supervisor(supervised);
  supervisor.start(1);
  std::vector<std::unique_ptr<farm::FilterNode>> nodes;
  for (std::uint32_t i = 0; i < settings.nodes; ++i) {
    farm::NodeSettings node{.name = fmt::format("node{}", i), .slots = settings.slots, .workers = settings.workers};
    node.credit_fragments = shaped ? settings.credit_fragments : 0;
    node.credit_bytes = shaped ? settings.credit_bytes : 0;
    node.most_event_bytes = std::uint64_t{settings.readouts} * settings.fragment_bytes * 2 + 4096;
    // On a busy machine readouts start and answer late; this is not a loss.
    node.readout_grace = 60s;
    node.network = {.bus = bus, .providers = {settings.provider}, .pages = settings.pages};
    nodes.push_back(std::make_unique<farm::FilterNode>(node, [&] { return std::make_unique<Prover>(settings, meeting); }));
    nodes.back()->start(1);
  }
  const auto wait_for = [&](const char* what, const auto& condition) {
    for (const auto end = std::chrono::steady_clock::now() + kPatience; !condition(); std::this_thread::sleep_for(1ms)) {
      if (std::chrono::steady_clock::now() > end)
        throw SetupError({"bench.processes", fmt::format("{} did not happen within {} s", what, kPatience / 1s)});
    }
  };
  while (!meeting.stop.load(std::memory_order_relaxed)) std::this_thread::sleep_for(1ms);
  supervisor.stop();
  wait_for("the end of the run", [&] { return supervisor.over(); });
  for (const auto& node : nodes) node->end();
  wait_for("the end of all nodes", [&] { return std::ranges::all_of(nodes, [](const auto& one) { return one->ended(); }); });

  const farm::SupervisorStatus last = supervisor.status();
  std::vector<double> latencies, buildings;
  const auto microseconds = [](std::uint64_t ns) { return static_cast<double>(ns) * 1e-3; };
  for (const auto& node : nodes) {
    const farm::NodeStatus status = node->status();
    latencies.push_back(microseconds(status.collecting_p50_ns));
    buildings.push_back(microseconds(status.building_p50_ns));
    told.latency_p99_us = std::max(told.latency_p99_us, microseconds(status.collecting_p99_ns));
    told.building_p99_us = std::max(told.building_p99_us, microseconds(status.building_p99_ns));
    told.waits_for_credit += status["waits_for_credit"];
    for (const char* counter :
         {"accepted", "debug", "lost", "partial", "given_up", "let_go", "selection_failed", "bad_selection", "bad_orders",
          "lost_by_readout", "lost_bad", "lost_readout_died", "lost_timed_out", "unreadable_replies"})
      told.wrong += status[counter];
  }
  told.latency_p50_us = median(latencies);
  told.building_p50_us = median(buildings);
  // Each triggered event must be rejected once, and cleared.
  told.events = last["rejected"];
  for (const char* counter :
       {"accepted", "debug", "lost", "late_decisions", "repeated_decisions", "unknown_decisions", "timed_out", "node_gone"})
    told.wrong += last[counter];
  told.wrong += (last.adds_up ? 0 : 1) + last.undecided + last.uncleared + (last["cleared"] == told.events ? 0 : 1);
}

class Rounds {
 public:
  explicit Rounds(const EventBenchSettings& settings)
      : settings_(settings), rounds_(rounds_of(settings.seconds)), seconds_(settings.seconds / rounds_) {
    result_.has_shaped = settings.credit_fragments > 0 || settings.credit_bytes > 0;
  }

  EventBenchResult run() {
    const BareRequestsSettings alone{.provider = settings_.provider,
                                     .services = settings_.readouts,
                                     .clients = settings_.nodes,
                                     .under_way = settings_.slots,
                                     .request_bytes = kRequestBytes,
                                     .reply_bytes = settings_.fragment_bytes + static_cast<std::uint32_t>(kRobExtraBytes),
                                     .replies = settings_.kept,
                                     .page_bytes = settings_.page_bytes,
                                     .pages = settings_.pages,
                                     .seconds = seconds_};
    for (int round = 0; round < rounds_; ++round) {
      const Window bare = bare_pages(settings_.provider, settings_.page_bytes, false, seconds_,
                                     {.senders = settings_.readouts, .receivers = settings_.nodes});
      const Window transport = bare_requests(alone, folder_.path());
      const Window ours = build(false, free_);
      if (result_.has_shaped) {
        const Window shaped = build(true, shaped_);
        shaped_of_free_.push_back(shaped.bytes_per_second() / ours.bytes_per_second());
      }
      bare_.push_back(bare.bytes_per_second());
      bare_per_core_.push_back(bare.bytes_per_core_second());
      transport_.push_back(transport.bytes_per_second());
      transport_per_core_.push_back(transport.bytes_per_core_second());
      of_bare_.push_back(ours.bytes_per_second() / bare.bytes_per_second());
      of_bare_per_core_.push_back(ours.bytes_per_core_second() / bare.bytes_per_core_second());
      of_transport_.push_back(ours.bytes_per_second() / transport.bytes_per_second());
      of_transport_per_core_.push_back(ours.bytes_per_core_second() / transport.bytes_per_core_second());
    }
    result_.free = free_.medians();
    if (result_.has_shaped) {
      result_.shaped = shaped_.medians();
      result_.shaped_of_free = median(shaped_of_free_);
    }
    result_.bare_bytes_per_second = median(bare_);
    result_.bare_bytes_per_core_second = median(bare_per_core_);
    result_.transport_bytes_per_second = median(transport_);
    result_.transport_bytes_per_core_second = median(transport_per_core_);
    result_.of_bare = median(of_bare_);
    result_.of_bare_per_core = median(of_bare_per_core_);
    result_.of_transport = median(of_transport_);
    result_.of_transport_per_core = median(of_transport_per_core_);
    return result_;
  }

 private:
  struct Series {
    std::vector<double> events, bytes, per_core, p50, p99, building_p50, building_p99, waits;
    EventRates medians() const {
      return {.events_per_second = median(events),
              .bytes_per_second = median(bytes),
              .bytes_per_core_second = median(per_core),
              .latency_p50_us = median(p50),
              .latency_p99_us = median(p99),
              .building_p50_us = median(building_p50),
              .building_p99_us = median(building_p99),
              .waits_for_credit = median(waits)};
    }
  };

  Window build(bool shaped, Series& series) {
    const SharedMeeting meeting;
    const SharedTold told;
    const KeptSettings kept{.provider = settings_.provider,
                            .fragment_bytes = settings_.fragment_bytes,
                            .kept = settings_.kept,
                            .queue = kQueue,
                            .sending = sending(settings_),
                            .page_bytes = settings_.page_bytes};
    const Window window = measure(
        *meeting, seconds_, [&] { run_kept_readouts(kept, folder_.path(), settings_.readouts, told->over); },
        [&] {
          try {
            run_farm(settings_, folder_.path(), shaped, *meeting, *told);
          } catch (...) {
            told->over.store(true);
            throw;
          }
          told->over.store(true);
        });
    series.events.push_back(window.chunks / window.seconds / settings_.readouts);
    series.bytes.push_back(window.bytes_per_second());
    series.per_core.push_back(window.bytes_per_core_second());
    series.p50.push_back(told->latency_p50_us);
    series.p99.push_back(told->latency_p99_us);
    series.building_p50.push_back(told->building_p50_us);
    series.building_p99.push_back(told->building_p99_us);
    series.waits.push_back(
        told->events == 0 ? 0 : static_cast<double>(told->waits_for_credit) / static_cast<double>(told->events));
    result_.seconds += window.seconds;
    result_.events += told->events;
    result_.verified_fragments += meeting->chunks.load();
    result_.mismatches += meeting->mismatches.load() + told->wrong;
    result_.lost += meeting->lost.load();
    // Each event that the supervisor counts must have been proved, each of its fragments once.
    if (meeting->chunks.load() != told->events * settings_.readouts) ++result_.mismatches;
    return window;
  }

  const EventBenchSettings& settings_;
  const int rounds_;
  const double seconds_;
  const BenchFolder folder_;
  EventBenchResult result_;
  Series free_, shaped_;
  std::vector<double> bare_, bare_per_core_, transport_, transport_per_core_, of_bare_, of_bare_per_core_, of_transport_,
      of_transport_per_core_, shaped_of_free_;
};

}  // namespace

EventBenchResult run_event_bench(const EventBenchSettings& settings) {
  // Hide warnings: peers come and go with each round.
  const base::LogLevel level = base::log_level();
  if (level > base::LogLevel::debug) base::set_log_level(std::max(level, base::LogLevel::error));
  const EventBenchResult result = Rounds(settings).run();
  base::set_log_level(level);
  return result;
}

}  // namespace rodeo::bench
