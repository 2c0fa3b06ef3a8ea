#include "readout/run/readout_control.h"

#include <fmt/format.h>

#include "process/control_request.h"
#include "readout/run/run_report_output.h"
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

Json status_of(Application& application) {
  const ReadoutStatus status = application.status();
  return status_json(make_report(application.settings(), status, application.limited_by(), false), status);
}

std::string change_link(Application& application, const Json& request, LinkState state) {
  const auto fid = settings::parse_fid(text_of(request, "fid"));
  if (!fid) return refusal(fid.error());
  if (const auto done = application.set_link(*fid, state); !done) return refusal(done.error());
  return reply(Json::object());
}

}  // namespace

std::string answer_request(Application& application, const std::string& line) {
  return answer_line(line, [&](const Json& request) {
    const std::string command = text_of(request, "command");
    if (command == "status") return reply(status_of(application));
    if (command == "stop") {
      application.stop();
      return reply(Json::object());
    }
    if (command == "link_remove") return change_link(application, request, LinkState::removed);
    if (command == "link_restore") return change_link(application, request, LinkState::active);
    return refusal({"process.unknown_command", fmt::format("`{}` is no command of a readout", command), "",
                    "the commands are status, stop, link_remove and link_restore"});
  });
}

std::string control_socket_name(const std::string& readout_name) { return readout_name + std::string(kReadout.extension); }

Result<Json> ask_readout(const std::string& name, const Json& request) { return ask_process(kReadout, name, request); }

}  // namespace rodeo::readout
