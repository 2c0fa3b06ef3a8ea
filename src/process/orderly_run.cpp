#include "process/orderly_run.h"

#include <chrono>
#include <thread>

#include "process/stop_signals.h"

namespace rodeo::process {
namespace {

// How often a run is looked after; also how long a request on the control socket may wait.
constexpr std::chrono::milliseconds kStep{50};

}  // namespace

void run_in_order(const OrderlyRun& run, LiveView& view, LineServer* control) {
  const StopSignals signals;
  run.start();
  bool told_to_stop = false;
  bool told_to_wait = false;
  do {
    if (control != nullptr) {
      control->serve(kStep, run.answer);
    } else {
      std::this_thread::sleep_for(kStep);
    }
    if (signals.stop_requested() && !told_to_stop) {
      told_to_stop = true;
      view.say("ending the run in order: " + run.ending);
      run.stop();
    } else if (signals.asked_again() && !told_to_wait) {
      told_to_wait = true;
      view.say("still ending the run in order; a third Ctrl-C aborts it, and " + run.aborted);
    }
  } while (run.step() && !signals.abort_requested());
  view.finish();
}

}  // namespace rodeo::process
