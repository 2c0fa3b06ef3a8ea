// The running processes of this user on this host, found by their control sockets in the runtime directory.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "settings/json.h"

namespace rodeo::process {

using settings::Json;

struct ListedProcess {
  std::string name;
  std::string kind;
  std::optional<pid_t> pid;
  Json status;         ///< null if the process has not answered
  std::string silent;  ///< why the process has not answered; empty if it has
  double cpu_seconds = 0;
  std::uint64_t rss_bytes = 0;
  std::chrono::steady_clock::time_point seen;
};

/// All running processes, sorted by kind and name. Asks all at the same time, each for at most `patience`. A process that
/// does not answer is listed, too; sockets of dead processes are skipped.
std::vector<ListedProcess> list_processes(std::chrono::milliseconds patience);

/// Names of the running control rooms of this user, sorted.
std::vector<std::string> list_control_rooms();

/// Sets CPU time and memory from /proc/PID/stat and statm; 0 for a process that has ended.
void read_usage(ListedProcess& process);

}  // namespace rodeo::process
