#include "process/process_list.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "base/fd_socket.h"
#include "base/runtime_dir.h"
#include "process/control_request.h"
#include "process/kinds.h"
#include "process/line_socket.h"

namespace rodeo::process {
namespace {

namespace fs = std::filesystem;

/// The process id of the listener, from the kernel: a stopped process does not answer.
std::optional<pid_t> listener_of(const fs::path& socket, std::chrono::milliseconds patience) {
  const auto connected = base::connect_unix(socket, patience);
  if (!connected) return std::nullopt;
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(connected->get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid <= 0) return std::nullopt;
  return peer.pid;
}

void ask_status(const fs::path& socket, ListedProcess& process, std::chrono::milliseconds patience) {
  process.pid = listener_of(socket, patience);
  const auto line = ask(socket, R"({"command":"status"})", patience);
  process.seen = std::chrono::steady_clock::now();
  if (!line) {
    process.silent = line.error().what;
  } else if (const auto answer = Json::parse(*line); !answer) {
    process.silent = "its answer is not JSON";
  } else if (const Json* reply = answer->find("reply"); reply != nullptr && reply->is_object()) {
    process.status = *reply;
    // Processes of the farm have the same kind of socket as a readout. Their status names their kind.
    if (const Json* self = reply->find("process"); self != nullptr && self->is_object()) {
      if (const std::string kind = text_of(*self, "kind"); !kind.empty()) process.kind = kind;
    }
  } else {
    process.silent = text_of(*answer, "what");
    if (process.silent.empty()) process.silent = "its answer has no status";
  }
  read_usage(process);
}

std::vector<fs::path> sockets_in_runtime_directory() {
  std::vector<fs::path> sockets;
  std::error_code failure;
  for (fs::directory_iterator entry(base::runtime_directory_name(), failure), end; !failure && entry != end;
       entry.increment(failure))
    sockets.push_back(entry->path());
  std::ranges::sort(sockets);
  return sockets;
}

}  // namespace

std::vector<ListedProcess> list_processes(std::chrono::milliseconds patience) {
  const std::vector<fs::path> files = sockets_in_runtime_directory();
  std::vector<fs::path> sockets;
  std::vector<ListedProcess> processes;
  // A process with the socket of a readout is one, unless its status names another kind.
  for (const ProcessKind& kind : {kEmulator, kRouter, kReadout}) {
    for (const fs::path& file : files) {
      if (file.extension() != kind.socket || !is_listening(file)) continue;
      sockets.push_back(file);
      processes.emplace_back().name = file.stem().string();
      processes.back().kind = kind.name;
    }
  }
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < sockets.size(); ++i)
      threads.emplace_back([&, i] { ask_status(sockets[i], processes[i], patience); });
  }
  return processes;
}

std::vector<std::string> list_control_rooms() {
  std::vector<std::string> rooms;
  for (const fs::path& file : sockets_in_runtime_directory()) {
    if (file.extension() == ".room" && is_listening(file)) rooms.push_back(file.stem().string());
  }
  return rooms;
}

void read_usage(ListedProcess& process) {
  if (!process.pid) return;
  const fs::path directory = fs::path("/proc") / std::to_string(*process.pid);
  std::ifstream stat_file(directory / "stat");
  const std::string text(std::istreambuf_iterator<char>(stat_file), {});
  // The name of a process is in parentheses and may contain any character. Numbers follow it (proc(5)).
  if (const std::size_t end = text.rfind(')'); end != std::string::npos) {
    std::istringstream rest(text.substr(end + 1));
    std::string word;
    constexpr int kUserTime = 12;  // counted from the state, the field after the name
    double user = 0;
    double system = 0;
    for (int i = 0; i < kUserTime - 1; ++i) rest >> word;
    if (rest >> user >> system)
      process.cpu_seconds = (user + system) / static_cast<double>(std::max(1L, ::sysconf(_SC_CLK_TCK)));
  }
  std::ifstream memory(directory / "statm");
  std::uint64_t size = 0;
  std::uint64_t resident = 0;
  if (memory >> size >> resident)
    process.rss_bytes = resident * static_cast<std::uint64_t>(std::max(1L, ::sysconf(_SC_PAGESIZE)));
}

}  // namespace rodeo::process
