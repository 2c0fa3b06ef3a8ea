// Who of Rodeo runs here: every process of this user on this host, found by its control socket in the runtime directory.
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

/// A kind of process by the file name of its control socket: NAME.control is a readout, or what else its status says that it is.
struct SocketKind {
  std::string_view extension;
  std::string_view kind;
};

/// All kinds that answer `status` on a control socket (docs/protocols/control.md). A new kind is a line here.
const std::vector<SocketKind>& socket_kinds();

struct ListedProcess {
  std::string name;
  std::string kind;
  std::optional<pid_t> pid;
  Json status;         ///< null if it has not answered
  std::string silent;  ///< why it has not; empty if it has
  double cpu_seconds = 0;
  std::uint64_t rss_bytes = 0;
  std::chrono::steady_clock::time_point seen;
};

/// All of them, by kind and name. They are asked at the same time, and none for longer than `patience`; one that does not answer is in the list. What dead
/// processes left is not.
std::vector<ListedProcess> list_processes(std::chrono::milliseconds patience);

/// Names of the control rooms of this user that live, sorted.
std::vector<std::string> list_control_rooms();

/// CPU time and memory that /proc/PID/stat and statm tell; 0 of a process that is gone.
void look_at_use(ListedProcess& process);

}  // namespace rodeo::process
