// A process of the farm - node, recorder - from launch to report: held until it is told its run, or started at once; signals, control socket, view.
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

/// What runs, its own threads behind it. All functions by the thread that called run_farm_process().
class FarmProcess {
 public:
  virtual ~FarmProcess() = default;

  virtual std::string name() const = 0;
  /// Begins the run; 0: the run is not known here, and will be learned from others. Throws SetupError: the process has to end.
  virtual void start(std::uint32_t run_number) = 0;
  /// Asks for the end in order. Again is harmless.
  virtual void stop() = 0;
  /// The end has taken nearly as long as it may: what still waits is given up, and counted. Does not wait.
  virtual void give_up() {}
  /// Some twenty times a second.
  virtual void step() {}
  virtual Phase phase() const = 0;
  /// The report so far (docs/reference/run-report.md); after the end the report.
  virtual Json report() const = 0;
  virtual std::vector<std::string> take_messages() = 0;
  /// What has something to do now, and what it waits for, for the watchdog.
  virtual std::vector<process::WatchedPart> watched() const = 0;
  /// `seconds`: since the process began.
  virtual std::vector<std::string> view_lines(double seconds, process::ViewStyle style) = 0;
  virtual std::string view_line(double seconds) = 0;
  /// Further commands of the control socket: the reply; nothing: there is none of this name.
  virtual std::optional<Result<Json>> command(const std::string&, const Json&) { return std::nullopt; }
};

struct FarmRun {
  bool hold = false;             ///< wait for `start` on the control socket
  std::uint32_t run_number = 0;  ///< where it is not held
  std::optional<double> seconds = {};
  std::string ending;  ///< what stop() does, for people
  std::chrono::nanoseconds stop_limit = process::kStopLimit;
  process::LastResort* last_resort = nullptr;
};

struct FarmOutcome {
  bool left = false;      ///< held, and ended before it was told a run
  bool finished = false;  ///< false: the user would not wait; threads still work, and the caller must leave by _exit
};

/// Runs it to its end. `control` may be nullptr, not where it is held. `observe` is told of every step. Throws what start() throws.
FarmOutcome run_farm_process(FarmProcess& farm, const process::ProcessIdentity& identity, const FarmRun& run,
                             process::LineServer* control, const std::function<void()>& observe);

/// The control socket's file name: "NAME.control".
std::string control_socket_name(const std::string& name);

}  // namespace rodeo::farm
