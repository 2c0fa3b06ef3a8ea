// `rodeo net simulate`: one run of the simulator: use of the switch's memory, losses, reaction of TCP.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>

#include <fmt/format.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/net.h"
#include "cli/system.h"
#include "network/scenario_settings.h"
#include "network/simulator/columns.h"
#include "process/stop_signals.h"

namespace rodeo::cli {
namespace {

using network::NamedTexts;
using network::Outcome;
using network::Scenario;
using network::ScenarioSetting;

struct NetSimulateOptions {
  std::string topology;
  ScenarioOptions settings;
  std::string occupancy;
  std::chrono::nanoseconds occupancy_interval{10'000};
  std::string flows;
  OutputFormat format = OutputFormat::table;
  std::string json;
};

/// A file being written. close() closes it and returns its errors.
class TextFile {
 public:
  ~TextFile() {
    if (file_ != nullptr) std::fclose(file_);
  }
  Result<void> open(const std::string& name) {
    name_ = name;
    file_ = std::fopen(name.c_str(), "w");
    if (file_ == nullptr) return failed();
    return {};
  }
  bool is_open() const { return file_ != nullptr; }
  void write(const std::string& text) { std::fwrite(text.data(), 1, text.size(), file_); }
  Result<void> close() {
    if (file_ == nullptr) return {};
    const bool bad = std::ferror(file_) != 0;
    const bool unwritten = std::fclose(file_) != 0;
    file_ = nullptr;
    if (bad || unwritten) return failed();
    return {};
  }

 private:
  Result<void> failed() const {
    return std::unexpected(Error{"cli.output", fmt::format("cannot write: {}", std::strerror(errno)), name_, ""});
  }
  std::string name_;
  std::FILE* file_ = nullptr;
};

/// The progress line on a terminal: how far the run is, and the time left.
class ProgressLine {
 public:
  explicit ProgressLine(std::uint64_t duration_ns) : duration_ns_(duration_ns), shown_(isatty(STDERR_FILENO) == 1) {}
  ~ProgressLine() {
    if (drawn_) say("\r\033[K");
  }
  void show(std::uint64_t virtual_ns) {
    if (!shown_) return;
    drawn_ = true;
    const double share = static_cast<double>(virtual_ns) / static_cast<double>(duration_ns_);
    const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    const auto filled = static_cast<std::size_t>(30 * share);
    const auto left =
        std::chrono::nanoseconds(static_cast<std::int64_t>(share > 0 ? elapsed * (1 - share) / share * 1e9 : 0));
    say("\r[{}{}] {:3.0f} %  {} of {} virtual, {} left\033[K", std::string(filled, '='), std::string(30 - filled, ' '),
        100 * share, base::format_duration(std::chrono::milliseconds(virtual_ns / 1'000'000)),
        base::format_duration(std::chrono::nanoseconds(duration_ns_)),
        base::format_duration(std::chrono::duration_cast<std::chrono::seconds>(left)));
    std::fflush(stderr);
  }

 private:
  const std::uint64_t duration_ns_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  const bool shown_;
  bool drawn_ = false;
};

Json json_of(const Scenario& scenario, const Outcome& o) {
  Json out =
      Json::object({{"event_size_bytes", scenario.traffic.event_bytes}, {"event_rate_hz", scenario.traffic.event_rate_hz}});
  const Json found = network::json_of(network::outcome_columns(), o);
  for (const auto& [name, value] : found.members()) out[name] = value;
  out["complete"] = o.virtual_ns >= scenario.duration_ns;
  for (const auto& [kind, count] : {std::pair{"data", o.data}, {"ack", o.ack}, {"request", o.request}})
    out["packet_fates"][kind] = network::json_of(network::count_columns(), count);
  out["hash"] = fmt::format("{:016x}", o.hash);
  for (const ScenarioSetting& setting : network::scenario_settings())
    out["settings"][setting.key.name] = setting.text(scenario);
  return out;
}

void print_table(const Scenario& scenario, const Outcome& o) {
  const auto mb = [](std::uint64_t bytes) { return fmt::format("{:.3f} MB", static_cast<double>(bytes) * 1e-6); };
  const auto ms = [](std::uint64_t ns) { return static_cast<double>(ns) * 1e-6; };
  const double seconds = static_cast<double>(o.virtual_ns) * 1e-9;
  Properties out;
  const auto add = [&](const char* title, std::string text, Style style = Style::plain) {
    out.add(title, "", Cell(Json(std::move(text)), {}, style));
  };
  add("largest buffer", fmt::format("{} at {:.3f} ms", mb(o.max_buffer_bytes), ms(o.max_buffer_ns)), Style::strong);
  add("  of it event data", mb(o.max_buffer_payload_bytes));
  if (scenario.buffer.cell_bytes != 0) add("  in cells", mb(o.max_buffer_cell_bytes));
  if (o.drops.total() == 0) {
    add("packets dropped", "none", Style::good);
  } else {
    add("packets dropped",
        fmt::format("{} (pool full {}, threshold {}, port limit {})", o.drops.total(), o.drops.pool_full, o.drops.threshold,
                    o.drops.port_limit),
        Style::bad);
  }
  add("sent again", fmt::format("{} ({} recoveries, {} tail-loss probes, {} time-outs)", o.retransmits, o.fast_recoveries,
                                o.probes, o.timeouts));
  add("events completed", fmt::format("{} of {}, {} were on the way ({:.0f} Hz since the first)", o.events_completed,
                                      o.events_offered, o.events_offered - o.events_completed, o.completed_rate_hz()));
  add("event latency", o.events_completed == 0
                           ? "-"
                           : fmt::format("p50 {:.3g} ms, p99 {:.3g} ms, max {:.3f} ms", ms(o.latency_p50_ns),
                                         ms(o.latency_p99_ns), ms(o.latency_max_ns)));
  add("packets", fmt::format("{} data, {} acknowledgements, {} requests", o.data.sent, o.ack.sent, o.request.sent));
  add("cost", fmt::format("{:.3f} CPU s for {:g} virtual s ({:.3g} per virtual s)", o.cpu_seconds, seconds,
                          seconds > 0 ? o.cpu_seconds / seconds : 0));
  out.print(OutputFormat::table);
}

/// Reads the topology file; flags override it.
Result<Scenario> scenario_from(const NetSimulateOptions& options, const Json& file) {
  NamedTexts texts;
  if (const Json* given = file.find("scenario")) {
    for (const auto& [name, value] : given->members()) texts.emplace_back(name, value.string());
  }
  for (const auto& given : options.settings.given()) texts.push_back(given);
  return network::scenario_of(texts);
}

Result<ExitCode> simulate(const NetSimulateOptions& options) {
  Json file = Json::object();
  if (!options.topology.empty()) {
    auto job = load_network({.file = options.topology});
    if (!job) {  // the error is in the file, so the exit status is that of a configuration; in a flag it would be usage
      for (const Error& error : job.error()) print_error(error);
      return ExitCode::invalid_configuration;
    }
    file = std::move(*job);
  }
  const auto scenario = RODEO_TRY(scenario_from(options, file));
  RODEO_TRY(network::check(scenario));
  if (!options.json.empty()) RODEO_TRY(check_json_target(options.json));
  TextFile occupancy;
  TextFile flows;
  network::Observers observers;
  const auto series = [](const std::string& name, TextFile& to, auto columns, auto& observer) -> Result<void> {
    if (name.empty()) return {};
    RODEO_TRY(to.open(name));
    to.write(network::csv_line(columns));
    observer = [&to, columns](const auto& row) { to.write(network::csv_line(columns, &row)); };
    return {};
  };
  observers.occupancy_interval_ns = static_cast<std::uint64_t>(options.occupancy_interval.count());
  RODEO_TRY(series(options.occupancy, occupancy, network::occupancy_columns(), observers.occupancy));
  RODEO_TRY(series(options.flows, flows, network::flow_columns(), observers.flow));
  const process::StopSignals signals;
  auto progress = std::make_unique<ProgressLine>(scenario.duration_ns);
  observers.progress = [&](std::uint64_t virtual_ns) {
    progress->show(virtual_ns);
    return !signals.stop_requested();
  };
  if (const std::string slow = network::slower_than_asked(scenario.topology, scenario.traffic); !slow.empty())
    say("warning[network.slow_service]: {}\n", slow);
  const auto outcome = network::simulate(scenario, observers);
  progress.reset();
  if (!outcome) return std::unexpected(outcome.error());
  for (TextFile* one : {&occupancy, &flows}) RODEO_TRY(one->close());
  const bool whole = outcome->virtual_ns >= scenario.duration_ns;
  if (!whole) {
    say("interrupted after {:.6g} s of {:.6g} s of virtual time ({:.1f} %): the results cover this time\n",
        static_cast<double>(outcome->virtual_ns) * 1e-9, static_cast<double>(scenario.duration_ns) * 1e-9,
        100 * static_cast<double>(outcome->virtual_ns) / static_cast<double>(scenario.duration_ns));
  }
  const Json json = json_of(scenario, *outcome);
  RODEO_TRY(show(json, options.json, options.format, [&] { print_table(scenario, *outcome); }));
  return whole ? ExitCode::done : ExitCode::partial;
}

}  // namespace

void add_net_simulate(Command& net) {
  auto options = std::make_shared<NetSimulateOptions>();
  Command& verb = net.verb("simulate", "Simulates one run, packet by packet or in trains: buffer occupancy, losses, TCP");
  verb.example("rodeo net simulate --rate 12kHz --duration 50ms", "the paper's operating point with an infinite buffer")
      .example("rodeo net simulate --rate 6kHz --switch qfx5120 --arrivals poisson --duration 2s", "a shallow switch loses")
      .example("rodeo net simulate --engine train --arrivals poisson --duration 20s",
               "the same model in trains of packets: faster if no packets wait")
      .example("rodeo net simulate --topology network.toml --occupancy series.csv", "your own network, with a time series");
  verb.option("--topology", options->topology, "Configuration with [network.topology] and so on; flags override it")
      .value_name("FILE");
  for (const ScenarioSetting& one : network::scenario_settings()) options->settings.add(verb, one, Scenario{});
  verb.option("--occupancy", options->occupancy, "Write the occupancy of each rack's switch over time (CSV)")
      .value_name("FILE");
  verb.duration("--occupancy-interval", options->occupancy_interval,
                "Interval of --occupancy; each line has the largest value of its interval");
  verb.option("--flows", options->flows, "Write the result of each connection (CSV)").value_name("FILE");
  verb.output(options->format);
  verb.json_file(options->json);
  verb.paragraph(
      "The result depends only on these settings and is the same on every machine. A load that a link cannot carry is "
      "refused. Ctrl-C ends the run with the results so far (exit status 6).");
  verb.run([options] { return simulate(*options); });
}

}  // namespace rodeo::cli
