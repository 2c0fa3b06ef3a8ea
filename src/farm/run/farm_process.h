// The life of a farm's process, from launch to report: held until it gets its run or started at once; signals, socket, view.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "process/last_resort.h"
#include "process/line_socket.h"
#include "process/live_view.h"
#include "process/phase.h"
#include "process/process_identity.h"
#include "process/stop_limit.h"
#include "process/watchdog.h"
#include "settings/json.h"

namespace rodeo::farm {

using process::Phase;
using settings::Json;

/// The process with its own threads. The thread that called run_farm_process() calls all functions.
class FarmProcess {
 public:
  virtual ~FarmProcess() = default;

  virtual std::string name() const = 0;
  /// Begins the run; 0: the process learns its run from others. Throws SetupError: the process must end.
  virtual void start(std::uint32_t run_number) = 0;
  /// Asks for the end in order. A repeated call is harmless.
  virtual void stop() = 0;
  /// Shortly before the stop limit: gives up what still waits, and counts it. Does not block.
  virtual void give_up() {}
  /// Called about twenty times a second.
  virtual void step() {}
  virtual Phase phase() const = 0;
  /// The report so far (docs/reference/run-report.md); after the end, the final report.
  virtual Json report() const = 0;
  virtual std::vector<std::string> take_messages() = 0;
  /// For the watchdog: the parts that have something to do now, and what they wait for.
  virtual std::vector<process::WatchedPart> watched() const = 0;
  /// `seconds`: since the process began.
  virtual std::vector<std::string> view_lines(double seconds, process::ViewStyle style) = 0;
  virtual std::string view_line(double seconds) = 0;
  /// Further commands of the control socket. Returns the reply; nothing: the command is unknown.
  virtual std::optional<Result<Json>> command(const std::string&, const Json&) { return std::nullopt; }
};

struct FarmRun {
  bool hold = false;             ///< Wait for `start` on the control socket.
  std::uint32_t run_number = 0;  ///< Used if the process is not held.
  std::optional<double> seconds = {};
  std::string ending;  ///< What stop() does, for people.
  std::chrono::nanoseconds stop_limit = process::kStopLimit;
  process::LastResort* last_resort = nullptr;
};

struct FarmOutcome {
  bool left = false;      ///< The process was held, and ended before it got a run.
  bool finished = false;  ///< False: the end was forced. Threads still work, and the caller must leave by _exit.
};

/// Runs the process to its end. If it is held, `control` must exist. Each step calls `observe`. Throws what start() throws.
FarmOutcome run_farm_process(FarmProcess& farm, const process::ProcessIdentity& identity, const FarmRun& run,
                             process::LineServer* control, const std::function<void()>& observe);

/// The control socket's file name: "NAME.control".
std::string control_socket_name(const std::string& name);

}  // namespace rodeo::farm
