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
  std::optional<double> seconds = {};  ///< of the input
  std::optional<std::uint64_t> fragments =
      {};             ///< the input is stopped once this many are built; some more are under way then
  bool hold = false;  ///< the run begins when `control` is told which it is
};

/// Told of every status that the run takes, some twenty times a second, on the thread that runs.
using StatusObserver = std::function<void(const ReadoutStatus&)>;

/// Adds what another process knows of the run (the emulator of its cards) to a status. `last`: the run has ended.
using StatusAmender = std::function<void(ReadoutStatus&, bool last)>;

/// Runs until a limit, the end of the input, a failure, a signal, or a request on `control` (may be nullptr). One that is held waits for a request
/// to start; it may be told to end before, and the application's phase is still `ready` then. The first Ctrl-C (or
/// SIGTERM) ends the run in order; a second changes nothing; after the third, or when stop_limit is over, the function returns a report of condition ABORTED while threads still
/// work, and the caller must leave by std::quick_exit or _exit.
RunReport run_readout(ControlledReadout& readout, RunLimits limits, process::LineServer* control,
                      const StatusObserver& observe = {}, const StatusAmender& amend = {},
                      process::LastResort* last_resort = nullptr);

}  // namespace rodeo::readout
