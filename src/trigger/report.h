// The totals of a process's trigger, for status and reports.
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
  std::string peer;  ///< address of the process; empty: this process
  bool connected = false;
  unsigned ready = 0;               ///< functions that take triggers now
  std::uint64_t triggers = 0;       ///< triggers that the follower took
  std::uint64_t missed = 0;         ///< triggers accepted while it was ready that it did not take in this time
  std::uint64_t held_up = 0;        ///< offered triggers for which it had no room
  std::uint64_t held_up_alone = 0;  ///< part of held_up: triggers for which all others had room
  double busy_seconds = 0;          ///< time without room; at the authority, only while triggers were offered
  double dead_time = 0;             ///< held_up / offered
};

/// The link of a process that follows an authority elsewhere.
struct TriggerLinkReport {
  std::string address;
  std::string authority;  ///< name of the authority; empty: never connected
  bool connected = false;
  std::uint64_t connections = 0;
  std::uint64_t lost = 0;  ///< number of connections that ended
  std::string why;         ///< the reason why there is no connection now
};

struct TriggerReport {
  double seconds = 0;           ///< time since the start of triggers
  double offering_seconds = 0;  ///< part of `seconds` in which triggers were offered; 0 in a follower
  std::uint64_t offered = 0;
  std::uint64_t accepted = 0;  ///< triggers that the authority accepted or, in a follower, that arrived
  std::uint64_t vetoed_busy = 0;
  std::uint64_t vetoed_simple = 0;
  std::uint64_t vetoed_complex = 0;
  std::uint32_t ecrs = 0;
  std::uint16_t lumi_block = 0;
  std::uint16_t scan_step = 0;
  std::vector<TriggerMark> marks = {};  ///< latest changes of block and step that this process knows
  bool held = false;                    ///< at the authority: no triggers are offered until release()
  unsigned wait_for = 0;                ///< at the authority: functions that must be ready before triggers are offered
  unsigned awaited = 0;                 ///< further functions that must become ready before triggers are offered
  std::string busy_follower = {};       ///< follower that held triggers back most; empty: none
  std::vector<TriggerFollowerReport> followers = {};
  std::optional<TriggerLinkReport> link = {};  ///< only in a follower
  std::vector<NamedCounter> counters = {};     ///< faults by name; only those that are not 0
  double dead_time_fraction() const {
    return offered == 0 ? 0 : static_cast<double>(offered - accepted) / static_cast<double>(offered);
  }
};

}  // namespace rodeo::trigger
