// The readout application makes the components that its settings name, links them, runs them, and stops them in order. It
// knows only their interfaces; the registry knows the types. The exception is builders: the application knows by their type
// how many fragments an event has, and which advice helps.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/registry.h"
#include "readout/back_pressure.h"
#include "readout/fragment_meter.h"
#include "readout/link_policy.h"
#include "readout/readout_status.h"
#include "readout/sequence/reader_tracks.h"
#include "readout/settings.h"

namespace rodeo::readout {

/// One run of one readout process. One thread calls all functions, except where they say otherwise.
///
///   Application run(settings, registry);     // throws SetupError
///   run.start();
///   while (run.phase() != Phase::stopped) { run.step(); sleep(10ms); }
class Application {
 public:
  /// Makes and links all components; no data flow yet. Throws SetupError for an unknown component, a duplicate or unknown
  /// link, no links, and for errors of a component's factory. The registry must outlive the application.
  Application(ReadoutSettings settings, const base::ComponentRegistry& registry);

  /// Stops a run that is still going, and waits for its end.
  ~Application();

  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;

  /// Waits for set_run() and start(): components exist and the input is open, but the run is not known. Before start().
  void hold();

  /// Replaces the run of the settings. Only in the phase ready. Throws SetupError if a consumer refuses the run, for example
  /// because files of this run exist; the application can then take another run.
  void set_run(std::uint32_t number, std::uint32_t type);

  /// Starts the consumers in list order, then the builders, then the input. Once, in the phase prepared or ready. Throws
  /// SetupError if a component cannot start: it stops the components that have started, and the application can then only be
  /// destroyed.
  void start();

  /// Judges back-pressure and links, and notices the failure of a consumer and the end of the run. Call it ten to a hundred
  /// times a second. Does not block.
  void step();

  /// Stops the input; step() completes the end of the run. Further calls have no effect.
  void stop();
  /// True after stop().
  bool stopping() const { return stopping_; }

  /// After stop(): builders and consumers give up what they wait for, and count it by name. Does not block.
  void give_up();

  /// Makes the run ABORTED, with a reason. The first reason stays.
  void fail(std::string why) {
    if (failure_.empty()) failure_ = std::move(why);
  }

  /// Any thread may call this.
  Phase phase() const { return phase_.load(std::memory_order_acquire); }

  /// Totals and the current back-pressure. In any phase, by the thread that calls step().
  ReadoutStatus status();

  /// Removes a link from the build or restores it. Returns an error if no ROB has the link, if the link is in this state
  /// already, or if the run is ending: builders then take no more commands.
  Result<void> set_link(Fid fid, LinkState state);

  /// The stage that has held the run back most often so far.
  std::string limited_by() const { return history_.worst(); }

  /// Events since the last call that a user wants to know: links removed and restored, a ROB whose chunks are duplicates.
  std::vector<std::string> take_messages();

  const ReadoutSettings& settings() const { return settings_; }

 private:
  struct Rob {
    SourceId source_id;
    std::vector<BuilderLink> links;           ///< the builder refers to them
    std::vector<LinkState> requested_states;  ///< the state last asked for, by link
    LinkPolicy policy;
    std::unique_ptr<FragmentBuilder> builder;
    bool duplicates_warned = false;
  };

  void find_links();
  formats::IdLayout id_layout(const TriggerFields& fields) const;
  TriggerFields trigger_fields(const base::ComponentRegistry& registry) const;
  void log_silences(const TriggerFields& fields) const;
  void make_consumers(const base::ComponentRegistry& registry);
  void make_builders(const base::ComponentRegistry& registry);
  void apply_link_policy(const ReadoutStatus& now);
  void warn_of_full_keepers(const ReadoutStatus& now);
  void warn_of_duplicates(const ReadoutStatus& now);
  void set_state(Rob& rob, Fid fid, LinkState state);
  void start_all();
  void undo_start();
  void stop_consumer(std::size_t number);
  void drain();
  void finish();

  ReadoutSettings settings_;
  // Destroyed last to first: consumers hold fragments, fragments lie in the builders' memory, builders hold the input's
  // streams.
  std::unique_ptr<DataInput> input_;
  ReaderTracks reader_tracks_;  ///< the builders' readers share it
  std::vector<Rob> robs_;
  FragmentMeter meter_;
  std::vector<std::unique_ptr<FragmentConsumer>> consumers_;

  std::size_t started_consumers_ = 0;
  std::size_t started_builders_ = 0;
  std::thread drain_;  ///< waits for the builders, then stops the consumers; both block
  std::atomic<bool> drained_{false};
  std::atomic<Phase> phase_{Phase::prepared};
  std::atomic<std::uint64_t> end_ns_{0};  ///< steady time at which the data flow ended; 0 before
  std::uint64_t start_ns_ = 0;
  double unix_start_ = 0;

  std::uint64_t stepped_ns_ = 0;  ///< time of the last step()
  std::uint64_t checked_ns_ = 0;
  std::uint64_t fragments_seen_ = 0;
  std::uint64_t data_from_ns_ = 0;  ///< time before which there was no fragment
  std::uint64_t data_to_ns_ = 0;    ///< time of the last fragment
  ReadoutStatus previous_;
  std::string cause_;
  BackPressureHistory history_;
  std::string failure_;
  std::string drain_failure_;  ///< set by the thread `drain`; read after that thread has ended
  std::vector<std::string> messages_;
  bool stopping_ = false;
  bool stopped_ = false;  ///< stop() ended the data flow, not the input itself
  bool keeper_told_ = false;
  std::uint64_t consumers_give_up_ns_ = 0;  ///< steady time at which consumers give up; 0: they do not
};

}  // namespace rodeo::readout
