#include "cli/watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "cli/command.h"
#include "process/stop_signals.h"

namespace rodeo::cli {

Result<void> check_interval(std::chrono::nanoseconds interval, std::string_view option) {
  if (interval >= std::chrono::milliseconds{1}) return {};
  return value_error(fmt::format("{} takes a millisecond or more", option), "1s shows a change as it comes");
}

Result<ExitCode> watch(const std::optional<std::chrono::nanoseconds>& interval, OutputFormat format,
                       const std::function<Result<ExitCode>(bool first)>& show) {
  if (!interval) return show(true);
  RODEO_TRY(check_interval(*interval));
  const process::StopSignals signals;
  const bool redraw = format == OutputFormat::table && ::isatty(STDOUT_FILENO) != 0;
  ExitCode worst = ExitCode::done;
  for (bool first = true; !signals.stop_requested(); first = false) {
    const auto next = std::chrono::steady_clock::now() + *interval;
    if (redraw) print("\033[H\033[2J");
    worst = std::max(worst, RODEO_TRY(show(first || redraw)));
    if (std::fflush(stdout) != 0) break;
    while (!signals.stop_requested() && std::chrono::steady_clock::now() < next)
      std::this_thread::sleep_for(
          std::min<std::chrono::nanoseconds>(next - std::chrono::steady_clock::now(), std::chrono::milliseconds{20}));
  }
  return worst;
}

}  // namespace rodeo::cli
