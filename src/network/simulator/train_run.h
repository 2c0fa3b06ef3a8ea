// A run in trains that goes packet by packet where trains are not enough, and so agrees with the packet engine.
//
// Trains leave out when each packet is acknowledged. That matters once a connection waits for its window, a timer runs out, a node waits
// for its credits or a packet is lost; and then it matters for everything that was on its way at that time. So the run is saved now and
// then; where it begins to matter it is taken up again at a time before the oldest event under way was assigned, and goes packet by
// packet until no connection waits any more:
//
//   trains ────┬───────────┬────────x     it matters here, of what was sent since s
//              saved       saved  s
//                            └────►packets ······ calm ► saved, trains ────
#pragma once

#include <memory>
#include <vector>

#include "network/simulator/engine/engine.h"

namespace rodeo::network {

class TrainRun {
 public:
  /// The scenario has passed check(); both outlive the run.
  TrainRun(const Scenario& scenario, const Observers& observers);

  /// To the end of the duration, or until the observer stops it.
  void run();
  /// After run().
  Outcome outcome();
  void visit_flows(const std::function<void(const FlowRecord&)>& visit) const { engine_->visit_flows(visit); }

 private:
  using Engine = SimulationEngine<true>;

  struct Saved {
    std::unique_ptr<Engine> engine;  ///< none: the beginning
    Picoseconds time = 0;
    std::size_t held = 0;  ///< samples that had been taken
    bool exact = false;    ///< nothing was on its way in trains
  };

  void save(bool exact);
  void forget_old();
  void tell(std::size_t samples);
  void go_back();
  void go_on_in_packets();
  Picoseconds begin_of_what_matters() const;
  std::unique_ptr<Engine> begin() const { return std::make_unique<Engine>(scenario_, mine_); }

  const Scenario& scenario_;
  const Observers& observers_;
  Observers mine_;  ///< what the engine tells: samples are held back until they cannot be taken back
  std::vector<OccupancySample> held_;
  std::vector<Saved> saved_;  ///< in order of time; from the last to trains there was nothing but trains
  std::unique_ptr<Engine> engine_;
  std::uint64_t told_ns_ = 0;
  Picoseconds interval_;           ///< until the next is saved
  Picoseconds patience_;           ///< how long nothing has to wait before trains are tried again
  Picoseconds trains_since_ = 0;   ///< beginning of this stretch
  Picoseconds packets_since_ = 0;  ///< the same
  Picoseconds packets_at_least_ = 0;
  Picoseconds in_packets_ = 0;
};

}  // namespace rodeo::network
