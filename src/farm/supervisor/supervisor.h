// The supervisor of a farm: one thread that hears the trigger, nodes, readouts and recorders, and keeps the books between them.
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
#include "farm/supervisor/books.h"
#include "farm/supervisor/nodes.h"
#include "farm/supervisor/orphans.h"
#include "farm/supervisor/readouts.h"
#include "farm/supervisor/settings.h"
#include "farm/supervisor/triggers.h"
#include "transport/requester.h"

namespace rodeo::farm {

/// Where the run of a supervisor stands. It moves forward only.
enum class Stage : std::uint8_t {
  idle,        ///< nodes are told that there is no run yet
  rebuilding,  ///< it waits for those who may hold events of before; new ones are assigned already
  running,
  holding,   ///< the trigger is asked to stop
  draining,  ///< no events come; what is under way is decided and cleared
  parting,   ///< nodes are told that the run is over
  over
};
const char* stage_name(Stage stage);

struct SupervisorStatus {
  std::uint64_t at_ns = 0;  ///< steady clock: at most 50 ms ago
  Stage stage = Stage::idle;
  std::uint32_t run_number = 0;
  double seconds = 0;  ///< of the run
  std::vector<NamedCounter>
      counters;  ///< kDispatchCounters, kBooksCounters, kNodesCounters, kReadoutsCounters, kOrphansCounters, those of the network
  std::uint64_t waiting = 0;    ///< events for a node
  std::uint64_t assigned = 0;   ///< events that nodes have
  std::uint64_t uncleared = 0;  ///< decided events that some readout has not cleared
  std::uint64_t orphans = 0;    ///< held by readouts, told by nobody, not in the books yet
  std::uint64_t room = 0;       ///< for so many events more
  std::uint64_t undecided = 0;  ///< at the end of the run: given up
  bool adds_up = true;          ///< as Dispatcher::adds_up()
  std::uint32_t lumi_block = 0;
  std::uint32_t scan_step = 0;
  std::vector<SupervisedNode> nodes;
  std::vector<SupervisedReadout> readouts;
  std::optional<trigger::TriggerReport> trigger = {};
  std::string trouble = {};  ///< with the file of decisions, or the trigger
  double cpu_seconds = 0;

  std::uint64_t operator[](std::string_view counter) const { return base::counter_value(counters, counter); }
  std::string limited_by() const;
};

/// start(), stop() and the rest by one thread, which is not the supervisor's.
class Supervisor {
 public:
  /// Puts the service on the bus, and looks for the others. Throws SetupError.
  explicit Supervisor(SupervisorSettings settings);
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  void start(std::uint32_t run_number);
  /// The end in order: the trigger is held, what is under way is decided and cleared.
  void stop() { stop_.store(true, std::memory_order_release); }
  /// After stop(): nothing is waited for any more, and what is under way is undecided.
  void give_up() { give_up_.store(true, std::memory_order_release); }
  bool over() const { return over_.load(std::memory_order_acquire); }
  /// Why there is no run with these readouts; it is over then.
  std::optional<Error> refused() const;

  SupervisorStatus status() const;
  std::vector<std::string> take_messages();
  const SupervisorSettings& settings() const { return settings_; }

 private:
  void run();
  bool turn(std::uint64_t now_ns);
  void move_on(std::uint64_t now_ns);
  void found(std::uint32_t readout, std::uint64_t id);
  void refuse(const Error& why, std::uint64_t now_ns);
  void begin(std::uint64_t now_ns);
  void enter(Stage stage, std::uint64_t now_ns);
  std::uint16_t block_by_time(std::uint64_t now_ns) const;
  void show(std::uint64_t now_ns);

  const SupervisorSettings settings_;
  transport::Requester requester_;
  Books books_;
  Nodes nodes_;
  Readouts readouts_;
  Orphans orphans_;
  std::optional<Triggers> triggers_;

  // Of its thread
  Stage stage_ = Stage::idle;
  std::uint64_t now_ns_ = 0;
  std::uint64_t entered_ns_ = 0;  // the stage
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

  // Between the two threads
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
