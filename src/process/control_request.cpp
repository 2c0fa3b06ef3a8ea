#include "process/control_request.h"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/runtime_dir.h"
#include "process/line_socket.h"

namespace rodeo::process {
namespace {

constexpr std::chrono::milliseconds kReplyTime{5000};

struct ListeningProcesses {
  std::vector<std::string> names;
  std::optional<std::filesystem::path> forbidden;  ///< a path that this user may not read
};

/// The processes that listen. Removes the sockets of dead ones.
ListeningProcesses listening_processes(const ProcessKind& kind) {
  ListeningProcesses found;
  std::vector<std::filesystem::path> sockets;
  std::error_code failure;
  const std::filesystem::path directory = base::runtime_directory_name();
  for (std::filesystem::directory_iterator entry(directory, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    if (entry->path().extension() == kind.socket) sockets.push_back(entry->path());
  }
  if (failure == std::errc::permission_denied) found.forbidden = directory;
  for (const auto& socket : sockets) {
    if (::access(socket.c_str(), W_OK) != 0 && errno == EACCES) {
      found.forbidden = socket;
    } else if (is_listening(socket)) {
      found.names.push_back(socket.stem().string());
    }
  }
  std::ranges::sort(found.names);
  return found;
}

Result<std::string> resolve_name(const ProcessKind& kind, const std::string& name) {
  if (!name.empty()) return name;
  const auto [names, forbidden] = listening_processes(kind);
  if (names.size() == 1) return names.front();
  if (names.empty() && forbidden) {
    return std::unexpected(Error{
        "process.unreachable",
        fmt::format("permission denied: cannot see whether {} {} runs",
                    std::string_view("aeiou").find(kind.name.front()) == std::string_view::npos ? "a" : "an", kind.name),
        *forbidden, "ask as the user who started it, or set RODEO_RUNTIME_DIR to a directory of your own"});
  }
  if (names.empty()) {
    return std::unexpected(Error{"process.unreachable", fmt::format("no {} runs", kind.name), base::runtime_directory_name(),
                                 fmt::format("start one: rodeo {} CONFIG", kind.verb)});
  }
  std::string list;
  for (const std::string& one : names) list += (list.empty() ? "" : ", ") + one;
  return std::unexpected(Error{fmt::format("process.which_{}", kind.name),
                               fmt::format("{} {}s may be meant: {}", names.size(), kind.name, list), "", "--name NAME"});
}

}  // namespace

std::string refusal(const Error& error) {
  return Json::object({{"ok", false}, {"code", error.code}, {"what", error.what}, {"next", error.next}}).dump(0);
}

std::string reply(Json value) { return Json::object({{"ok", true}, {"reply", std::move(value)}}).dump(0); }

std::string answer_line(const std::string& line, const std::function<std::string(const Json& request)>& answer) {
  try {
    const Result<Json> request = Json::parse(line);
    return request ? answer(*request) : refusal(request.error());
  } catch (const SetupError& refused) {
    return refusal(refused.error());
  } catch (const std::exception& failure) {
    return refusal({"process.failed", fmt::format("the request failed: {}", failure.what()), "", "the process goes on"});
  }
}

std::string text_of(const Json& object, std::string_view key) {
  const Json* value = object.find(key);
  return value == nullptr ? std::string{} : value->string();
}

Result<Json> ask_process(const ProcessKind& kind, const std::string& name, const Json& request) {
  const std::string known = RODEO_TRY(resolve_name(kind, name));
  const std::string who = fmt::format("{} `{}`", kind.name, known);
  const auto socket = RODEO_TRY(base::runtime_socket(kind.socket_of(known)));
  const std::string line = RODEO_TRY_WITHIN(ask(socket, request.dump(0), kReplyTime), who);
  Result<Json> answer = Json::parse(line);
  if (!answer) return answer;
  const Json* ok = answer->find("ok");
  if (ok != nullptr && ok->boolean()) {
    const Json* value = answer->find("reply");
    return value != nullptr ? *value : Json::object();
  }
  return std::unexpected(Error{text_of(*answer, "code"), text_of(*answer, "what"), who, text_of(*answer, "next")});
}

}  // namespace rodeo::process
