#include "readout/run/readout_run.h"

#include <string>

#include "process/orderly_run.h"
#include "readout/run/run_view.h"

namespace rodeo::readout {
namespace {

bool limit_reached(const RunLimits& limits, const ReadoutStatus& status) {
  if (limits.seconds && status.seconds >= *limits.seconds) return true;
  return limits.fragments && status.fragments >= *limits.fragments;
}

}  // namespace

RunReport run_readout(ControlledReadout& readout, RunLimits limits, process::LineServer* control,
                      const StatusObserver& observe, const StatusAmender& amend) {
  Application& application = readout.application;
  process::LiveView view;
  ReadoutStatus before;
  const auto step = [&] {
    if (readout.failure) throw SetupError(*readout.failure);
    if (readout.left) return false;
    application.step();
    ReadoutStatus status = application.status();
    if (amend) amend(status, false);
    // Of a failure of its own the application knows; of others' it is told here.
    if (limit_reached(limits, status) || !status.failure.empty()) application.stop();
    for (const std::string& message : application.take_messages()) view.say(message);
    if (view.show(
            status.seconds, [&](ViewStyle style) { return view_lines(application.settings(), before, status, style); },
            [&] { return view_line(before, status); }))
      before = status;
    if (observe) observe(status);
    return application.phase() != Phase::stopped;
  };
  process::run_in_order({.start =
                             [&] {
                               if (!limits.hold) return application.start();
                               application.hold();
                               view.say(application.settings().name + " is ready, and waits for its run");
                             },
                         .step = step,
                         .stop = [&] { readout.stop(); },
                         .answer = [&](const std::string& line) { return answer_request(readout, line); },
                         .ending = "the input stops, buffers drain, files close"},
                        view, control);
  ReadoutStatus last = application.status();
  if (amend) amend(last, true);
  return make_report(application.settings(), last, application.limited_by(), application.phase() != Phase::stopped);
}

}  // namespace rodeo::readout
