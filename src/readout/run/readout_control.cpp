#include "readout/run/readout_control.h"

#include <fmt/format.h>

#include "base/log_file.h"
#include "process/control_request.h"
#include "readout/run/run_report_output.h"
#include "readout/setting_tables.h"
#include "settings/fid_text.h"

namespace rodeo::readout {

using process::answer_line;
using process::ask_process;
using process::ControlledProcess;
using process::refusal;
using process::reply;
using process::text_of;
namespace {

constexpr ControlledProcess kReadout{
    .noun = "readout", .extension = ".control", .which_code = "process.which_readout", .start = "rodeo readout CONFIG"};

Json status_of(const ReadoutSettings& settings, const process::ProcessIdentity& identity, const ReadoutStatus& status,
               const std::string& limited_by) {
  Json json = status_json(make_report(settings, status, limited_by, false), status);
  // A readout that has not reached its publishers is not running yet: data sent now would be lost.
  const Phase phase = status.phase == Phase::running && !status.input_ready ? Phase::ready : status.phase;
  json["process"] = process::process_json(identity, process::life_phase(phase));
  return json;
}

/// The run type of the request; empty if the run type of the configuration stays.
Result<std::optional<std::uint32_t>> run_type_of(const Json& request) {
  const Json* const name = request.find("run_type");
  if (name == nullptr || name->is_null()) return std::nullopt;
  for (const auto& [known, type] : run_types()) {
    if (name->string() == known) return type;
  }
  std::string names;
  for (const auto& one : run_types()) names += (names.empty() ? "" : ", ") + one.first;
  return std::unexpected(
      Error{"process.bad_run", fmt::format("`{}` is not a type of run", name->string()), "", "there are: " + names});
}

/// Takes the run and starts. A refused run leaves the readout ready; after a failed start the readout must end.
Result<void> start(ControlledReadout& readout, const Json& request) {
  constexpr double kLargestRun = 0x7fffffff;  // 31 bits, as ROD headers have it
  Application& application = readout.application;
  if (application.phase() != Phase::ready || readout.left) {
    return std::unexpected(Error{"process.not_ready",
                                 fmt::format("it is {}, and can start once", process::life_phase(application.phase())), "",
                                 "`rodeo readout CONFIG --hold` waits for its start"});
  }
  const std::string wanted = text_of(request, "configuration_sha256");
  if (wanted != readout.identity.configuration_sha256) {
    return std::unexpected(Error{"process.other_configuration",
                                 wanted.empty() ? fmt::format("configuration_sha256 is missing: this readout has {}",
                                                              readout.identity.configuration_sha256)
                                                : fmt::format("the run needs configuration {}, but this readout has {}",
                                                              wanted, readout.identity.configuration_sha256),
                                 "", "check its status, or end it and launch it with the other one"});
  }
  const Json* const run = request.find("run");
  const double number = run != nullptr && run->is_number() ? run->number() : 0;
  if (!(number >= 1 && number <= kLargestRun && number == static_cast<double>(static_cast<std::uint32_t>(number))))
    return std::unexpected(Error{"process.bad_run", "`run` is not a run number", "",
                                 fmt::format("a whole number from 1 to {:.0f}", kLargestRun)});
  const auto type = RODEO_TRY(run_type_of(request));
  application.take_run(static_cast<std::uint32_t>(number), type.value_or(application.settings().run.run_type));
  try {
    application.start();
    base::log_to_file({.audience = base::Audience::shift, .message = fmt::format("run {:.0f} begins", number)});
  } catch (const SetupError& error) {
    readout.failure = error.error();
    return std::unexpected(error.error());
  }
  return {};
}

std::string change_link(Application& application, const Json& request, LinkState state) {
  const auto fid = settings::parse_fid(text_of(request, "fid"));
  if (!fid) return refusal(fid.error());
  if (const auto done = application.set_link(*fid, state); !done) return refusal(done.error());
  return reply(Json::object());
}

}  // namespace

void ControlledReadout::stop() {
  if (application.phase() == Phase::ready) left = true;
  application.stop();
}

std::string answer_request(ControlledReadout& readout, const std::string& line) {
  Application& application = readout.application;
  return answer_line(line, [&](const Json& request) {
    const std::string command = text_of(request, "command");
    if (command == "status")
      return reply(status_of(application.settings(), readout.identity, application.status(), application.limited_by()));
    if (command == "start") {
      if (const auto started = start(readout, request); !started) return refusal(started.error());
      return reply(Json::object(
          {{"run", application.settings().run.run_number}, {"phase", process::phase_name(application.phase())}}));
    }
    if (command == "stop") {
      readout.stop();
      return reply(Json::object());
    }
    if (command == "link_remove") return change_link(application, request, LinkState::removed);
    if (command == "link_restore") return change_link(application, request, LinkState::active);
    return refusal({"process.unknown_command", fmt::format("`{}` is not a command of a readout", command), "",
                    "the commands are status, start, stop, link_remove and link_restore"});
  });
}

std::string answer_while_launching(const ReadoutSettings& settings, const process::ProcessIdentity& identity,
                                   const std::string& line, std::atomic<bool>& stop) {
  return answer_line(line, [&](const Json& request) {
    const std::string command = text_of(request, "command");
    if (command == "status") return reply(status_of(settings, identity, {}, ""));
    if (command == "stop") {
      stop = true;
      return reply(Json::object());
    }
    return refusal({"process.not_ready", "it is being launched", "", "ask its status until it is ready"});
  });
}

std::string control_socket_name(const std::string& readout_name) { return readout_name + std::string(kReadout.extension); }

Result<Json> ask_readout(const std::string& name, const Json& request) { return ask_process(kReadout, name, request); }

}  // namespace rodeo::readout
