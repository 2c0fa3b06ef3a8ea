#include "readout/run/readout_run.h"

#include <string>

#include "process/orderly_run.h"
#include "readout/run/readout_control.h"
#include "readout/run/run_view.h"

namespace rodeo::readout {
namespace {

bool limit_reached(const RunLimits& limits, const ReadoutStatus& status) {
  if (limits.seconds && status.seconds >= *limits.seconds) return true;
  return limits.fragments && status.fragments >= *limits.fragments;
}

}  // namespace

RunReport run_readout(Application& application, RunLimits limits, process::LineServer* control,
                      const StatusObserver& observe, const StatusAmender& amend) {
  process::LiveView view;
  ReadoutStatus before;
  const auto step = [&] {
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
  process::run_in_order({.start = [&] { application.start(); },
                         .step = step,
                         .stop = [&] { application.stop(); },
                         .answer = [&](const std::string& line) { return answer_request(application, line); },
                         .ending = "the input stops, buffers drain, files close"},
                        view, control);
  ReadoutStatus last = application.status();
  if (amend) amend(last, true);
  return make_report(application.settings(), last, application.limited_by(), application.phase() != Phase::stopped);
}

}  // namespace rodeo::readout
