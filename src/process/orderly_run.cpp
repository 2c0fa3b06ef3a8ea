#include "process/orderly_run.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "base/clock.h"
#include "process/stop_signals.h"

namespace rodeo::process {
namespace {

// Period of the loop; a request on the control socket waits at most this long.
constexpr std::chrono::milliseconds kStep{50};

}  // namespace

Ended run_in_order(const OrderlyRun& run, LiveView& view, LineServer* control) {
  const StopSignals signals;
  run.start();
  bool told_to_stop = false;
  bool told_to_wait = false;
  bool gave_up = false;
  StopLimit limit(run.stop_limit);
  const double limit_s = std::chrono::duration<double>(run.stop_limit).count();
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
    const std::uint64_t now_ns = base::steady_now_ns();
    if (told_to_stop || (run.stopping && run.stopping())) {
      limit.begin(now_ns);
      if (run.last_resort != nullptr) run.last_resort->begin();
    }
    if (limit.gives_up(now_ns) && !gave_up) {
      gave_up = true;
      view.say(fmt::format("the run has not ended; its limit is {:g} s (stop_limit): what waits is given up and counted",
                           limit_s));
      if (run.give_up) run.give_up();
    }
    if (!run.step()) {
      view.finish();
      return Ended::in_order;
    }
    if (limit.over(now_ns)) {
      view.say(fmt::format("the run did not end within {:g} s (stop_limit): it is aborted, and {}", limit_s, run.aborted));
      view.finish();
      return Ended::by_limit;
    }
  } while (!signals.abort_requested());
  view.finish();
  return Ended::by_user;
}

}  // namespace rodeo::process
