#include "control/readout_control.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <vector>

#include "base/runtime_dir.h"
#include "control/line_socket.h"
#include "control/run_report_output.h"
#include "formats/fid.h"

namespace rodeo::control {
namespace {

constexpr std::chrono::milliseconds kPatience{5000};

std::string refusal(const Error& error) {
  return Json::object({{"ok", false}, {"code", error.code}, {"what", error.what}, {"next", error.next}}).dump(0);
}

std::string reply(Json value) { return Json::object({{"ok", true}, {"reply", std::move(value)}}).dump(0); }

std::string text_of(const Json& request, std::string_view key) {
  const Json* value = request.find(key);
  return value == nullptr ? std::string{} : value->string();
}

Json status_of(readout::Application& application) {
  const readout::ReadoutStatus status = application.status();
  return status_json(readout::make_report(application.settings(), status, application.limited_by(), false), status);
}

std::string change_link(readout::Application& application, const Json& request, LinkState state) {
  const auto fid = formats::parse_fid(text_of(request, "fid"));
  if (!fid) return refusal(fid.error());
  if (const auto done = application.set_link(*fid, state); !done) return refusal(done.error());
  return reply(Json::object());
}

/// The names of the control sockets that there are; some may have nobody behind them.
std::vector<std::string> readout_names() {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(base::runtime_directory_name(), ignored)) {
    if (entry.path().extension() == ".control") names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

/// The only readout, if no name is given.
Result<std::string> one_name(const std::string& name) {
  if (!name.empty()) return name;
  const std::vector<std::string> names = readout_names();
  if (names.size() == 1) return names.front();
  if (names.empty())
    return std::unexpected(
        Error{"control.unreachable", "no readout runs", base::runtime_directory_name(), "start one: rodeo readout CONFIG"});
  std::string list;
  for (const std::string& one : names) list += (list.empty() ? "" : ", ") + one;
  return std::unexpected(
      Error{"control.which_readout", fmt::format("{} readouts may be meant: {}", names.size(), list), "", "--name NAME"});
}

}  // namespace

std::string answer_request(readout::Application& application, const std::string& line) {
  const Result<Json> request = Json::parse(line);
  if (!request) return refusal(request.error());
  const std::string command = text_of(*request, "command");
  if (command == "status") return reply(status_of(application));
  if (command == "stop") {
    application.stop();
    return reply(Json::object());
  }
  if (command == "link_remove") return change_link(application, *request, LinkState::removed);
  if (command == "link_restore") return change_link(application, *request, LinkState::active);
  return refusal({"control.unknown_command", fmt::format("`{}` is no command of a readout", command), "",
                  "the commands are status, stop, link_remove and link_restore"});
}

std::string control_socket_name(const std::string& readout_name) { return readout_name + ".control"; }

Result<Json> ask_readout(const std::string& name, const Json& request) {
  const Result<std::string> known = one_name(name);
  if (!known) return std::unexpected(known.error());
  const auto socket = base::runtime_socket(control_socket_name(*known));
  if (!socket) return std::unexpected(socket.error());
  const Result<std::string> line = ask(*socket, request.dump(0), kPatience);
  if (!line) return std::unexpected(line.error().within(fmt::format("readout `{}`", *known)));
  Result<Json> answer = Json::parse(*line);
  if (!answer) return answer;
  const Json* ok = answer->find("ok");
  if (ok != nullptr && ok->boolean()) {
    const Json* value = answer->find("reply");
    return value != nullptr ? *value : Json::object();
  }
  return std::unexpected(Error{text_of(*answer, "code"), text_of(*answer, "what"), fmt::format("readout `{}`", *known),
                               text_of(*answer, "next")});
}

}  // namespace rodeo::control
