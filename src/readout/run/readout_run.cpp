#include "readout/run/readout_run.h"

#include <string>

#include "process/stop_signals.h"
#include "readout/run/readout_control.h"
#include "readout/run/run_view.h"

namespace rodeo::readout {
namespace {

// How often a run is looked after; also how long a request on the control socket may wait.
constexpr std::chrono::milliseconds kStep{50};

bool limit_reached(const RunLimits& limits, const ReadoutStatus& status) {
  if (limits.seconds && status.seconds >= *limits.seconds) return true;
  return limits.fragments && status.fragments >= *limits.fragments;
}

}  // namespace

RunReport run_readout(Application& application, RunLimits limits, process::LineServer* control,
                      const StatusObserver& observe, const StatusAmender& amend) {
  const process::StopSignals signals;
  RunView view(application.settings());
  application.start();
  bool told_to_stop = false;
  bool told_to_wait = false;
  while (application.phase() != Phase::stopped && !signals.abort_requested()) {
    if (control != nullptr) {
      control->serve(kStep, [&](const std::string& request) { return answer_request(application, request); });
    } else {
      std::this_thread::sleep_for(kStep);
    }
    application.step();
    ReadoutStatus status = application.status();
    if (amend) amend(status, false);
    if (signals.stop_requested() && !told_to_stop) {
      told_to_stop = true;
      view.say("ending the run in order: the input stops, buffers drain, files close");
      application.stop();
    } else if (signals.asked_again() && !told_to_wait) {
      told_to_wait = true;
      view.say("still ending the run in order; a third Ctrl-C aborts it, and what is not written yet is lost");
    }
    if (limit_reached(limits, status)) application.stop();
    for (const std::string& message : application.take_messages()) view.say(message);
    view.show(status);
    if (observe) observe(status);
  }
  ReadoutStatus last = application.status();
  if (amend) amend(last, true);
  view.finish();
  return make_report(application.settings(), last, application.limited_by(), application.phase() != Phase::stopped);
}

}  // namespace rodeo::readout
