#include "process/service_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <mutex>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/runtime_dir.h"
#include "base/terminal_text.h"
#include "process/control_request.h"
#include "process/host_health.h"
#include "process/http_server.h"
#include "process/prometheus.h"
#include "process/stop_signals.h"

namespace rodeo::process {
namespace {

constexpr std::uint64_t kWatchNs = 250'000'000;
constexpr double kLargestRun = 0x7fffffff;  // 31 bits, as in ROD headers

std::uint64_t utc_now_ns() {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count());
}

double seconds_of(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

Json standing_json(const std::vector<StandingPart>& parts) {
  Json out = Json::array();
  for (const StandingPart& part : parts)
    out.push_back(Json::object({{"name", part.name}, {"waits_for", part.waits_for}, {"seconds", part.seconds}}));
  return out;
}

Result<std::uint32_t> run_number_of(const Json& request) {
  const Json* const run = request.find("run");
  const double number = run != nullptr && run->is_number() ? run->number() : 0;
  if (number >= 1 && number <= kLargestRun && number == static_cast<double>(static_cast<std::uint32_t>(number)))
    return static_cast<std::uint32_t>(number);
  return std::unexpected(Error{"process.bad_run", "`run` is not a run number", "",
                               fmt::format("a whole number from 1 to {:.0f}", kLargestRun)});
}

}  // namespace

/// Serves the last status, and the state of the host, over HTTP.
class ServiceRun::Metrics {
 public:
  using Text = std::function<std::string()>;

  /// Throws SetupError: process.http.
  Metrics(const ServiceFacts& facts, Text text)
      : text_(std::move(text)), server_(facts.metrics_listen, metrics_answer([this, directories = facts.directories] {
                                          return last_text()() + host_metrics(directories);
                                        })) {
    base::say_folded(fmt::format("metrics at http://{}/metrics\n", server_.address()));
  }

  void set_text(Text text) {
    const std::lock_guard lock(mutex_);
    text_ = std::move(text);
  }

 private:
  Text last_text() {
    const std::lock_guard lock(mutex_);
    return text_;
  }

  std::mutex mutex_;
  Text text_;
  HttpServer server_;
};

ServiceRun::ServiceRun(std::unique_ptr<Service> service, Options options)
    : options_(std::move(options)),
      kill_timer_(service->facts().stop_limit, service->facts().name),
      service_(std::move(service)),
      launched_utc_ns_(utc_now_ns()),
      held_(options_.hold),
      limit_(service_->facts().stop_limit) {
  if (held_ && service_->facts().long_prepare) launching_ = status(Json::object());
}

ServiceRun::~ServiceRun() = default;

Result<ExitCode> ServiceRun::run() {
  const ServiceFacts& facts = service_->facts();
  if (options_.hold && !facts.control_socket)
    return std::unexpected(Error{
        "cli.usage", fmt::format("--hold: this {} has no control socket, so it cannot receive its run", facts.kind.name),
        fmt::format("{}.control", facts.kind.table), "leave `control = false` out, or --hold"});
  ignore_write_signals();
  if (facts.control_socket) server_.emplace(RODEO_TRY(base::runtime_socket(facts.kind.socket_of(facts.name))));
  LineServer* const control = server_ ? &*server_ : nullptr;
  // A signal after the end of the run must not prevent the report.
  std::optional<StopSignals> signals;
  if (!facts.long_prepare) signals.emplace();
  prepare(control);
  if (!signals) signals.emplace();
  if (!facts.metrics_listen.empty()) metrics_ = std::make_unique<Metrics>(facts, service_->metrics());
  if (!ended_without_run_) (void)run_in_order(control);
  if (ended_without_run_) {
    base::say_folded(fmt::format("{} has ended; no run was started\n", facts.name));
    return ExitCode::done;
  }
  show_messages();
  const bool aborted = service_->phase() != Phase::stopped;
  Service::Report report = service_->conclude(aborted);
  const Result<void> written = options_.write(report);
  if (aborted) {
    // Threads still use these objects: exit without destructors.
    if (report.afterwards) report.afterwards();
    std::fflush(nullptr);
    server_.reset();
    ::_exit(static_cast<int>(ExitCode::failed));
  }
  RODEO_TRY(written);
  return std::move(report.exit);
}

void ServiceRun::prepare(LineServer* control) {
  std::jthread answers;
  if (launching_ && control != nullptr) {
    answers = std::jthread([&](const std::stop_token& prepared) {
      constexpr std::chrono::milliseconds kWait{20};
      while (!prepared.stop_requested()) control->serve(kWait, [&](const std::string& line) { return answer(line); });
    });
  }
  service_->prepare();
  answers = {};
  launching_.reset();
}

ServiceRun::Ended ServiceRun::run_in_order(LineServer* control) {
  const ServiceFacts& facts = service_->facts();
  const StopSignals signals;
  if (held_) {
    service_->hold();
    view_.say(facts.name + " is ready, and waits for its run");
  } else {
    start_run();
  }
  bool stop_shown = false;
  bool wait_shown = false;
  do {
    if (control != nullptr) {
      control->serve(service_->pause(), [&](const std::string& line) { return answer(line); });
    } else {
      std::this_thread::sleep_for(service_->pause());
    }
    if (signals.stop_requested() && !stop_shown) {
      stop_shown = true;
      view_.say("ending the run in order: " + facts.ending);
      stop();
    } else if (signals.stop_requested_again() && !wait_shown) {
      wait_shown = true;
      view_.say("still ending the run in order; a third Ctrl-C aborts it, and " + facts.aborted);
    }
    const std::uint64_t now_ns = base::steady_now_ns();
    const bool in_time = end_within_limit(now_ns);
    if (!step()) {
      view_.finish();
      return Ended::in_order;
    }
    if (!in_time) {
      fail_at_limit();
      view_.finish();
      return Ended::by_limit;
    }
  } while (!signals.abort_requested());
  view_.finish();
  return Ended::by_user;
}

/// False once the stop limit is over. Shortly before, the service gives up what waits.
bool ServiceRun::end_within_limit(std::uint64_t now_ns) {
  if (stop_requested_ || service_->stopping()) {
    limit_.begin(now_ns);
    kill_timer_.begin();
  }
  if (limit_.gives_up(now_ns) && !std::exchange(gave_up_, true)) {
    view_.say(fmt::format("the run has not ended; its limit is {:g} s (stop_limit): what waits is given up and counted",
                          seconds_of(service_->facts().stop_limit)));
    service_->give_up();
  }
  return !limit_.over(now_ns);
}

void ServiceRun::fail_at_limit() {
  const ServiceFacts& facts = service_->facts();
  const double limit_s = seconds_of(facts.stop_limit);
  view_.say(fmt::format("the run did not end within {:g} s (stop_limit): it is aborted, and {}", limit_s, facts.aborted));
  std::string why = fmt::format("the run did not end within stop_limit = {:g} s", limit_s);
  for (const StandingPart& part : watchdog_.standing()) why += "; " + part.text();
  service_->fail(why);
}

bool ServiceRun::step() {
  if (failure_) throw SetupError(*failure_);
  if (ended_without_run_) return false;
  service_->step();
  const std::uint64_t now_ns = base::steady_now_ns();
  show_messages();
  if (now_ns - watched_ns_ >= kWatchNs) {
    watched_ns_ = now_ns;
    watchdog_.check(service_->watched(), now_ns);
    for (const std::string& message : watchdog_.take_messages()) view_.say(message);
  }
  if (metrics_) metrics_->set_text(service_->metrics());
  if (!held_) {
    const double seconds = static_cast<double>(now_ns - start_ns_) * 1e-9;
    if (options_.seconds && service_->seconds(seconds) >= *options_.seconds) stop();
    (void)view_.show(
        seconds, [&](ViewStyle style) { return service_->view_lines(seconds, style); },
        [&] { return service_->view_line(seconds); });
  }
  return service_->phase() != Phase::stopped;
}

void ServiceRun::show_messages() {
  for (const std::string& message : service_->take_messages()) view_.say(message);
}

void ServiceRun::start_run() {
  held_ = false;
  start_ns_ = base::steady_now_ns();
  service_->start();
}

void ServiceRun::stop() {
  stop_requested_ = true;
  if (held_) ended_without_run_ = true;
  if (!launching_) service_->stop();
}

Result<void> ServiceRun::start_held_run(const Json& request) {
  if (!held_ || ended_without_run_)
    return std::unexpected(Error{"process.not_ready",
                                 fmt::format("it is {}; it starts only once", life_phase(service_->phase())), "",
                                 "a process launched with --hold waits for its start"});
  const std::string& mine = service_->facts().configuration_sha256;
  const std::string wanted = text_of(request, "configuration_sha256");
  if (wanted != mine)
    return std::unexpected(Error{"process.other_configuration",
                                 wanted.empty()
                                     ? fmt::format("configuration_sha256 is missing: this process has {}", mine)
                                     : fmt::format("the run has the configuration {}, this process has {}", wanted, mine),
                                 "", "ask for its status, or end it and launch it with the run's configuration"});
  const auto number = RODEO_TRY(run_number_of(request));
  RODEO_TRY(service_->set_run(number, request));
  try {
    start_run();
    return {};
  } catch (const SetupError& error) {
    failure_ = error.error();
  } catch (const std::exception& error) {
    failure_ = Error{"process.failed", error.what()};
  }
  return std::unexpected(*failure_);
}

Json ServiceRun::status(const Json& request) {
  const ServiceFacts& facts = service_->facts();
  Json status = service_->status(request);
  status["standing"] = standing_json(watchdog_.standing());
  status["process"] = Json::object({{"pid", static_cast<std::int64_t>(::getpid())},
                                    {"name", facts.name},
                                    {"kind", facts.kind.name},
                                    {"phase", life_phase(service_->phase())},
                                    {"started_ns", launched_utc_ns_},
                                    {"build", options_.build},
                                    {"configuration_sha256", facts.configuration_sha256}});
  return status;
}

std::string ServiceRun::answer(const std::string& line) {
  return answer_line(line, [&](const Json& request) {
    const std::string command = text_of(request, "command");
    const ServiceFacts& facts = service_->facts();
    if (command == "status") return reply(launching_ ? *launching_ : status(request));
    if (command == "stop") {
      stop();
      return reply(Json::object());
    }
    if (launching_) return refusal({"process.not_ready", "it is being launched", "", "ask its status until it is ready"});
    if (command == "start" && facts.kind.one_run) {
      if (const auto started = start_held_run(request); !started) return refusal(started.error());
      return reply(Json::object({{"run", *request.find("run")}, {"phase", phase_name(Phase::running)}}));
    }
    if (auto more = service_->command(command, request)) return *more ? reply(std::move(**more)) : refusal(more->error());
    return refusal(
        {"process.unknown_command", fmt::format("{} has no command `{}`", facts.name, command), "",
         fmt::format("the commands are status, stop{}{}", facts.kind.one_run ? ", start" : "", service_->commands())});
  });
}

}  // namespace rodeo::process
