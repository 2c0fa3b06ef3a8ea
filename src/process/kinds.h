// The kinds of process of this system.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace rodeo::process {

struct ProcessKind {
  std::string_view name;    ///< "node", as in the status of a process
  std::string_view verb;    ///< "farm filter": `rodeo farm filter CONFIG` starts one
  std::string_view table;   ///< "farm.node": its table of the configuration
  std::string_view socket;  ///< end of the file name of its control socket: ".control"
  bool one_run = false;     ///< the process lives for one run, and `start` gives a held one its run

  std::string socket_of(std::string_view process) const { return std::string(process) + std::string(socket); }
};

inline constexpr ProcessKind kEmulator{.name = "emulator", .verb = "emulate", .table = "emulator", .socket = ".emulator"};
inline constexpr ProcessKind kRouter{.name = "router", .verb = "route", .table = "router", .socket = ".router"};
inline constexpr ProcessKind kReadout{
    .name = "readout", .verb = "readout", .table = "readout", .socket = ".control", .one_run = true};
inline constexpr ProcessKind kSupervisor{
    .name = "supervisor", .verb = "farm supervise", .table = "farm.supervisor", .socket = ".control", .one_run = true};
inline constexpr ProcessKind kNode{
    .name = "node", .verb = "farm filter", .table = "farm.node", .socket = ".control", .one_run = true};
inline constexpr ProcessKind kRecorder{
    .name = "recorder", .verb = "farm record", .table = "farm.recorder", .socket = ".control", .one_run = true};

/// Servers before their clients; the supervisor last, because the trigger waits for it.
inline constexpr std::array kKinds{kEmulator, kRouter, kRecorder, kReadout, kNode, kSupervisor};

/// nullptr: there is no such kind.
inline const ProcessKind* find_kind(std::string_view name) {
  const auto found = std::ranges::find(kKinds, name, &ProcessKind::name);
  return found == kKinds.end() ? nullptr : &*found;
}

}  // namespace rodeo::process
