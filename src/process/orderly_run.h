// Runs something from start to end as a process: signals, the control socket, and what is said meanwhile.
#pragma once

#include <functional>
#include <string>

#include "process/line_socket.h"
#include "process/live_view.h"

namespace rodeo::process {

/// What runs. All functions are called by the thread that called run_in_order().
struct OrderlyRun {
  std::function<void()> start;
  std::function<bool()> step;  ///< moves it on and shows it, some twenty times a second; false: it is over
  std::function<void()> stop;  ///< asks for its end
  std::function<std::string(const std::string&)> answer;  ///< to one line on the control socket
  std::string ending;                                     ///< what stop() does, for people: "the input stops, ..."
  std::string aborted = "what is not written yet is lost";
};

/// Runs until step() says that it is over. The first Ctrl-C (or SIGTERM) calls stop(), a second changes nothing; after the third the function
/// returns while threads still work, and the caller must leave by std::quick_exit or _exit. `control` may be nullptr.
void run_in_order(const OrderlyRun& run, LiveView& view, LineServer* control);

}  // namespace rodeo::process
