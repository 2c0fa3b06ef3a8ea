#include "readout/run/readout_run.h"

#include <fmt/format.h>

#include <string>

#include "process/orderly_run.h"
#include "readout/run/run_view.h"

namespace rodeo::readout {
namespace {

bool limit_reached(const RunLimits& limits, const ReadoutStatus& status) {
  if (limits.seconds && status.seconds >= *limits.seconds) return true;
  return limits.fragments && status.fragments >= *limits.fragments;
}

std::string not_ended(const Application& application) {
  std::string text = fmt::format("the run did not end within stop_limit = {:g} s",
                                 std::chrono::duration<double>(application.settings().stop_limit).count());
  for (const process::StandingPart& part : application.standing()) text += "; " + part.text();
  return text;
}

}  // namespace

RunReport run_readout(ControlledReadout& readout, RunLimits limits, process::LineServer* control,
                      const StatusObserver& observe, const StatusAmender& amend, process::LastResort* last_resort) {
  Application& application = readout.application;
  process::LiveView view;
  ReadoutStatus before;
  const auto step = [&] {
    if (readout.failure) throw SetupError(*readout.failure);
    if (readout.left) return false;
    application.step();
    ReadoutStatus status = application.status();
    if (amend) amend(status, false);
    // The application stops on its own failures; failures of other processes (`amend`) stop it here.
    if (limit_reached(limits, status) || !status.failure.empty()) application.stop();
    for (const std::string& message : application.take_messages()) view.say(message);
    if (view.show(
            status.seconds, [&](ViewStyle style) { return view_lines(application.settings(), before, status, style); },
            [&] { return view_line(before, status); }))
      before = status;
    if (observe) observe(status);
    return application.phase() != Phase::stopped;
  };
  const process::Ended ended =
      process::run_in_order({.start =
                                 [&] {
                                   if (!limits.hold) return application.start();
                                   application.hold();
                                   view.say(application.settings().name + " is ready, and waits for its run");
                                 },
                             .step = step,
                             .stop = [&] { readout.stop(); },
                             .answer = [&](const std::string& line) { return answer_request(readout, line); },
                             .ending = "the input stops, buffers drain, files close",
                             .stop_limit = application.settings().stop_limit,
                             .stopping = [&] { return application.stopping(); },
                             .last_resort = last_resort,
                             .give_up = [&] { application.give_up(); }},
                            view, control);
  if (ended == process::Ended::by_limit) application.fail(not_ended(application));
  ReadoutStatus last = application.status();
  if (amend) amend(last, true);
  return make_report(application.settings(), last, application.limited_by(), application.phase() != Phase::stopped);
}

}  // namespace rodeo::readout
