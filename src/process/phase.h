// Where the run of a process stands, and what it came to.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rodeo::process {

/// Where a run stands. It moves forward only, but for a start that failed: that leaves it prepared, to be ended.
enum class Phase : std::uint8_t {
  prepared,  ///< components made and linked
  ready,     ///< held: it runs when it is told its run
  running,
  draining,  ///< the input has been told to stop, or has ended; what is under way is worked off
  stopped,   ///< all is worked off
};

inline const char* phase_name(Phase phase) {
  constexpr const char* kNames[] = {"prepared", "ready", "running", "draining", "stopped"};
  return kNames[static_cast<std::size_t>(phase)];
}

enum class Condition : std::uint8_t {
  good,        ///< nothing is lost
  incomplete,  ///< something is; each loss is counted by its reason
  wrong,       ///< bytes are not what was sent, or chunks are in no counter
  aborted,     ///< a failure or the user ended the run before its data were safe
};

inline const char* name_of(Condition condition) {
  constexpr const char* kNames[] = {"GOOD", "INCOMPLETE", "WRONG", "ABORTED"};
  return kNames[static_cast<std::size_t>(condition)];
}

}  // namespace rodeo::process
