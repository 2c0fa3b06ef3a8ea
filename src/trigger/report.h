// What the trigger of a process has come to, for status and reports.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rodeo/input.h"
#include "trigger/range.h"

namespace rodeo::trigger {

/// A function of this process, or a process that follows this one.
struct TriggerFollowerReport {
  std::string name;
  std::string peer;  ///< where it is; empty: in this process
  bool connected = false;
  unsigned ready = 0;               ///< functions that take triggers now
  std::uint64_t triggers = 0;       ///< handed to it
  std::uint64_t missed = 0;         ///< accepted while it was ready, and not taken before it was no longer
  std::uint64_t held_up = 0;        ///< offered triggers that it had no room for
  std::uint64_t held_up_alone = 0;  ///< of these, that everybody else had room for
  double busy_seconds = 0;          ///< in which it had no room; where triggers are assigned, while they were offered
  double dead_time = 0;             ///< held_up / offered
};

/// The link of a process that follows an authority elsewhere.
struct TriggerLinkReport {
  std::string address;
  std::string authority;  ///< its name; empty: never seen
  bool connected = false;
  std::uint64_t connections = 0;
  std::uint64_t lost = 0;  ///< connections that ended
  std::string why;         ///< there is none now
};

struct TriggerReport {
  double seconds = 0;           ///< since the first trigger could have been
  double offering_seconds = 0;  ///< of these, in which triggers were offered; 0 in a process that follows
  std::uint64_t offered = 0;
  std::uint64_t accepted = 0;  ///< by the authority; of a process that follows one: received
  std::uint64_t vetoed_busy = 0;
  std::uint64_t vetoed_simple = 0;
  std::uint64_t vetoed_complex = 0;
  std::uint32_t ecrs = 0;
  std::uint16_t lumi_block = 0;
  std::uint16_t scan_step = 0;
  std::vector<TriggerMark> marks = {};  ///< the last changes of both, as far as they are known here
  bool held = false;                    ///< nothing is offered until somebody releases it; where triggers are assigned
  unsigned wait_for = 0;                ///< functions that must be ready for triggers; where they are assigned
  unsigned awaited = 0;                 ///< functions that must be ready besides those that are, before triggers are offered
  std::string busy_follower = {};       ///< who held triggers back most; empty: nobody
  std::vector<TriggerFollowerReport> followers = {};
  std::optional<TriggerLinkReport> link = {};  ///< of a process that follows
  std::vector<NamedCounter> counters = {};     ///< oddities, by name; only those that are not 0
  double dead_time_fraction() const {
    return offered == 0 ? 0 : static_cast<double>(offered - accepted) / static_cast<double>(offered);
  }
};

}  // namespace rodeo::trigger
