#include "cli/readout_action.h"

#include <fmt/core.h>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/log_file.h"
#include "base/runtime_dir.h"
#include "base/terminal_text.h"
#include "cli/build_text.h"
#include "process/line_socket.h"
#include "process/status_metrics.h"
#include "process/stop_signals.h"
#include "readout/run/prometheus.h"
#include "readout/run/readout_control.h"
#include "readout/run/run_record.h"
#include "readout/run/run_report_output.h"

namespace rodeo::cli {
namespace {

ExitCode exit_code_of_run(const readout::RunReport& report, bool verified) {
  // First the failure that ended the run: it may cause the other faults, as a shortened file reads as zeros.
  if (report.condition == readout::Condition::aborted) return ExitCode::failed;
  if (report.mismatches > 0) return ExitCode::not_verified;
  if (!report.adds_up()) return ExitCode::failed;
  if (!verified) return ExitCode::not_verified;
  if (report.lost_too_much()) return ExitCode::partial;
  return ExitCode::done;
}

Result<void> publish(const readout::RunReport& report, const Json& json, const std::string& json_file) {
  say("{}", base::without_control_characters(readout::report_text(report)));
  return json_file.empty() ? Result<void>{} : write_json(json_file, json);
}

/// Throws SetupError: process.name_taken and errors of the socket.
void listen(std::optional<process::LineServer>& control, readout::ReadoutPlan& plan) {
  for (bool again = plan.another_name_will_do;; again = false) {
    const auto socket = base::runtime_socket(readout::control_socket_name(plan.settings.name));
    if (!socket) throw SetupError(socket.error());
    try {
      control.emplace(*socket);
      return;
    } catch (const SetupError& refused) {
      if (!again || refused.error().code != "process.name_taken") throw;
    }
    plan.settings.name += "-" + std::to_string(::getpid());
    plan.settings.run.readout_name = plan.settings.name;
  }
}

/// Makes the application while another thread answers on the control socket: opening cards and allocating memory may take
/// seconds. nullptr if a request asked it to stop.
std::unique_ptr<readout::Application> made_while_asked(const readout::ReadoutPlan& plan,
                                                       const process::ProcessIdentity& identity,
                                                       process::LineServer& control) {
  constexpr std::chrono::milliseconds kLook{20};
  std::atomic<bool> stop{false};
  std::unique_ptr<readout::Application> application;
  {
    const std::jthread answers([&](const std::stop_token& made) {
      const auto answer = [&](const std::string& line) {
        return readout::answer_while_launching(plan.settings, identity, line, stop);
      };
      while (!made.stop_requested()) control.serve(kLook, answer);
    });
    application = std::make_unique<readout::Application>(plan.settings, plan.library->registry());
  }
  if (stop) application.reset();
  return application;
}

ExitCode ended_without_run(const std::string& name) {
  std::fprintf(stderr, "%s has ended; no run was started\n", name.c_str());
  return ExitCode::done;
}

}  // namespace

Result<ExitCode> run_to_report(readout::ReadoutPlan& plan, readout::RunLimits limits, const std::string& json_file,
                               const AfterRun& after, const readout::StatusAmender& amend) {
  RODEO_TRY(check_seconds(limits.seconds, "leave it out to run until Ctrl-C or the end of the input"));
  if (limits.hold && !plan.control_socket) {
    return std::unexpected(Error{"cli.usage", "--hold: this readout has no control socket, so it cannot receive its run",
                                 "readout.control", "leave `control = false` out, or --hold"});
  }
  process::outlive_listeners();
  std::vector<std::string>& strings = plan.settings.run.free_strings;
  strings.insert(strings.begin(), fmt::format("{}={}", readout::kSoftwareKey, build_text()));
  if (limits.hold) {
    plan.settings.run.run_number = 0;
    std::fprintf(stderr, "%s: getting ready\n", plan.settings.name.c_str());
  } else {
    std::fprintf(stderr, "run %u of %s%s: getting ready\n", plan.settings.run.run_number, plan.settings.name.c_str(),
                 plan.numbered ? ", the next free number" : "");
  }
  std::optional<process::LineServer> control;
  if (plan.control_socket) listen(control, plan);
  const process::ProcessIdentity identity{.kind = "readout",
                                          .name = plan.settings.name,
                                          .build = build_text(),
                                          .configuration_sha256 = plan.configuration_sha256};
  auto application = limits.hold ? made_while_asked(plan, identity, *control)
                                 : std::make_unique<readout::Application>(plan.settings, plan.library->registry());
  if (!application) return ended_without_run(plan.settings.name);
  process::StatusMetrics<readout::ReadoutStatus> metrics(
      plan.metrics_listen, [&](const auto& status) { return readout::prometheus_text(plan.settings, status); },
      readout::data_directories(plan.settings));
  // A signal after the end of the run must not prevent the report.
  std::optional<process::StopSignals> signals(std::in_place);
  process::LastResort last_resort(plan.settings.stop_limit, plan.settings.name);
  readout::ControlledReadout readout{.application = *application, .identity = identity};
  readout::RunReport report = readout::run_readout(
      readout, limits, control ? &*control : nullptr, [&](const auto& status) { metrics.show(status); }, amend,
      &last_resort);
  if (readout.left) return ended_without_run(plan.settings.name);
  Json json = readout::report_json(report);
  const bool good = report.condition == readout::Condition::good;
  base::log_to_file(
      {.level = good ? base::LogLevel::info : base::LogLevel::warning,
       .audience = base::Audience::shift,
       .message = fmt::format("run {} has ended: {}{}{}", report.run_number, readout::name_of(report.condition),
                              report.failure.empty() ? "" : ": ", report.failure)});
  if (application->phase() != readout::Phase::stopped) {
    // The user aborted. Threads still use these objects: exit without destructors. `rodeo data recover` saves unfinished
    // files.
    (void)publish(report, json, json_file);
    (void)readout::write_run_files(json, report.files, strings);
    std::fprintf(stderr, "aborted: files that were not closed end in .writing; `rodeo data recover` saves their events\n");
    std::fflush(nullptr);
    control.reset();
    ::_exit(static_cast<int>(ExitCode::failed));
  }
  application.reset();
  bool verified = true;
  if (after) {
    signals.reset();  // it may take long, and one signal should end it
    const bool found = RODEO_TRY(after(report, json));
    signals.emplace();
    verified = found;
    json["run"]["condition"] = readout::name_of(report.condition);
  }
  const auto recorded = readout::write_run_files(json, report.files, strings);
  RODEO_TRY(publish(report, json, json_file));
  if (!recorded) return std::unexpected(recorded.error());
  return exit_code_of_run(report, verified);
}

}  // namespace rodeo::cli
