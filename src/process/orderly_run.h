// Runs something from start to end as a process: signals, the control socket, and what is said meanwhile.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "process/last_resort.h"
#include "process/line_socket.h"
#include "process/live_view.h"
#include "process/stop_limit.h"

namespace rodeo::process {

/// What runs. All functions are called by the thread that called run_in_order().
struct OrderlyRun {
  std::function<void()> start;
  std::function<bool()> step;  ///< moves it on and shows it, some twenty times a second; false: it is over
  std::function<void()> stop;  ///< asks for its end
  std::function<std::string(const std::string&)> answer;  ///< to one line on the control socket
  std::string ending;                                     ///< what stop() does, for people: "the input stops, ..."
  std::string aborted = "what is not written yet is lost";
  std::chrono::nanoseconds stop_limit = kStopLimit;  ///< from the first Ctrl-C, or from when stopping() is true
  std::function<bool()> stopping = {};  ///< the end was asked for by other means than a signal; empty: there are none
  LastResort* last_resort = nullptr;    ///< begins with the end, and lives as long as the process has something to do
  std::function<void()> give_up = {};   ///< ends what waits, counted, shortly before stop_limit is over; returns at once
};

enum class Ended : std::uint8_t {
  in_order,  ///< step() said that it is over
  by_user,   ///< by the third signal
  by_limit,  ///< stop_limit was over, and something had not even given up
};

/// Runs until step() says that it is over. The first Ctrl-C (or SIGTERM) calls stop(), a second changes nothing; after the third, or when stop_limit is
/// over, the function returns while threads still work, and the caller must leave by std::quick_exit or _exit. `control` may be nullptr.
Ended run_in_order(const OrderlyRun& run, LiveView& view, LineServer* control);

}  // namespace rodeo::process
