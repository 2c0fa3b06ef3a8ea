// Runs a readout from start to report: signals, limits, the control socket and the view around one Application.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "process/last_resort.h"
#include "process/line_socket.h"
#include "readout/application.h"
#include "readout/run/readout_control.h"
#include "readout/run_report.h"

namespace rodeo::readout {

struct RunLimits {
  std::optional<double> seconds = {};  ///< limit of the input's running time
  std::optional<std::uint64_t> fragments =
      {};             ///< number of fragments after which the input stops; some more are then in progress
  bool hold = false;  ///< true: waits until `control` gives the run
};

/// Receives every status of the run, about twenty times a second, on the thread that runs.
using StatusObserver = std::function<void(const ReadoutStatus&)>;

/// Adds to a status what another process (the emulator of its cards) knows of the run. `last`: the run has ended.
using StatusAmender = std::function<void(ReadoutStatus&, bool last)>;

/// Runs until a limit, the end of the input, a failure, a signal, or a request on `control` (may be nullptr). A held run
/// waits for a request to start; if a request to end comes first, the application's phase stays `ready`. The first Ctrl-C
/// (or SIGTERM) ends the run in order; a second changes nothing. After the third, or when stop_limit is over, the function
/// returns a report of condition ABORTED while threads still work. The caller must then leave by std::quick_exit or _exit.
RunReport run_readout(ControlledReadout& readout, RunLimits limits, process::LineServer* control,
                      const StatusObserver& observe = {}, const StatusAmender& amend = {},
                      process::LastResort* last_resort = nullptr);

}  // namespace rodeo::readout
