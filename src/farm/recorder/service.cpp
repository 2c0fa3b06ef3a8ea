#include "farm/recorder/service.h"

#include <fmt/format.h>

#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/sentence.h"
#include "base/units.h"
#include "process/configuration.h"
#include "process/counters_json.h"
#include "process/prometheus.h"
#include "transport/replier.h"

namespace rodeo::farm {

using process::Condition;
using process::value_at;

namespace {

double seconds_between(std::uint64_t begin_ns, std::uint64_t end_ns) {
  return begin_ns == 0 ? 0 : static_cast<double>(end_ns - begin_ns) * 1e-9;
}

std::uint64_t refused(const RecorderStatus& status) { return status["refused_disk_full"] + status["refused_write_failed"]; }

std::string report_text(const Json& report) {
  const auto number = [&](std::string_view group, std::string_view key) { return value_at(report, group, key).number(); };
  std::string out = fmt::format("{}: run {:.0f} of {} took {:.1f} s\n", value_at(report, "run", "condition").string(),
                                number("run", "number"), value_at(report, "run", "name").string(), number("run", "seconds"));
  out += fmt::format("  {:.0f} events recorded, {} ({:.0f} more came twice, {:.0f} were here before)\n",
                     number("events", "recorded"), base::format_quantity(number("bytes", "events"), "B"),
                     number("events", "had_already"), number("events", "read_back"));
  if (number("events", "refused") > 0) out += fmt::format("  {:.0f} times refused\n", number("events", "refused"));
  if (const Json* trouble = report.find("trouble"); trouble != nullptr && !trouble->string().empty())
    out += fmt::format("  at the end: {}\n", trouble->string());
  const Json* const files = report.find("files");
  const std::size_t closed = files == nullptr ? 0 : files->elements().size();
  out += fmt::format("  {} closed", base::counted(closed, "file"));
  if (report.find("target") != nullptr)
    out += fmt::format(", {:.0f} stored, {:.0f} left", number("target", "stored_files"), number("target", "files_left"));
  return out + "\n";
}

/// Text format 0.0.4. Names and labels: docs/reference/metrics.md.
std::string prometheus_text(const RecorderService::Shown& shown) {
  process::PrometheusText out;
  const RecorderStatus& status = shown.recorder;
  out.counters("rodeo_recorder_", "", kRecorderCounters, status.counters);
  out.counters("rodeo_recorder_", "network_", transport::kReplierCounters, status.counters);
  out.gauge("rodeo_recorder_run_number", "Run that is recorded; 0: none yet.", status.run_number);
  out.gauge("rodeo_recorder_events_waiting", "Events that are taken, and not safe yet.", status.events_waiting);
  out.gauge("rodeo_recorder_requests_waiting", "Requests that are not taken yet because the disk is busy.",
            status.requests_waiting);
  out.gauge("rodeo_recorder_open_files", "Files of streams and luminosity blocks that are open.", status.open_files);
  out.gauge("rodeo_recorder_closed_files", "Files that were closed in this life of the recorder.", status.files.size());
  out.gauge("rodeo_recorder_connected_clients", "Nodes and others that are connected.", status.clients);
  out.gauge("rodeo_recorder_refusing", "1 while nothing is taken because the disk is full or failed.",
            status.trouble.empty() ? 0 : 1);
  out.gauge("rodeo_recorder_files_to_store", "Closed files that are not at their target yet.", shown.target.files_left);
  out.metric("rodeo_recorder_stored_files_total", "counter", "Files that were copied to their target and confirmed.");
  out.sample(shown.target.stored_files);
  out.metric("rodeo_recorder_store_failures_total", "counter", "Copies that failed; each is tried again.");
  out.sample(shown.target.failures);
  out.metric("rodeo_recorder_cpu_seconds_total", "counter", "CPU time of the thread that takes events.");
  out.sample(status.cpu_seconds);
  return out.take();
}

}  // namespace

RecorderService::RecorderService(const RecorderConfiguration& configuration)
    : Service([&] {
        process::ServiceFacts facts =
            facts_of(process::kRecorder, configuration, "files are closed, waiting requests are answered");
        facts.directories = {configuration.settings.files.directory.string()};
        return facts;
      }()),
      settings_(configuration.settings),
      run_number_(settings_.run_number) {}

RecorderService::~RecorderService() = default;

void RecorderService::prepare() {
  server_ = std::make_unique<RecorderServer>(settings_);
  if (!settings_.target.any()) return;
  const process::EndTime copies{"farm.recorder.target.linger", settings_.target.linger};
  for (const std::string& warning : process::cut_by_stop_limit(std::span(&copies, 1), settings_.stop_limit))
    base::log_warning("{}", warning);
}

void RecorderService::start() {
  server_->start(run_number_);
  if (settings_.target.any())
    target_ = std::make_unique<StorageTarget>(
        settings_.target, RunFiles{settings_.files.directory, settings_.files.project, settings_.name, run_number_});
  began_ns_ = base::steady_now_ns();
  phase_ = Phase::running;
}

void RecorderService::stop() {
  if (phase_ == Phase::stopped || phase_ == Phase::draining) return;
  server_->end();
  phase_ = Phase::draining;
}

void RecorderService::give_up() {
  server_->give_up();
  if (target_ != nullptr) target_->give_up();
}

void RecorderService::step() {
  shown_.recorder = server_->status();
  if (target_ != nullptr) {
    if (std::exchange(files_seen_, shown_.recorder.files.size()) != shown_.recorder.files.size()) target_->check_files();
    if (server_->ended()) target_->end();
    shown_.target = target_->status();
    if (shown_.target.trouble != reported_trouble_ && !shown_.target.trouble.empty())
      messages_.push_back("a file was not stored: " + shown_.target.trouble);
    reported_trouble_ = shown_.target.trouble;
  }
  if (phase_ != Phase::draining || !server_->ended() || (target_ != nullptr && !target_->ended())) return;
  shown_.recorder = server_->status();
  ended_ns_ = base::steady_now_ns();
  phase_ = Phase::stopped;
}

std::vector<process::WatchedPart> RecorderService::watched_parts(const Shown& shown) {
  const RecorderStatus& status = shown.recorder;
  std::vector<process::WatchedPart> parts;
  if (status.events_waiting + status.requests_waiting > 0)
    parts.push_back(
        {"events that are not safe", "the disk", status["events_recorded"] + status["had_already"] + refused(status)});
  if (shown.target.files_left > 0 && !shown.target.trouble.empty())
    parts.push_back({"closed files", "their target", shown.target.stored_files});
  return parts;
}

Condition RecorderService::condition() const {
  const bool files_left = phase_ == Phase::stopped &&
                          shown_.target.files_left + shown_.recorder.events_waiting + shown_.recorder.requests_waiting > 0;
  if (!shown_.recorder.trouble.empty() || shown_.recorder["copies_lost"] > 0 || files_left) return Condition::incomplete;
  return Condition::good;
}

Json RecorderService::report() const {
  const RecorderStatus& status = shown_.recorder;
  Json files = Json::array();
  std::uint64_t written = 0;
  for (const FragmentConsumer::File& file : status.files) {
    written += file.bytes;
    files.push_back(Json::object({{"path", file.path},
                                  {"bytes", file.bytes},
                                  {"events", file.events},
                                  {"adler32", fmt::format("{:08x}", file.adler32)}}));
  }
  const std::uint64_t until = ended_ns_ != 0 ? ended_ns_ : base::steady_now_ns();
  Json report = Json::object({{"run", Json::object({{"name", settings_.name},
                                                    {"number", status.run_number},
                                                    {"seconds", seconds_between(began_ns_, until)},
                                                    {"condition", process::name_of(condition())}})},
                              {"events", Json::object({{"recorded", status["events_recorded"]},
                                                       {"had_already", status["had_already"]},
                                                       {"read_back", status["read_back"]},
                                                       {"refused", refused(status)},
                                                       {"waiting", status.events_waiting + status.requests_waiting}})},
                              {"bytes", Json::object({{"events", status["event_bytes"]}, {"files", written}})},
                              {"clients", status.clients},
                              {"trouble", status.trouble},
                              {"counters", process::counters_json(status.counters)},
                              {"cpu_seconds", Json::object({{"recorder", status.cpu_seconds}})},
                              {"files", std::move(files)}});
  if (settings_.target.any())
    report["target"] = Json::object({{"stored_files", shown_.target.stored_files},
                                     {"stored_bytes", shown_.target.stored_bytes},
                                     {"failures", shown_.target.failures},
                                     {"files_left", shown_.target.files_left},
                                     {"trouble", shown_.target.trouble}});
  return report;
}

Json RecorderService::status(const Json&) {
  Json status = report();
  status["phase"] = process::life_phase(phase_);
  return status;
}

process::Service::Report RecorderService::conclude(bool) {
  using process::ExitCode;
  Json json = report();
  std::string text = report_text(json);
  return {std::move(json), std::move(text), condition() == Condition::good ? ExitCode::done : ExitCode::partial};
}

std::function<std::string()> RecorderService::metrics() const {
  return [shown = shown_] { return prometheus_text(shown); };
}

std::vector<std::string> RecorderService::take_messages() {
  std::vector<std::string> out = server_->take_messages();
  out.insert(out.end(), messages_.begin(), messages_.end());
  messages_.clear();
  return out;
}

std::optional<Result<Json>> RecorderService::command(const std::string& command, const Json& request) {
  if (command != "slow_disk") return std::nullopt;
  const Json* const seconds = request.find("seconds");
  if (seconds == nullptr || !seconds->is_number() || !(seconds->number() >= 0 && seconds->number() <= 3600))
    return std::unexpected(Error{"process.bad_request", "`seconds` must be a number from 0 to 3600", "", ""});
  server_->slow_down(std::chrono::nanoseconds(static_cast<std::int64_t>(seconds->number() * 1e9)));
  return Json::object();
}

std::vector<std::string> RecorderService::view_lines(double seconds, process::ViewStyle style) {
  const process::Painter paint(style);
  const RecorderStatus now = shown_.recorder;
  const RecorderStatus before = std::exchange(viewed_, now);
  const double span = seconds - std::exchange(viewed_s_, seconds);
  const auto rate = [&](std::string_view counter, std::string_view unit) {
    return base::format_quantity(span > 0 ? static_cast<double>(now[counter] - before[counter]) / span : 0, unit);
  };
  std::vector<std::string> lines;
  const auto add = [&](const std::string& head, const std::vector<std::string>& parts) {
    process::add_line(lines, head, parts, style.columns);
  };
  add(fmt::format("{}  run {}  {} {}", paint.bold("rodeo " + settings_.name), now.run_number, process::phase_name(phase_),
                  process::clock_text(seconds)),
      {paint.dim(phase_ == Phase::running ? "   Ctrl-C ends it in order" : "")});
  add(fmt::format("  events     {:>12}", rate("events_recorded", "/s")),
      {fmt::format("   recorded {}", now["events_recorded"]), fmt::format("   had already {}", now["had_already"])});
  add(fmt::format("  bytes      {:>12}", rate("event_bytes", "B/s")),
      {fmt::format("   files {}, {} open", now.files.size(), now.open_files)});
  add(fmt::format("  waiting    {:>12}", now.events_waiting), {fmt::format("   for the disk {}", now.requests_waiting)});
  if (target_ != nullptr)
    add(fmt::format("  stored     {:>12}", shown_.target.stored_files),
        {fmt::format("   left {}", shown_.target.files_left),
         shown_.target.trouble.empty() ? "" : paint.bad("   " + shown_.target.trouble)});
  if (!now.trouble.empty()) lines.push_back("  " + paint.bad("nothing is taken: " + now.trouble));
  return lines;
}

std::string RecorderService::view_line(double seconds) {
  const RecorderStatus now = shown_.recorder;
  const RecorderStatus before = std::exchange(viewed_, now);
  const double span = seconds - std::exchange(viewed_s_, seconds);
  const double rate = span > 0 ? static_cast<double>(now["events_recorded"] - before["events_recorded"]) / span : 0;
  return fmt::format("{}  events {}  recorded {}  had already {}  refused {}  files {}  waiting {}",
                     process::clock_text(seconds), base::format_quantity(rate, "/s"), now["events_recorded"],
                     now["had_already"], refused(now), now.files.size(), now.events_waiting + now.requests_waiting);
}

}  // namespace rodeo::farm
