// The readout application: makes the components that its settings name, links them, runs them, and lets them go in order. It runs
// interfaces only; what a generator or a file writer is, is the registry's business. Builders alone it knows by type: how many fragments an event
// has, and what advice helps.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/registry.h"
#include "process/watchdog.h"
#include "readout/back_pressure.h"
#include "readout/fragment_meter.h"
#include "readout/link_policy.h"
#include "readout/readout_status.h"
#include "readout/sequence/standings.h"
#include "readout/settings.h"

namespace rodeo::readout {

/// One run of one readout process. All functions are called by one thread, except where they say otherwise.
///
///   Application run(settings, registry);     // throws SetupError
///   run.start();
///   while (run.phase() != Phase::stopped) { run.step(); sleep(10ms); }
class Application {
 public:
  /// Makes and links everything; nothing flows yet. Throws SetupError: unknown component, duplicate or unknown link, no links, or
  /// what a component's factory says. The registry must outlive the application.
  Application(ReadoutSettings settings, const base::ComponentRegistry& registry);

  /// Stops the run if it is still going, and waits for it.
  ~Application();

  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;

  /// All is made, the input is open, and the run is not known yet: ready for take_run() and start(). Before start().
  void hold();

  /// The run that it is for, instead of the one that the settings name. In the phase ready. Throws SetupError where a consumer cannot take it, for
  /// example one that finds files of this run; another run can be taken then.
  void take_run(std::uint32_t number, std::uint32_t type);

  /// Starts the consumers in list order, then the builders, then the input. Once, in the phase prepared or ready. Throws SetupError if one of them
  /// cannot; what was started is stopped again, and the application can only be destroyed then.
  void start();

  /// Moves the run on: judges back-pressure and links, notices the failure of a consumer and the end of the run. Call it ten to a
  /// hundred times a second. Does not block.
  void step();

  /// Tells the input to stop; step() does the rest. Again is no error.
  void stop();
  /// stop() was called: the run does not end by itself alone.
  bool stopping() const { return stopping_; }

  /// After stop(): what still waits in builders and consumers is given up, and counted by name. Does not block.
  void give_up();

  /// Workers and consumers that have waited for long, and done nothing meanwhile.
  const std::vector<process::StandingPart>& standing() const { return watchdog_.standing(); }
  /// The run is ABORTED, and why; the first reason stays.
  void fail(std::string why) {
    if (failure_.empty()) failure_ = std::move(why);
  }

  /// Any thread.
  Phase phase() const { return phase_.load(std::memory_order_acquire); }

  /// Totals and the current back-pressure. In any phase, by the thread that calls step().
  ReadoutStatus status();

  /// Takes a link out of the build or back into it. Returns an error if no ROB has it, it is in that state already, or
  /// the run is ending, when builders no longer listen.
  Result<void> set_link(Fid fid, LinkState state);

  /// Which stage held the run back most often so far.
  std::string limited_by() const { return history_.worst(); }

  /// What happened since the last call that a user wants to read: links removed and restored, a ROB whose chunks are duplicates.
  std::vector<std::string> take_messages();

  const ReadoutSettings& settings() const { return settings_; }

 private:
  struct Rob {
    SourceId source_id;
    std::vector<BuilderLink> links;  ///< the builder refers to them
    std::vector<LinkState> asked;    ///< of each link, last
    LinkPolicy policy;
    std::unique_ptr<FragmentBuilder> builder;
    bool duplicates_told = false;
  };

  void find_links();
  formats::IdLayout id_layout(const TriggerFields& fields) const;
  TriggerFields trigger_fields(const base::ComponentRegistry& registry) const;
  void tell_silences(const TriggerFields& fields) const;
  void make_consumers(const base::ComponentRegistry& registry);
  void make_builders(const base::ComponentRegistry& registry);
  void apply_link_policy(const ReadoutStatus& now);
  void watch(const ReadoutStatus& now, std::uint64_t now_ns);
  void warn_of_duplicates(const ReadoutStatus& now);
  void set_state(Rob& rob, Fid fid, LinkState state);
  void start_all();
  void undo_start();
  void stop_consumer(std::size_t number);
  void drain();
  void finish();

  ReadoutSettings settings_;
  // Destroyed last to first: consumers hold fragments, fragments lie in the builders' memory, builders hold the input's streams.
  std::unique_ptr<DataInput> input_;
  Standings standings_;  ///< of the builders' readers
  std::vector<Rob> robs_;
  FragmentMeter meter_;
  std::vector<std::unique_ptr<FragmentConsumer>> consumers_;

  std::size_t started_consumers_ = 0;
  std::size_t started_builders_ = 0;
  std::thread drain_;  ///< waits for the builders, then stops the consumers; both block
  std::atomic<bool> drained_{false};
  std::atomic<Phase> phase_{Phase::prepared};
  std::atomic<std::uint64_t> end_ns_{0};  ///< steady time at which the flow ended; 0 while it goes on
  std::uint64_t start_ns_ = 0;
  double unix_start_ = 0;

  std::uint64_t looked_ns_ = 0;
  ReadoutStatus previous_;
  std::string cause_;
  BackPressureHistory history_;
  std::string failure_;
  std::string drain_failure_;  ///< of the thread that drains; read once that has ended
  std::vector<std::string> messages_;
  bool stopping_ = false;
  std::uint64_t consumers_give_up_ns_ = 0;  ///< 0: not
  process::Watchdog watchdog_;
};

}  // namespace rodeo::readout
