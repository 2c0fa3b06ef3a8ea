// A run with trains that switches to single packets where trains are too coarse; its results agree with the packet engine.
//
// Trains leave out the times when single packets are acknowledged. These times have an effect when a connection waits for
// its window, a timer expires, a node waits for its credits or a packet is lost; then they affect all data under way at that
// time. So the run saves its state from time to time. When the times begin to have an effect, the run returns to a state
// before the assignment of the oldest event under way, and continues packet by packet until no connection waits any more:
//
//   trains ────┬───────────┬────────x     the times matter here, for data sent since s
//              saved       saved  s
//                            └────►packets ······ calm ► saved, trains ────
#pragma once

#include <memory>
#include <vector>

#include "network/simulator/engine/engine.h"

namespace rodeo::network {

class TrainRun {
 public:
  /// The scenario must have passed check(); both must outlive the run.
  TrainRun(const Scenario& scenario, const Observers& observers);

  /// Runs to the end of the duration, or until the observer stops it.
  void run();
  /// The result; valid after run().
  Outcome outcome();
  void visit_flows(const std::function<void(const FlowRecord&)>& visit) const { engine_->visit_flows(visit); }

 private:
  using Engine = SimulationEngine<true>;

  struct Saved {
    std::unique_ptr<Engine> engine;  ///< nullptr: the state at the start
    Picoseconds time = 0;
    std::size_t held = 0;  ///< number of samples taken up to this state
    bool exact = false;    ///< no data were under way in trains
  };

  void save(bool exact);
  void forget_old();
  void report(std::size_t samples);
  void restore();
  void continue_in_packets();
  Picoseconds begin_of_what_matters() const;
  std::unique_ptr<Engine> begin() const { return std::make_unique<Engine>(scenario_, mine_); }

  const Scenario& scenario_;
  const Observers& observers_;
  Observers mine_;  ///< observers for the engine: they hold samples back until no return can change them
  std::vector<OccupancySample> held_;
  std::vector<Saved> saved_;  ///< the states in order of time; since the first one the run has used trains only
  std::unique_ptr<Engine> engine_;
  std::uint64_t told_ns_ = 0;
  Picoseconds interval_;           ///< time until the next state is saved
  Picoseconds patience_;           ///< time in which nothing may wait before trains are tried again
  Picoseconds trains_since_ = 0;   ///< start of the present stretch of trains
  Picoseconds packets_since_ = 0;  ///< start of the present stretch of packets
  Picoseconds packets_at_least_ = 0;
  Picoseconds in_packets_ = 0;
};

}  // namespace rodeo::network
