// A process as one class: what service_run.h needs of it. The readout, the router, the emulator and the three processes of
// the farm are services.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "process/exit_code.h"
#include "process/kinds.h"
#include "process/live_view.h"
#include "process/phase.h"
#include "process/stop_limit.h"
#include "process/watchdog.h"
#include "settings/json.h"

namespace rodeo::process {

using settings::Json;

/// What the configuration says of a process.
struct ServiceFacts {
  ProcessKind kind;
  std::string name;
  std::string configuration_sha256;  ///< covers the whole configuration
  bool control_socket = true;
  std::string metrics_listen = {};            ///< empty if the process serves no metrics
  std::vector<std::string> directories = {};  ///< where files go; the metrics show the free space there
  std::chrono::nanoseconds stop_limit = kStopLimit;
  std::string ending;  ///< tells the user what stop() does: "the input stops, ..."
  std::string aborted = "what is not written yet is lost";
  /// prepare() may take seconds: a signal then ends the process at once, and a held process answers requests.
  bool long_prepare = false;
};

/// The facts of a plan. `ending` tells the user what stop() does.
template <typename Configuration>
ServiceFacts facts_of(const ProcessKind& kind, const Configuration& configuration, std::string_view ending) {
  return {.kind = kind,
          .name = configuration.settings.name,
          .configuration_sha256 = configuration.configuration_sha256,
          .control_socket = configuration.control_socket,
          .metrics_listen = configuration.metrics_listen,
          .stop_limit = configuration.settings.stop_limit,
          .ending = std::string(ending)};
}

/// One thread calls all functions, in this order: prepare; hold and set_run, if the process is held; start; step until the
/// phase is stopped; conclude.
class Service {
 public:
  struct Report {
    Json json;
    std::string text;  ///< printed on the terminal
    Result<ExitCode> exit = ExitCode::done;
    std::function<void()> afterwards = {};  ///< called after the report of an aborted run is written; may block
  };

  explicit Service(ServiceFacts facts) : facts_(std::move(facts)) {}
  virtual ~Service() = default;

  const ServiceFacts& facts() const { return facts_; }

  /// Makes everything that the run needs. Throws SetupError.
  virtual void prepare() = 0;
  /// Waits for set_run() from now on.
  virtual void hold() {}
  /// Takes a run from the request that starts it. If it returns an error or throws, the service waits for another run.
  virtual Result<void> set_run(std::uint32_t, const Json&) { return {}; }
  /// Throws SetupError: the process must end.
  virtual void start() = 0;
  /// Advances the run, some twenty times a second. Throws SetupError: the process must end, without a report.
  virtual void step() = 0;
  /// The longest time from one step to the next.
  virtual std::chrono::milliseconds pause() const { return std::chrono::milliseconds{50}; }
  /// Asks for the end in order. Repeated calls change nothing.
  virtual void stop() = 0;
  /// True if the service has stopped the run by itself.
  virtual bool stopping() const { return false; }
  /// Shortly before the stop limit: gives up what waits, and counts it. Does not block.
  virtual void give_up() {}
  /// The stop limit is over, and the run is aborted for this reason.
  virtual void fail(const std::string&) {}
  virtual Phase phase() const = 0;
  /// The time that --seconds limits.
  virtual double seconds(double since_start) const { return since_start; }
  /// Makes the report of the run. `aborted`: threads still work, and the process exits without destructors.
  virtual Report conclude(bool aborted) = 0;

  /// The answer to `status`, without its members `process` and `standing`. Also before prepare().
  virtual Json status(const Json& request) = 0;
  /// Lists the further commands of the control socket for an error text: ", slow_disk".
  virtual std::string_view commands() const { return ""; }
  /// Answers one of commands(); returns nothing for any other.
  virtual std::optional<Result<Json>> command(const std::string&, const Json&) { return std::nullopt; }
  /// Returns new messages, which stay on the screen.
  virtual std::vector<std::string> take_messages() { return {}; }
  /// The parts that have something to do now, and what they wait for.
  virtual std::vector<WatchedPart> watched() = 0;
  /// The live view. `seconds`: since the start.
  virtual std::vector<std::string> view_lines(double seconds, ViewStyle style) = 0;
  virtual std::string view_line(double seconds) = 0;
  /// A copy of the last status, as a function that turns it into metrics on another thread.
  virtual std::function<std::string()> metrics() const { return {}; }

 private:
  const ServiceFacts facts_;
};

}  // namespace rodeo::process
