#include "farm/run/farm_process.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "process/control_request.h"
#include "process/orderly_run.h"
#include "process/standing_json.h"

namespace rodeo::farm {

using process::reply;
using process::text_of;

namespace {

/// A process, and what requests have changed.
struct Controlled {
  FarmProcess& farm;
  const process::ProcessIdentity& identity;
  bool held = false;  ///< It waits for its run.
  bool left = false;
  bool asked = false;  ///< Its end was asked for.
  std::optional<Error> failure = {};
  process::Watchdog watchdog{};

  void stop() {
    asked = true;
    if (held) left = true;
    farm.stop();
  }
};

const char* phase_of(const Controlled& controlled) {
  const Phase phase = controlled.farm.phase();
  return process::life_phase(controlled.held && phase == Phase::prepared ? Phase::ready : phase);
}

Result<void> start(Controlled& controlled, const Json& request) {
  constexpr double kLargestRun = 0x7fffffff;  // 31 bits, as in ROD headers.
  if (!controlled.held || controlled.left)
    return std::unexpected(Error{"process.not_ready", fmt::format("it is {}; it starts only once", phase_of(controlled)), "",
                                 "a process launched with --hold waits for its start"});
  const std::string wanted = text_of(request, "configuration_sha256");
  if (wanted != controlled.identity.configuration_sha256)
    return std::unexpected(Error{"process.other_configuration",
                                 wanted.empty() ? fmt::format("configuration_sha256 is missing: this process has {}",
                                                              controlled.identity.configuration_sha256)
                                                : fmt::format("the run has the configuration {}, this process has {}",
                                                              wanted, controlled.identity.configuration_sha256),
                                 "", "ask for its status, or end it and launch it with the run's configuration"});
  const Json* const run = request.find("run");
  const double number = run != nullptr && run->is_number() ? run->number() : 0;
  if (!(number >= 1 && number <= kLargestRun && number == static_cast<double>(static_cast<std::uint32_t>(number))))
    return std::unexpected(Error{"process.bad_run", "`run` is not a run number", "",
                                 fmt::format("a whole number from 1 to {:.0f}", kLargestRun)});
  controlled.held = false;
  try {
    controlled.farm.start(static_cast<std::uint32_t>(number));
    return {};
  } catch (const SetupError& error) {
    controlled.failure = error.error();
  } catch (const std::exception& error) {
    controlled.failure = Error{"process.failed", error.what()};
  }
  return std::unexpected(*controlled.failure);
}

std::string answer(Controlled& controlled, const std::string& line) {
  return process::answer_line(line, [&](const Json& request) {
    const std::string command = text_of(request, "command");
    if (command == "status") {
      Json status = controlled.farm.report();
      status["phase"] = phase_of(controlled);
      status["standing"] = process::standing_json(controlled.watchdog.standing());
      status["process"] = process::process_json(controlled.identity, phase_of(controlled));
      return reply(std::move(status));
    }
    if (command == "start") {
      if (const auto started = start(controlled, request); !started) return process::refusal(started.error());
      return reply(Json::object({{"run", *request.find("run")}, {"phase", phase_of(controlled)}}));
    }
    if (command == "stop") {
      controlled.stop();
      return reply(Json::object());
    }
    if (auto more = controlled.farm.command(command, request)) {
      if (!*more) return process::refusal(more->error());
      return reply(std::move(**more));
    }
    return process::refusal({"process.unknown_command",
                             fmt::format("a {} has no command `{}`", controlled.identity.kind, command), "",
                             "the commands are status, start and stop"});
  });
}

}  // namespace

FarmOutcome run_farm_process(FarmProcess& farm, const process::ProcessIdentity& identity, const FarmRun& run,
                             process::LineServer* control, const std::function<void()>& observe) {
  Controlled controlled{.farm = farm, .identity = identity, .held = run.hold};
  process::LiveView view;
  const std::uint64_t begin_ns = base::steady_now_ns();
  const auto step = [&] {
    if (controlled.failure) throw SetupError(*controlled.failure);
    if (controlled.left) return false;
    farm.step();
    const double seconds = static_cast<double>(base::steady_now_ns() - begin_ns) * 1e-9;
    if (run.seconds && !controlled.held && seconds >= *run.seconds) controlled.stop();
    for (const std::string& message : farm.take_messages()) view.say(message);
    controlled.watchdog.look(farm.watched(), base::steady_now_ns());
    for (const std::string& message : controlled.watchdog.take_messages()) view.say(message);
    if (!controlled.held)
      (void)view.show(
          seconds, [&](process::ViewStyle style) { return farm.view_lines(seconds, style); },
          [&] { return farm.view_line(seconds); });
    observe();
    return farm.phase() != Phase::stopped;
  };
  process::run_in_order({.start =
                             [&] {
                               if (!run.hold) return farm.start(run.run_number);
                               view.say(farm.name() + " is ready and waits for its run");
                             },
                         .step = step,
                         .stop = [&] { controlled.stop(); },
                         .answer = [&](const std::string& line) { return answer(controlled, line); },
                         .ending = run.ending,
                         .stop_limit = run.stop_limit,
                         .stopping = [&] { return controlled.left || controlled.asked; },
                         .last_resort = run.last_resort,
                         .give_up = [&] { farm.give_up(); }},
                        view, control);
  for (const std::string& message : farm.take_messages()) view.say(message);
  return {.left = controlled.left, .finished = controlled.left || farm.phase() == Phase::stopped};
}

std::string control_socket_name(const std::string& name) { return name + ".control"; }

}  // namespace rodeo::farm
