// The life of a process around its Service: control socket, --hold, signals, live view, metrics, report, exit status.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "process/kill_timer.h"
#include "process/line_socket.h"
#include "process/live_view.h"
#include "process/service.h"
#include "process/watchdog.h"

namespace rodeo::process {

class ServiceRun {
 public:
  struct Options {
    bool hold = false;  ///< wait for `start` on the control socket
    std::optional<double> seconds = {};
    std::string build;                                          ///< version and revision
    std::function<Result<void>(const Service::Report&)> write;  ///< writes the report
  };

  enum class Ended : std::uint8_t {
    in_order,
    by_user,   ///< by the third signal
    by_limit,  ///< the stop limit was over, and a part had not even given up
  };

  ServiceRun(std::unique_ptr<Service> service, Options options);
  ~ServiceRun();

  /// The whole life. Throws what the service throws. Does not return after an abort: the process exits while threads work.
  Result<ExitCode> run();

  // The parts of run(). A test may call them without a socket.

  void prepare(LineServer* control);
  /// Runs until the phase is stopped. The first Ctrl-C (or SIGTERM) ends the run in order, a second changes nothing. After
  /// the third, or after the stop limit, the function returns while threads still work.
  Ended run_in_order(LineServer* control);
  /// The answer to one line on the control socket.
  std::string answer(const std::string& line);

  bool ended_without_run() const { return ended_without_run_; }     ///< the process was held, and ends without a run
  const std::optional<Error>& failure() const { return failure_; }  ///< the error of a failed start; the process must end

 private:
  class Metrics;

  Json status(const Json& request);
  Result<void> start_held_run(const Json& request);
  void start_run();
  void stop();
  bool step();
  bool end_within_limit(std::uint64_t now_ns);
  void show_messages();
  void fail_at_limit();

  const Options options_;
  KillTimer kill_timer_;              // outlives the service
  std::optional<LineServer> server_;  // outlives the service: the process keeps its name to the end
  const std::unique_ptr<Service> service_;
  const std::uint64_t launched_utc_ns_;
  std::optional<Json> launching_;  // the answer to `status` during prepare()
  bool held_;                      // the service waits for its run
  std::atomic<bool> ended_without_run_{false};
  bool stop_requested_ = false;  // a signal, a request or --seconds asked for the end
  bool gave_up_ = false;
  std::optional<Error> failure_;
  StopLimit limit_;
  std::uint64_t start_ns_ = 0;
  std::uint64_t watched_ns_ = 0;
  Watchdog watchdog_;
  LiveView view_;
  std::unique_ptr<Metrics> metrics_;
};

}  // namespace rodeo::process
