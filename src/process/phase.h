// The phase and the condition of a process's run.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rodeo::process {

/// Progress of a run. It only moves forward, except after a failed start: the run stays prepared until it is ended.
enum class Phase : std::uint8_t {
  prepared,  ///< components made and linked
  ready,     ///< held: the run starts when its run number and settings arrive
  running,
  draining,  ///< the input is stopping or has ended; the data under way are still processed
  stopped,   ///< all data are processed
};

inline const char* phase_name(Phase phase) {
  constexpr const char* kNames[] = {"prepared", "ready", "running", "draining", "stopped"};
  return kNames[static_cast<std::size_t>(phase)];
}

/// The phase of a process. While its run is `prepared`, the process is launching.
inline const char* life_phase(Phase phase) { return phase == Phase::prepared ? "launching" : phase_name(phase); }

enum class Condition : std::uint8_t {
  good,        ///< no losses
  incomplete,  ///< there are losses; each is counted by its reason
  wrong,       ///< some bytes differ from those sent, or chunks are in no counter
  aborted,     ///< a failure or the user ended the run before its data were safe
};

inline const char* name_of(Condition condition) {
  constexpr const char* kNames[] = {"GOOD", "INCOMPLETE", "WRONG", "ABORTED"};
  return kNames[static_cast<std::size_t>(condition)];
}

}  // namespace rodeo::process
