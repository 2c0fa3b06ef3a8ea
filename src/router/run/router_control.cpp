#include "router/run/router_control.h"

#include <fmt/format.h>

#include "process/control_request.h"
#include "process/standing_json.h"
#include "router/run/router_report_output.h"

namespace rodeo::router {
namespace {

constexpr process::ControlledProcess kRouter{
    .noun = "router", .extension = ".router", .which_code = "process.which_router", .start = "rodeo route CONFIG"};

}  // namespace

std::string answer_request(Router& router, const process::ProcessIdentity& identity,
                           std::span<const process::StandingPart> standing, const std::string& line) {
  return process::answer_line(line, [&](const Json& request) {
    const std::string command = process::text_of(request, "command");
    if (command == "status") {
      const RouterStatus status = router.status();
      Json reply = status_json(make_report(router.settings(), status, false), status);
      if (const Json* links = request.find("links"); links != nullptr && links->boolean())
        reply["by_link"] = links_json(status);
      reply["standing"] = process::standing_json(standing);
      reply["process"] = process::process_json(identity, process::life_phase(status.phase));
      return process::reply(std::move(reply));
    }
    if (command == "stop") {
      router.stop();
      return process::reply(Json::object());
    }
    return process::refusal({"process.unknown_command", fmt::format("`{}` is not a command of a router", command), "",
                             "the commands are status and stop"});
  });
}

std::string control_socket_name(const std::string& router_name) { return router_name + std::string(kRouter.extension); }

Result<Json> ask_router(const std::string& name, const Json& request) {
  return process::ask_process(kRouter, name, request);
}

}  // namespace rodeo::router
