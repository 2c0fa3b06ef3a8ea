// Runs a process from start to end: handles signals, answers the control socket, prints progress.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "process/last_resort.h"
#include "process/line_socket.h"
#include "process/live_view.h"
#include "process/stop_limit.h"

namespace rodeo::process {

/// A run as callbacks. The thread that called run_in_order() calls all of them.
struct OrderlyRun {
  std::function<void()> start;
  std::function<bool()> step;  ///< advances and shows the run, some twenty times a second; false: the run is over
  std::function<void()> stop;  ///< asks the run to end
  std::function<std::string(const std::string&)> answer;  ///< answers one line of the control socket
  std::string ending;                                     ///< describes stop() for the user: "the input stops, ..."
  std::string aborted = "what is not written yet is lost";
  std::chrono::nanoseconds stop_limit = kStopLimit;  ///< from the first Ctrl-C, or from when stopping() is true
  std::function<bool()> stopping = {};               ///< true after a request to end that was not a signal; may be empty
  LastResort* last_resort = nullptr;                 ///< started when the end begins; outlives all work of the process
  std::function<void()> give_up = {};  ///< gives up all that waits, counted, shortly before stop_limit; returns at once
};

enum class Ended : std::uint8_t {
  in_order,  ///< step() returned false
  by_user,   ///< by the third signal
  by_limit,  ///< stop_limit was over, and a part had not even given up
};

/// Runs until step() returns false. The first Ctrl-C (or SIGTERM) calls stop(), a second changes nothing. After the third,
/// or after stop_limit, the function returns while threads still work; the caller must then leave by std::quick_exit or
/// _exit. `control` may be nullptr.
Ended run_in_order(const OrderlyRun& run, LiveView& view, LineServer* control);

}  // namespace rodeo::process
