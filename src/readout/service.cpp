#include "readout/service.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "base/log_file.h"
#include "base/terminal_text.h"
#include "formats/fid.h"
#include "process/control_request.h"
#include "process/stop_signals.h"
#include "readout/configuration.h"
#include "readout/run/prometheus.h"
#include "readout/run/run_record.h"
#include "readout/run/run_report_output.h"
#include "readout/run/run_view.h"
#include "settings/fid_text.h"

namespace rodeo::readout {

using process::ExitCode;

namespace {

process::ServiceFacts facts_of_readout(const ReadoutConfiguration& configuration) {
  process::ServiceFacts facts =
      process::facts_of(process::kReadout, configuration, "the input stops, buffers drain, files close");
  facts.directories = data_directories(configuration.settings);
  facts.long_prepare = true;
  return facts;
}

/// Empty if the run type of the configuration stays.
Result<std::optional<std::uint32_t>> run_type_of(const Json& request) {
  const Json* const name = request.find("run_type");
  if (name == nullptr || name->is_null()) return std::nullopt;
  std::string names;
  for (const auto& [known, type] : run_types()) {
    if (name->string() == known) return type;
    names += (names.empty() ? "" : ", ") + std::string(known);
  }
  return std::unexpected(
      Error{"process.bad_run", fmt::format("`{}` is not a type of run", name->string()), "", "there are: " + names});
}

ExitCode exit_code_of(const RunReport& report, bool verified) {
  // First the failure that ended the run: it may cause the other faults, as a shortened file reads as zeros.
  if (report.condition == Condition::aborted) return ExitCode::failed;
  if (report.mismatches > 0) return ExitCode::not_verified;
  if (!report.adds_up()) return ExitCode::failed;
  if (!verified) return ExitCode::not_verified;
  if (report.lost_too_much()) return ExitCode::partial;
  return ExitCode::done;
}

}  // namespace

ReadoutService::ReadoutService(const ReadoutConfiguration& configuration, Options options)
    : Service(facts_of_readout(configuration)),
      settings_(configuration.settings),
      registry_(configuration.library->registry()),
      options_(std::move(options)),
      numbered_(configuration.numbered) {
  std::vector<std::string>& strings = settings_.run.free_strings;
  strings.insert(strings.begin(), fmt::format("{}={}", kSoftwareKey, options_.build));
}

void ReadoutService::prepare() {
  const std::string run = fmt::format("run {} of ", settings_.run.run_number);
  base::say_folded(fmt::format("{}{}{}: getting ready\n", settings_.run.run_number > 0 ? run : "", settings_.name,
                               numbered_ && settings_.run.run_number > 0 ? ", the next free number" : ""));
  application_ = std::make_unique<Application>(settings_, registry_);
}

void ReadoutService::hold() {
  held_ = true;
  application_->hold();
}

Result<void> ReadoutService::set_run(std::uint32_t number, const Json& request) {
  const auto type = RODEO_TRY(run_type_of(request));
  application_->set_run(number, type.value_or(settings().run.run_type));
  return {};
}

void ReadoutService::start() {
  application_->start();
  if (held_)
    base::log_to_file(
        {.audience = base::Audience::shift, .message = fmt::format("run {} begins", settings().run.run_number)});
}

void ReadoutService::step() {
  application_->step();
  shown_ = application_->status();
  if (options_.amend) options_.amend(shown_, false);
  // The application stops on its own failures; failures of other processes (`amend`) stop it here.
  if ((options_.fragments && shown_.fragments >= *options_.fragments) || !shown_.failure.empty()) application_->stop();
}

Phase ReadoutService::phase() const {
  if (!application_) return Phase::prepared;
  const Phase phase = application_->phase();
  return phase == Phase::running && !shown_.input_ready ? Phase::ready : phase;
}

process::Service::Report ReadoutService::conclude(bool aborted) {
  ReadoutStatus last = application_->status();
  if (options_.amend) options_.amend(last, true);
  RunReport report = make_report(settings(), last, application_->limited_by(), aborted);
  Report out{.json = report_json(report), .text = {}};
  base::log_to_file({.level = report.condition == Condition::good ? base::LogLevel::info : base::LogLevel::warning,
                     .audience = base::Audience::shift,
                     .message = fmt::format("run {} has ended: {}{}{}", report.run_number, name_of(report.condition),
                                            report.failure.empty() ? "" : ": ", report.failure)});
  if (aborted) {
    out.text = report_text(report) +
               "aborted: files that were not closed end in .writing; `rodeo data recover` saves their events\n";
    out.afterwards = [this, json = out.json, files = report.files] {
      (void)write_run_files(json, files, settings_.run.free_strings);
    };
    return out;
  }
  application_.reset();
  bool verified = true;
  if (options_.after) {
    const process::DefaultSignals it_may_take_long;
    const auto found = options_.after(report, out.json);
    if (!found) out.exit = std::unexpected(found.error());
    verified = found.value_or(false);
    out.json["run"]["condition"] = name_of(report.condition);
  }
  const auto recorded = write_run_files(out.json, report.files, settings_.run.free_strings);
  if (!recorded) out.exit = std::unexpected(recorded.error());
  if (out.exit) out.exit = exit_code_of(report, verified);
  out.text = report_text(report);
  return out;
}

Json ReadoutService::status(const Json&) {
  if (application_) shown_ = application_->status();
  return status_json(make_report(settings(), shown_, application_ ? application_->limited_by() : "", false), shown_);
}

std::optional<Result<Json>> ReadoutService::command(const std::string& command, const Json& request) {
  if (command != "link_remove" && command != "link_restore") return std::nullopt;
  const auto fid = settings::parse_fid(process::text_of(request, "fid"));
  if (!fid) return std::unexpected(fid.error());
  const auto done = application_->set_link(*fid, command == "link_remove" ? LinkState::removed : LinkState::active);
  if (!done) return std::unexpected(done.error());
  return Json::object();
}

// Workers report what they wait for; consumers are judged by their queues. Waiting for data counts only while the run ends.
std::vector<process::WatchedPart> ReadoutService::watched() {
  std::vector<process::WatchedPart> parts;
  if (shown_.phase != Phase::running && shown_.phase != Phase::draining) return parts;
  for (const RobStatus& rob : shown_.robs) {
    for (const FragmentBuilder::Worker& worker : rob.builder.workers) {
      const bool idle = worker.waits_for == "data" && shown_.phase == Phase::running;
      parts.push_back({fmt::format("{} of ROB {}", worker.name, formats::to_text(rob.source_id)),
                       idle ? "" : worker.waits_for, worker.progress + rob.builder.fragments});
    }
  }
  for (const FragmentConsumer::Status& consumer : shown_.consumers) {
    if (consumer.queue_fill > 0) parts.push_back({"consumer " + consumer.name, "its current fragment", consumer.consumed});
  }
  return parts;
}

std::vector<std::string> ReadoutService::view_lines(double, process::ViewStyle style) {
  return readout::view_lines(settings(), std::exchange(viewed_, shown_), shown_, style);
}

std::string ReadoutService::view_line(double) { return readout::view_line(std::exchange(viewed_, shown_), shown_); }

std::function<std::string()> ReadoutService::metrics() const {
  return [this, status = shown_] { return prometheus_text(settings_, status); };
}

}  // namespace rodeo::readout
