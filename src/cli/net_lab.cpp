// `rodeo net lab`: the network with real TCP, in namespaces of this machine or on a list of hosts.
#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "cli/net.h"
#include "cli/net_lab_report.h"
#include "cli/program.h"
#include "cli/python.h"
#include "network/laboratory/agent.h"
#include "network/laboratory/leftovers.h"
#include "network/laboratory/linux_switch.h"
#include "network/laboratory/switch_program.h"
#include "process/prometheus_query.h"
#include "process/stop_signals.h"

namespace rodeo::cli {
namespace {

using namespace network::laboratory;
using network::laboratory::Settings;

struct NetLabOptions {
  std::string preset;
  std::optional<double> rate_scale, size_scale;
  ScenarioOptions network;
  std::optional<std::string> buffer, switch_preset;
  Settings defaults;
  bool clean = false;
  std::string hosts;
  std::string agent;
  std::string load;
  std::string driver;
  std::vector<std::string> driver_options;
  std::string prometheus;
  std::vector<std::string> queries;
  std::string json;
  OutputFormat format = OutputFormat::table;
};

constexpr double kRateScale = 0.001;  // default for a preset
constexpr double kSizeScale = 0.1;

/// The laboratory without a preset, as the method section of docs/explanation/network-laboratory.md defines it.
Settings small_laboratory(const Settings& defaults) {
  Settings settings = defaults;
  settings.topology.readouts = 8;
  settings.topology.nodes = 16;
  settings.topology.node_link_bps = 50'000'000;
  settings.topology.uplink_bps = 800'000'000;
  settings.traffic.event_bytes = 500'000;
  settings.traffic.event_rate_hz = 120;
  return settings;
}

/// The scenario settings that apply here, and the earlier names of their options.
constexpr std::pair<const char*, const char*> kSettings[] = {{"readouts", ""},
                                                             {"nodes", ""},
                                                             {"racks", ""},
                                                             {"node_link", ""},
                                                             {"uplink", ""},
                                                             {"readout_link", ""},
                                                             {"event_size", ""},
                                                             {"rate", ""},
                                                             {"mtu", ""},
                                                             {"dedicated", ""},
                                                             {"dynamic_threshold", ""},
                                                             {"port_limit", ""},
                                                             {"cell", ""},
                                                             {"cell_metadata", ""},
                                                             {"rto_min", ""},
                                                             {"arrivals", ""},
                                                             {"jitter_periods", "--jitter"},
                                                             {"assignment", ""},
                                                             {"size_sigma", ""},
                                                             {"size_spread", ""},
                                                             {"events_in_flight", "--in-flight"},
                                                             {"request_credits", ""},
                                                             {"duration", ""},
                                                             {"seed", ""}};

/// Applies the user's values unscaled. The switch preset is scaled before.
Result<void> apply(const NetLabOptions& options, Settings& settings) {
  if (options.buffer) {
    const auto given = RODEO_TRY(parse_buffer(*options.buffer));
    settings.buffer.shared_bytes = given.shared_bytes;
    settings.buffer.port_limit_bytes = given.port_limit_bytes;
    if (!given.shared_bytes) settings.buffer.dedicated_bytes_per_port = 0;
  }
  for (const auto& [name, text] : options.network.given()) {
    RODEO_TRY(network::find_scenario_setting(name)->assign(settings, text));
    if (name == "readout_link") settings.limit_readout_links = true;
  }
  if (settings.traffic.size_sigma != 0 && settings.traffic.size_spread == network::SizeSpread::fixed)
    settings.traffic.size_spread = network::SizeSpread::normal;
  return {};
}

/// The laboratory's settings, and the real network that they represent.
Result<LabReport> plan(const NetLabOptions& options) {
  LabReport report;
  report.settings = small_laboratory(options.defaults);
  network::SwitchBuffer whole_switch;
  if (options.switch_preset) {
    whole_switch = RODEO_TRY(network::switch_preset(*options.switch_preset));
    report.settings.buffer = whole_switch;
  }
  const double rate_scale = options.rate_scale.value_or(kRateScale);
  const double size_scale = options.size_scale.value_or(kSizeScale);
  if (options.preset.empty()) {
    if (options.rate_scale || options.size_scale)
      return std::unexpected(Error{"cli.bad_value", "scales need a preset",
                                   options.rate_scale ? "--rate-scale" : "--size-scale",
                                   "add --preset lab-2023, or give --node-link, --uplink and --event-size"});
  } else {
    const auto topology = RODEO_TRY(network::topology_preset(options.preset));
    if (!(rate_scale > 0) || !(size_scale > 0))
      return std::unexpected(
          Error{"network.zero", "a scale must be above 0", "--rate-scale, --size-scale", "give for example 0.001"});
    Settings real = options.defaults;
    real.topology = topology;
    real.buffer = whole_switch;
    report.settings = scaled(real, {.rate = rate_scale, .size = size_scale});
  }
  RODEO_TRY(apply(options, report.settings));
  if (options.preset.empty()) {
    const double rate = static_cast<double>(network::Topology{}.node_link_bps) /
                        static_cast<double>(std::max<std::uint64_t>(report.settings.topology.node_link_bps, 1));
    report.real = scaled(report.settings, {.rate = rate, .size = 1});
    report.real_name = "the same events at node links of 25 Gb/s";
  } else {
    report.real = scaled(report.settings, {.rate = 1 / rate_scale, .size = 1 / size_scale});
    report.real_name = options.preset;
  }
  report.real.topology.propagation_ns = network::Topology{}.propagation_ns;
  report.real.tcp.rto_min_ns = options.defaults.tcp.rto_min_ns;  // Linux uses this value there
  return report;
}

Result<std::unique_ptr<SwitchDriver>> driver_of(const NetLabOptions& options, const Settings& settings) {
  if (options.driver.empty()) return nullptr;
  if (options.driver != "linux") return network::laboratory::switch_program(options.driver, options.driver_options);
  LinuxSwitchSettings linux;
  linux.mtu_bytes = settings.traffic.mtu_bytes;
  for (const std::string& option : options.driver_options) {
    const std::size_t equals = std::min(option.find('='), option.size());
    const std::string key = option.substr(0, equals);
    const std::string value = option.substr(std::min(equals + 1, option.size()));
    std::vector<std::string> words;
    for (std::size_t at = 0; at < value.size();) {
      const std::size_t end = std::min(value.find(key == "ports" ? ',' : ' ', at), value.size());
      if (end > at) words.push_back(value.substr(at, end - at));
      at = end + 1;
    }
    if (key == "ports") {
      linux.ports = words;
    } else if (key == "reach") {
      linux.command = words;
    } else if (key == "port_rate") {
      const auto rate = RODEO_TRY(base::parse_bits_per_second(value));
      linux.port_bps = static_cast<std::uint64_t>(rate);
    } else {
      return std::unexpected(Error{"cli.bad_value", fmt::format("the linux driver has no option `{}`", key),
                                   "--driver-option", "the options are ports=eth1,eth2 reach='ssh tor1' port_rate=50Mbps"});
    }
  }
  if (linux.ports.empty())
    return std::unexpected(Error{"cli.bad_value", "the linux driver needs its ports", "--driver-option",
                                 "add --driver-option ports=eth1,eth2"});
  return linux_switch(std::move(linux));
}

Result<std::unique_ptr<Laboratory>> open_laboratory(const NetLabOptions& options, LabReport& report, SwitchDriver* driver,
                                                    const Stop& stop) {
  std::vector<std::string> agent{"net", "lab-agent"};
  if (options.hosts.empty()) {
    report.where = "namespaces";
    agent.insert(agent.begin(), options.agent.empty() ? std::string("/proc/self/exe") : options.agent);
    return Laboratory::in_namespaces(report.settings, agent, stop);
  }
  report.where = "hosts";
  agent.insert(agent.begin(), options.agent.empty() ? std::string("rodeo") : options.agent);
  const auto hosts = RODEO_TRY(read_hosts(options.hosts));
  report.settings.topology.readouts = static_cast<std::uint32_t>(std::ranges::count(hosts, true, &Host::is_readout));
  report.settings.topology.nodes = static_cast<std::uint32_t>(hosts.size()) - report.settings.topology.readouts;
  report.real.topology.readouts = report.settings.topology.readouts;
  report.real.topology.nodes = report.settings.topology.nodes;
  RODEO_TRY(check(report.settings));
  return Laboratory::on_hosts(report.settings, hosts, agent, driver, stop);
}

/// `farm`: Rodeo's farm; else a program.
Result<LineProcess> start_load(const std::string& load) {
  std::vector<std::string> command{load};
  if (load == "farm") {
    command = RODEO_TRY(python_words());
    command.emplace_back("rodeo.network.farm_load");
  }
  return LineProcess::start(fmt::format("the load {}", load), "network.load", command);
}

Result<void> add_metrics(const NetLabOptions& options, LabReport& report) {
  if (options.prometheus.empty()) return {};
  std::vector<Run> runs = report.point.runs;
  runs.insert(runs.end(), report.point.vetoed.begin(), report.point.vetoed.end());
  if (runs.empty()) return {};
  double first = runs.front().started_unix_seconds;
  double last = runs.front().ended_unix_seconds;
  for (const Run& run : runs) {
    first = std::min(first, run.started_unix_seconds);
    last = std::max(last, run.ended_unix_seconds);
  }
  for (const std::string& query : options.queries) {
    const auto series = RODEO_TRY(process::query_prometheus(options.prometheus, query, first, last));
    Json list = Json::array();
    for (const process::TimeSeries& one : series) list.push_back(process::json_of(one));
    report.metrics.push_back(Json::object({{"query", query}, {"series", std::move(list)}}));
  }
  return {};
}

Result<ExitCode> run_lab(const NetLabOptions& options) {
  if (options.clean) {
    fmt::print("ended {} processes of dead laboratories; namespaces, links and eBPF objects end with their laboratory\n",
               end_leftovers());
    return ExitCode::done;
  }
  auto report = RODEO_TRY(plan(options));
  if (auto good = check(report.settings); !good && options.hosts.empty()) return std::unexpected(good.error());
  if (!options.driver.empty() && options.hosts.empty())
    return std::unexpected(
        Error{"cli.bad_value", "the network in namespaces has its own switch", "--driver", "add --hosts FILE"});
  if (!options.load.empty() && !options.hosts.empty())
    return value_error("--load and --hosts exclude each other", "start your own load on the hosts");
  if (options.prometheus.empty() != options.queries.empty())
    return value_error("--prometheus and --query need each other",
                       "give both: --prometheus http://monitor:9090 --query 'sum(switch_drops_total)'");
  const process::StopSignals signals;
  const Stop stop = [&signals] { return signals.stop_requested(); };
  auto driver = RODEO_TRY(driver_of(options, report.settings));
  auto laboratory = RODEO_TRY(open_laboratory(options, report, driver.get(), stop));
  report.switch_description = "not driven: buffers as they are, drops unknown";
  if (laboratory->driver() != nullptr) report.switch_description = RODEO_TRY(laboratory->driver()->describe());
  const auto progress = [](const Run& run) { say("{}\n", run_line(run)); };
  if (options.load.empty()) {
    report.point = RODEO_TRY(laboratory->measure(report.settings, report.rule, stop, progress));
  } else {
    auto load = RODEO_TRY(start_load(options.load));
    report.load = options.load;
    report.point = RODEO_TRY(laboratory->measure(report.settings, load, report.rule, stop, progress));
  }
  RODEO_TRY(add_metrics(options, report));
  say("{}", scaling_text(report));
  if (!options.json.empty()) RODEO_TRY(write_json(options.json, json_of(report)));
  if (options.json != "-") table_of(report).print(options.format);
  if (report.point.interrupted) {
    say("interrupted: {} of {} runs had ended and count, {} were vetoed\n", report.point.runs.size(),
        report.settings.repeats, report.point.vetoed.size());
    return ExitCode::partial;
  }
  if (report.point.failed)
    return std::unexpected(Error{"network.vetoed",
                                 fmt::format("{} runs in a row were disturbed by the machine; {} of {} runs count",
                                             report.rule.most_in_a_row, report.point.runs.size(), report.settings.repeats),
                                 "",
                                 "free the machine, or measure a slower or smaller network (--rate-scale, --size-scale)"});
  return ExitCode::done;
}

}  // namespace

void add_net_lab(Command& net) {
  auto options = std::make_shared<NetLabOptions>();
  Command& lab = net.verb("lab", "Measures drops, latency and occupancy with real TCP, on this machine or on hosts");
  lab.example("rodeo net lab --buffer infinite", "8 readouts, 16 nodes at 50 Mb/s: the buffer in use (needs root)")
      .example("rodeo net lab --preset lab-2023 --buffer shared:2700kB --repeats 5",
               "the paper's laboratory, 1000 x slower, events a tenth of the size")
      .example("rodeo net lab --hosts hosts.txt --driver ./my_switch.py --buffer shared:10MB --rate 2kHz",
               "real hosts and a real switch");
  lab.option("--preset", options->preset, "Scale this network down: lab-2023 or hl-lhc; other options apply unscaled")
      .value_name("NAME");
  lab.option("--rate-scale", options->rate_scale, "Factor for the bit rates of the preset (0.001)");
  lab.option("--size-scale", options->size_scale, "Factor for the event and buffer sizes of the preset (0.1)");
  const Settings small = small_laboratory(options->defaults);
  for (const auto& [name, old] : kSettings) options->network.add(lab, *network::find_scenario_setting(name), small, old);
  lab.option("--buffer", options->buffer, "SIZE or shared:SIZE, port:SIZE, or infinite (the default)").value_name("BUFFER");
  lab.option("--switch", options->switch_preset,
             "Buffer of this switch: qfx5120 (scaled down with --preset); other options change it")
      .value_name("NAME");
  lab.option("--tcp", options->defaults.congestion_control, "Congestion control of the kernels: cubic, reno, bbr, ...")
      .value_name("NAME");
  lab.option("--repeats", options->defaults.repeats, "Number of runs without a veto");
  lab.option("--hosts", options->hosts, "List of real hosts instead of namespaces").value_name("FILE");
  lab.option("--agent", options->agent, "The rodeo command on the hosts").value_name("PATH");
  lab.option("--load", options->load,
             "Source of the load: a program (docs/explanation/network-laboratory.md), or `farm`: real readouts, supervisor "
             "and filter nodes")
      .value_name("PROGRAM");
  lab.option("--driver", options->driver,
             "Driver that sets the switch's buffer: linux, or a program (docs/explanation/network-laboratory.md)")
      .value_name("NAME");
  lab.option("--driver-option", options->driver_options, "KEY=VALUE for the driver; repeatable");
  lab.option("--prometheus", options->prometheus, "Time series of the network during the runs, from this server")
      .value_name("URL");
  lab.option("--query", options->queries, "Query for this server (PromQL); repeatable");
  lab.flag("--clean", options->clean, "Only end processes that dead laboratories left");
  lab.output(options->format);
  lab.json_file(options->json);
  lab.paragraph(
      "If this machine disturbs a run by more than the veto rule allows, the run is counted and repeated; three such runs "
      "in a row fail the point (exit 1).");
  lab.run([options]() { return run_lab(*options); });

  Command& agent =
      net.verb("lab-agent", "The process that `rodeo net lab` starts on each host; speaks JSON on stdin and stdout");
  agent.example("echo '{\"do\": \"hello\"}' | ssh ro1 rodeo net lab-agent", "answers with its version");
  agent.run([]() -> Result<ExitCode> { return run_agent() == 0 ? ExitCode::done : ExitCode::failed; });
}

}  // namespace rodeo::cli
