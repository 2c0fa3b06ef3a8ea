#include "bench/farm/farm_bench.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/child_process.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "bench/farm/farm_meeting.h"
#include "bench/farm/stand_in_nodes.h"
#include "bench/farm/stand_in_readouts.h"
#include "bench/network/two_processes.h"
#include "farm/supervisor/supervisor.h"
#include "trigger/authority.h"
#include "trigger/server.h"

namespace rodeo::bench {
namespace {

using namespace std::chrono_literals;

constexpr auto kStartLimit = 120s;  // limit for the start of all processes, and for their end
constexpr auto kGrace = 60s;        // time until a silent peer is given up
constexpr auto kWarmUp = 200ms;
// Batches of clears must be full, as after 10 ms at a million events a second; the cost of a batch does not depend on its
// contents.
constexpr auto kClearAfter = 100ms;
constexpr std::uint32_t kProcesses = 2;  // processes for the nodes, and for the readouts: each loops over its share

[[noreturn]] void fail(std::string what) { throw SetupError({"bench.processes", std::move(what)}); }

/// Raises the limit of descriptors: each of thousands of connections takes some.
void raise_limits() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &files);
}

template <typename Stand>
void stand_in(Stand&& stand, const FarmMeeting& meeting) {
  base::Backoff backoff;
  while (!meeting->stop.load(std::memory_order_relaxed)) {
    if (stand.poll(base::steady_now_ns())) {
      backoff.reset();
    } else {
      backoff.idle();
    }
  }
}

double process_cpu_seconds() {
  timespec used{};
  (void)::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

/// The processes that stand for the rest of the farm; they end on request.
class StandIns {
 public:
  explicit StandIns(const FarmMeeting& meeting) : meeting_(meeting) {}
  ~StandIns() { end(); }

  void fork(const std::function<void()>& work) {
    auto child = base::ChildProcess::fork(work);
    if (!child) throw SetupError(child.error());
    children_.push_back(std::move(*child));
  }
  void check() {
    for (auto& child : children_) {
      if (child.wait(0ms)) fail("a process that stands for nodes, readouts or the trigger has ended early");
    }
  }
  template <typename Condition>
  void wait_for(const char* what, Condition&& condition) {
    const auto end = std::chrono::steady_clock::now() + kStartLimit;
    while (!condition()) {
      check();
      if (silent_) silent_();
      if (std::chrono::steady_clock::now() > end) fail(fmt::format("{} did not happen within {} s", what, kStartLimit / 1s));
      std::this_thread::sleep_for(2ms);
    }
  }
  /// Called during every wait.
  void give_up_if(std::function<void()> silent) { silent_ = std::move(silent); }
  void end() {
    silent_ = {};
    meeting_->stop.store(true);
    for (auto& child : children_) (void)child.wait(10s);
    children_.clear();
  }

 private:
  const FarmMeeting& meeting_;
  std::vector<base::ChildProcess> children_;
  std::function<void()> silent_;
};

void prove(const FarmBenchSettings& settings, const FarmMeeting& meeting, const farm::SupervisorStatus& last,
           FarmBenchResult& result) {
  const std::uint64_t decided = last["accepted"] + last["rejected"];
  result.events = meeting->assigned.load();
  result.assigned_twice = meeting->assigned_twice.load();
  result.undecided = result.events - std::min(result.events, decided) + (decided - std::min(result.events, decided));
  result.cleared_twice = meeting->readouts[0].twice.load();
  result.cleared_early = meeting->cleared_early.load();
  for (std::uint32_t i = 0; i < settings.readouts; ++i) {
    const auto& readout = meeting->readouts[i];
    const std::uint64_t cleared = readout.cleared.load();
    result.uncleared += result.events - std::min(result.events, cleared);
    if (cleared > result.events) result.cleared_twice += cleared - result.events;
    if (readout.digest.load() != meeting->readouts[0].digest.load()) ++result.other_batches;
  }
  result.failures = meeting->failures.load() + (last.adds_up ? 0 : 1) + last["late_decisions"] + last["repeated_decisions"] +
                    last["unknown_decisions"] + last["timed_out"] + last["node_gone"] +
                    (last["cleared"] == result.events ? 0 : 1);
}

}  // namespace

FarmBenchResult run_farm_bench(const FarmBenchSettings& settings) {
  raise_limits();
  const BenchFolder folder;
  const std::filesystem::path bus = folder.path() / "bus";
  const std::string trigger = fmt::format("bench-farm-{}", ::getpid());
  const FarmMeeting meeting;
  StandIns others(meeting);
  const auto share = [](std::uint32_t of, std::uint32_t i) { return of * i / kProcesses; };
  for (std::uint32_t i = 0; i < kProcesses; ++i) {
    const std::uint32_t first_readout = share(settings.readouts, i);
    const std::uint32_t first_node = share(settings.nodes, i);
    const std::uint32_t readouts = share(settings.readouts, i + 1) - first_readout;
    const std::uint32_t nodes = share(settings.nodes, i + 1) - first_node;
    if (readouts > 0)
      others.fork([&, first_readout, readouts] {
        stand_in(StandInReadouts({.bus = bus, .first = first_readout, .readouts = readouts}, meeting), meeting);
      });
    if (nodes > 0)
      others.fork([&, first_node, nodes] {
        stand_in(StandInNodes({.bus = bus,
                               .supervisor = "supervisor",
                               .first = first_node,
                               .nodes = nodes,
                               .slots = settings.slots,
                               .at_once = settings.at_once},
                              meeting),
                 meeting);
      });
  }
  others.fork([&] {
    trigger::TriggerAuthority authority({.rate_hz = settings.rate_hz, .limit = kMostBenchEvents});
    const trigger::TriggerServer server({.address = trigger, .name = "trigger", .timeout = 60s}, authority);
    while (!meeting->stop.load(std::memory_order_relaxed)) std::this_thread::sleep_for(5ms);
  });
  others.wait_for("the start of all readouts", [&] { return meeting->readouts_here.load() == settings.readouts; });

  farm::SupervisorSettings supervised{.name = "supervisor",
                                      .trigger = trigger,
                                      .most_nodes = settings.nodes + 16,
                                      .events_in_flight = std::max(settings.nodes * settings.slots * 4, 1U << 17),
                                      .event_timeout = kGrace,
                                      .clear_after = kClearAfter,
                                      .readout_grace = kGrace,
                                      .node_grace = kGrace,
                                      .rebuild_time = 0s,
                                      .drain_time = 60s};
  for (std::uint32_t i = 0; i < settings.readouts; ++i) supervised.readouts.push_back(stand_in_readout(i));
  // Save memory for 2656 connections: a node's message has some hundred bytes.
  supervised.network = {.bus = bus, .page_bytes = 2048, .pages = 4};
  auto supervisor = std::make_unique<farm::Supervisor>(supervised);
  supervisor->start(1);
  const auto here = [](const auto& all) {
    return static_cast<std::size_t>(std::ranges::count_if(all, [](const auto& one) { return one.connected; }));
  };
  // A peer that was given up misses decisions, and gets its unanswered messages twice, so nothing can be proved.
  others.give_up_if([&] {
    const auto status = supervisor->status();
    if (const auto lost = status["readouts_lost"] + status["nodes_lost"]; lost > 0)
      fail(fmt::format("{} nodes or readouts were silent for {} s: this machine is too busy, or too small, for this number",
                       lost, kGrace / 1s));
  });
  others.wait_for("the connection of all nodes and readouts", [&] {
    const auto status = supervisor->status();
    return here(status.nodes) == settings.nodes && here(status.readouts) == settings.readouts;
  });
  others.wait_for("the first clears", [&] { return supervisor->status()["cleared"] > 0; });
  std::this_thread::sleep_for(kWarmUp);

  struct Look {
    std::uint64_t ns;
    double cpu;
    farm::SupervisorStatus status;
  };
  const auto look = [&] { return Look{base::steady_now_ns(), process_cpu_seconds(), supervisor->status()}; };
  const Look begin = look();
  std::this_thread::sleep_for(std::chrono::duration<double>(settings.seconds));
  others.wait_for("a clear", [&] { return supervisor->status()["cleared"] > begin.status["cleared"]; });
  const Look end = look();
  const auto more = [&](std::string_view counter) {
    return static_cast<double>(end.status[counter] - begin.status[counter]);
  };
  FarmBenchResult result{.seconds = static_cast<double>(end.ns - begin.ns) * 1e-9,
                         .cpu_seconds = end.cpu - begin.cpu,
                         .assignments = more("assignments"),
                         .decisions = more("accepted") + more("rejected"),
                         .clears = more("cleared"),
                         .requests = more("works"),
                         .batches = more("clears") / settings.readouts};
  supervisor->stop();
  others.wait_for("the end of the run", [&] { return supervisor->over(); });
  const auto last = supervisor->status();
  if (last.undecided + last.uncleared > 0)
    fail(
        fmt::format("{} events were not decided and {} not cleared {} s after the end: this machine is too busy, or too "
                    "small, for this number",
                    last.undecided, last.uncleared, supervised.drain_time / 1s));
  prove(settings, meeting, last, result);
  others.give_up_if({});
  supervisor.reset();  // it must end before the others, because it would search for each of them
  others.end();
  return result;
}

}  // namespace rodeo::bench
