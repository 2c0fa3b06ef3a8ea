// The supervisor of a farm: one thread that serves trigger, nodes, readouts and recorders, and keeps the events.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/thread.h"
#include "farm/supervisor/events.h"
#include "farm/supervisor/nodes.h"
#include "farm/supervisor/orphans.h"
#include "farm/supervisor/readouts.h"
#include "farm/supervisor/settings.h"
#include "farm/supervisor/triggers.h"
#include "transport/requester.h"

namespace rodeo::farm {

/// Stage of a supervisor's run. It only moves forward.
enum class Stage : std::uint8_t {
  idle,        ///< There is no run yet, as nodes learn from the answer.
  rebuilding,  ///< Waits for processes that may hold earlier events; assigns new events already.
  running,
  holding,   ///< Asks the trigger to stop.
  draining,  ///< No events come; events under way are decided and cleared.
  parting,   ///< Nodes learn the end of the run.
  over
};
const char* stage_name(Stage stage);

struct SupervisorStatus {
  std::uint64_t at_ns = 0;  ///< Time on the steady clock; at most 50 ms old.
  Stage stage = Stage::idle;
  std::uint32_t run_number = 0;
  double seconds = 0;  ///< Duration of the run.
  /// Counters of kDispatchCounters, kEventsCounters, kNodesCounters, kReadoutsCounters, kOrphansCounters and the network.
  std::vector<NamedCounter> counters;
  std::uint64_t waiting = 0;    ///< Events that wait for a node.
  std::uint64_t assigned = 0;   ///< Events that nodes have.
  std::uint64_t uncleared = 0;  ///< Decided events that some readout has not cleared.
  std::uint64_t orphans = 0;    ///< Unannounced events that readouts hold and that have not entered.
  std::uint64_t room = 0;       ///< Events that can still enter.
  std::uint64_t undecided = 0;  ///< Events that were given up at the end of the run.
  bool adds_up = true;          ///< Result of Dispatcher::adds_up().
  std::uint32_t lumi_block = 0;
  std::uint32_t scan_step = 0;
  std::vector<SupervisedNode> nodes;
  std::vector<SupervisedReadout> readouts;
  std::optional<trigger::TriggerReport> trigger = {};
  std::string trouble = {};  ///< Trouble of the file of decisions, or of the trigger.
  double cpu_seconds = 0;

  std::uint64_t operator[](std::string_view counter) const { return base::counter_value(counters, counter); }
  std::string limited_by() const;
};

/// One thread, another than the supervisor's, calls start(), stop() and all other functions.
class Supervisor {
 public:
  /// Puts the service on the bus, and searches the other processes. Throws SetupError.
  explicit Supervisor(SupervisorSettings settings);
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  /// Throws SetupError: farm.decisions.
  void start(std::uint32_t run_number);
  /// Ends in order: holds the trigger, then waits until events under way are decided and cleared.
  void stop() { stop_.store(true, std::memory_order_release); }
  /// After stop(): stops all waits. Events under way stay undecided.
  void give_up() { give_up_.store(true, std::memory_order_release); }
  bool over() const { return over_.load(std::memory_order_acquire); }
  /// The error if a run with these readouts is impossible. The supervisor has then ended.
  std::optional<Error> refused() const;

  SupervisorStatus status() const;
  std::vector<std::string> take_messages();
  const SupervisorSettings& settings() const { return settings_; }

 private:
  void run();
  bool step(std::uint64_t now_ns);
  void update_stage(std::uint64_t now_ns);
  void on_held(std::uint32_t readout, std::uint64_t id);
  void refuse(const Error& why, std::uint64_t now_ns);
  void begin_run(std::uint64_t now_ns);
  void enter_stage(Stage stage, std::uint64_t now_ns);
  std::uint16_t block_by_time(std::uint64_t now_ns) const;
  void publish_status(std::uint64_t now_ns);

  const SupervisorSettings settings_;
  transport::Requester requester_;
  Events events_;
  Nodes nodes_;
  Readouts readouts_;
  Orphans orphans_;
  std::optional<Triggers> triggers_;

  // Only the supervisor's thread uses these members.
  Stage stage_ = Stage::idle;
  std::uint64_t now_ns_ = 0;
  std::uint64_t entered_ns_ = 0;  // Begin of the stage.
  std::uint64_t began_ns_ = 0;
  std::uint64_t ended_ns_ = 0;
  std::uint64_t ticked_ns_ = 0;
  std::uint64_t shown_ns_ = 0;
  std::uint64_t undecided_ = 0;
  bool triggers_started_ = false;
  std::string trouble_;
  std::vector<trigger::TriggerMark> marks_;
  std::vector<transport::Requester::Reply> replies_;
  base::ThreadCpu cpu_;

  // The two threads share these members.
  std::atomic<std::uint32_t> run_number_{0};
  std::atomic<bool> stop_{false};
  std::atomic<bool> give_up_{false};
  std::atomic<bool> leave_{false};
  std::atomic<bool> over_{false};
  mutable std::mutex mutex_;
  SupervisorStatus shown_;
  std::optional<Error> refused_;
  std::vector<std::string> messages_;
  std::jthread thread_;
};

}  // namespace rodeo::farm
