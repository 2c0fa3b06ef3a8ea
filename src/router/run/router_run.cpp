#include "router/run/router_run.h"

#include "base/clock.h"
#include "process/orderly_run.h"
#include "process/watchdog.h"
#include "router/run/router_control.h"
#include "router/run/router_view.h"
#include "router/watched_parts.h"

namespace rodeo::router {

RouterReport run_router(Router& router, const process::ProcessIdentity& identity, std::optional<double> seconds,
                        process::LineServer* control, const std::function<void(const RouterStatus&)>& observe,
                        process::LastResort* last_resort) {
  process::LiveView view;
  RouterStatus before;
  process::Watchdog watchdog;
  const std::uint64_t begin_ns = base::steady_now_ns();
  const auto step = [&] {
    router.step();
    RouterStatus status = router.status();
    if (seconds && status.seconds >= *seconds) router.stop();
    for (const std::string& message : router.take_messages()) view.say(message);
    watchdog.look(watched_parts(status), base::steady_now_ns());
    for (const std::string& message : watchdog.take_messages()) view.say(message);
    if (observe) observe(status);
    // Not the time of the input, which may not have started.
    const double shown_s = static_cast<double>(base::steady_now_ns() - begin_ns) * 1e-9;
    if (view.show(
            shown_s, [&](process::ViewStyle style) { return view_lines(router.settings(), before, status, style); },
            [&] { return view_line(before, status); }))
      before = std::move(status);
    return router.phase() != Phase::stopped;
  };
  process::run_in_order(
      {.start = [&] { router.start(); },
       .step = step,
       .stop = [&] { router.stop(); },
       .answer = [&](const std::string& line) { return answer_request(router, identity, watchdog.standing(), line); },
       .ending = "the input stops, and the subscribers get the rest",
       .aborted = "data under way are lost",
       .stop_limit = router.settings().stop_limit,
       .stopping = [&] { return router.stopping(); },
       .last_resort = last_resort,
       .give_up = [&] { router.give_up(); }},
      view, control);
  return make_report(router.settings(), router.status(), router.phase() != Phase::stopped);
}

}  // namespace rodeo::router
