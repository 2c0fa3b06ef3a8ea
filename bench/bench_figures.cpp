// `rodeo bench figures`: performance figures of papers and slides, measured here and drawn together with the published
// values.
#include <sys/utsname.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include <fmt/core.h>

#include "base/cpu.h"
#include "base/log.h"
#include "bench/bench.h"
#include "bench/figure_chain.h"
#include "bench/figure_points.h"
#include "cli/program.h"
#include "cli/python.h"
#include "cli/revision.h"
#include "readout/defaults.h"

namespace rodeo::bench {

using namespace cli;

namespace {

namespace fs = std::filesystem;
using settings::Json;

struct FiguresOptions {
  FigureSettings settings;
  std::string directory = "figures";
  std::vector<std::string> only;
};

double load_average() {
  double load[1] = {};
  return getloadavg(load, 1) == 1 ? load[0] : 0;
}

Json machine() {
  std::string model = "unknown CPU";
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.starts_with("model name") && line.find(": ") != std::string::npos) {
      model = line.substr(line.find(": ") + 2);
      break;
    }
  }
  utsname kernel{};
  uname(&kernel);
  return Json::object({{"cpu", model},
                       {"cores", std::thread::hardware_concurrency()},
                       {"cpu_level", base::cpu_level_name(base::cpu_level())},
                       {"kernel", std::string(kernel.release)},
                       {"rodeo_revision", RODEO_REVISION},
                       {"load_average_at_start", load_average()}});
}

Result<fs::path> script() {
  if (const auto package = python_package()) return *package / "figures.py";
  return std::unexpected(Error{"cli.figures", "the drawing script is missing",
                               (command_directory() / "../python/rodeo/figures.py").lexically_normal().string(),
                               "run the command from the build folder of a clone, or install it whole"});
}

/// Parses "slice_memory/ours/chunk_bytes:40/threads:2": the ablation, the variant and its arguments.
Json ablation_of(const Json& benchmark) {
  std::istringstream name(benchmark.find("run_name")->string());
  Json out = Json::object();
  std::string part;
  for (const char* key : {"experiment", "variant"}) {
    std::getline(name, part, '/');
    out[key] = part;
  }
  while (std::getline(name, part, '/')) {
    if (const auto colon = part.find(':'); colon != std::string::npos)
      out[part.substr(0, colon)] = std::strtoll(part.c_str() + colon + 1, nullptr, 10);
  }
  out["unit"] = benchmark.find("label") == nullptr ? Json() : *benchmark.find("label");
  out["per_core_second"] = *benchmark.find("items_per_second");
  return out;
}

/// Runs the benchmarks of the ablations, which are beside the command, and reads the medians from their output.
Json measure_ablations(const FigureSettings& settings, const fs::path& directory) {
  const auto binary = find_beside({"bench/bench_ablations"});
  if (!binary) {
    throw SetupError({"cli.figures", "the ablations' benchmarks are not built",
                      (command_directory() / "bench/bench_ablations").string(),
                      "build the target bench_ablations (RODEO_BENCH=ON)"});
  }
  const fs::path raw = directory / "ablations.json";
  base::log_info("ablations: {}", binary->string());
  const auto ended = run_program(
      {binary->string(), "--benchmark_out=" + raw.string(), "--benchmark_out_format=json",
       fmt::format("--benchmark_min_time={:.4f}", settings.seconds / 10), "--benchmark_repetitions=5",
       "--benchmark_enable_random_interleaving=true",
       settings.sparse ? "--benchmark_filter=^(ring|next|assembly|slice_memory/.*:(40|240)/)" : "--benchmark_filter=."},
      true);
  if (!ended) throw SetupError(ended.error());
  if (*ended != 0)
    throw SetupError(
        {"cli.figures", fmt::format("{} ended with {}", binary->string(), *ended), "", "run it by hand to see the reason"});
  std::stringstream text;
  text << std::ifstream(raw).rdbuf();
  const auto parsed = Json::parse(text.str());
  if (!parsed) throw SetupError(parsed.error().within(raw.string()));
  Json out = Json::object({{"title", "Ablations"},
                           {"setup", "medians of 5 interleaved runs, per second of CPU time"},
                           {"points", Json::array()}});
  for (const Json& benchmark :
       parsed->find("benchmarks") == nullptr ? Json::Array{} : parsed->find("benchmarks")->elements()) {
    if (const Json* failed = benchmark.find("error_occurred"); failed != nullptr && failed->boolean()) {
      throw SetupError({"readout.bench_mismatch",
                        fmt::format("{}: {}", benchmark.find("name")->string(), benchmark.find("error_message")->string())});
    }
    const Json* aggregate = benchmark.find("aggregate_name");
    if (aggregate != nullptr && aggregate->string() == "median") out["points"].push_back(ablation_of(benchmark));
  }
  return out;
}

Result<ExitCode> draw(const fs::path& data) {
  const auto drawing = RODEO_TRY(script());
  const auto ended = RODEO_TRY(run_program({python_interpreter(), "-B", drawing.string(), data.string()}));
  if (ended != 0) {
    return std::unexpected(Error{"cli.figures", fmt::format("{} ended with {}", drawing.string(), ended), "",
                                 fmt::format("the measurements are in {}; draw them again with {} {} {}", data.string(),
                                             python_interpreter(), drawing.string(), data.string())});
  }
  return ExitCode::done;
}

using Measure = std::function<Json()>;
using Measures = std::vector<std::pair<std::string, Measure>>;

Result<ExitCode> make_figures(const FiguresOptions& options, const Measures& all) {
  // Check first that the figures can be drawn: the measurement takes minutes.
  const auto drawing = RODEO_TRY(script());
  const auto able = RODEO_TRY(run_program({python_interpreter(), "-B", drawing.string(), "--check"}));
  if (able != 0) {
    return std::unexpected(Error{"cli.figures", fmt::format("{} cannot draw: it lacks matplotlib", python_interpreter()), "",
                                 "tools/setup in a clone makes .venv, sudo rodeo-python-packages serves a package; or name "
                                 "an interpreter that has it: "
                                 "RODEO_PYTHON=/path/to/python3"});
  }
  const fs::path directory = options.directory;
  std::error_code failed;
  fs::create_directories(directory, failed);
  if (failed) return std::unexpected(Error{"cli.output", "cannot make the folder: " + failed.message(), directory.string()});
  for (const std::string& name : options.only) {
    if (std::none_of(all.begin(), all.end(), [&](const auto& one) { return one.first == name; })) {
      std::string names;
      for (const auto& one : all) names.append(names.empty() ? "" : ", ").append(one.first);
      return std::unexpected(Error{"cli.bad_value", fmt::format("{} is not one of {}", name, names), "--only"});
    }
  }
  Json out = Json::object({{"machine", machine()}, {"seconds_per_point", options.settings.seconds}});
  ExitCode worst = ExitCode::done;
  for (const auto& [name, measure] : all) {
    if (!options.only.empty() && std::find(options.only.begin(), options.only.end(), name) == options.only.end()) continue;
    try {
      out[name] = measure();
    } catch (const SetupError& refused) {
      print_error(refused.error().within(name));
      const bool wrong = exit_code_of(refused.error().code) == ExitCode::not_verified;
      if (worst != ExitCode::not_verified) worst = wrong ? ExitCode::not_verified : ExitCode::partial;
    }
  }
  out["machine"]["load_average_at_end"] = load_average();
  const fs::path data = directory / "figures.json";
  RODEO_TRY(write_json(data.string(), out));
  const auto drawn = draw(data);
  if (!drawn) return drawn;
  return worst;
}

}  // namespace

void add_bench_figures(Command& bench) {
  auto options = std::make_shared<FiguresOptions>();
  Command& figures =
      bench.verb("figures", "The papers' performance figures, measured here and drawn beside the published values");
  Command& build = figures.verb("build", "Software ROD paper: Figures 4, 5 and 6, Table II, and the slides' experiments");
  build.example("rodeo bench figures build", "takes three minutes on a quiet machine; pictures in ./figures")
      .example("rodeo bench figures build --only figure4 --out /tmp/four", "one of them");
  build.option("--seconds", options->settings.seconds, "Length of each point [s]");
  build.option("--repeat", options->settings.repeats, "Interleaved repeats of Table II");
  build.option("--out", options->directory, "Folder for figures.json, the pictures (PNG and SVG) and table2.txt");
  build.option("--only", options->only,
               "figure4, figure5, figure6a, figure6b, table2 or ablations; may be given several times");
  build.flag("--sparse", options->settings.sparse, "Only the ends of each sweep: a quick look");
  build.paragraph(
      "Published values come from the text of the paper and the slides, never from a picture. Where the machine "
      "has fewer "
      "cores than the paper's 32, points with more threads than cores share them, and the pictures say so.");
  build.run([options]() -> Result<ExitCode> {
    base::ComponentRegistry registry;
    RODEO_TRY(registry.add_library("built in", readout::register_defaults));
    const FigureSettings& settings = options->settings;
    return make_figures(*options, {{"figure4", [&] { return measure_figure4(settings, registry); }},
                                   {"figure5", [&] { return measure_figure5(settings, registry); }},
                                   {"figure6a", [&] { return measure_figure6a(settings, registry); }},
                                   {"figure6b", [&] { return measure_figure6b(settings, registry); }},
                                   {"table2", [&] { return measure_table2(settings, registry); }},
                                   {"ablations", [&] { return measure_ablations(settings, options->directory); }}});
  });

  auto chained = std::make_shared<FiguresOptions>();
  Command& chain = figures.verb("chain", "Software ROD paper: Figures 4 and 5 over the network, generator to builder");
  chain.example("rodeo bench figures chain", "a minute on a quiet machine; pictures in ./figures");
  chain.option("--seconds", chained->settings.seconds, "Length of each point [s]");
  chain.option("--out", chained->directory,
               "Folder for figures.json, the pictures (PNG and SVG), and the processes' settings and output");
  chain.option("--only", chained->only, "chain4 or chain5; may be given twice");
  chain.flag("--sparse", chained->settings.sparse, "Only the ends of each sweep: a quick look");
  chain.paragraph(
      "Generator and router are one process, the readout is another, all on this machine. The lines are the paper's eq. (5) "
      "for its network, and the same "
      "equation for what bare pages of the transport carry here, with the bytes that a chunk takes on the wire.");
  chain.run([chained] {
    const fs::path directory = chained->directory;
    return make_figures(*chained, {{"chain4", [&] { return measure_chain4(chained->settings, directory / "chain4"); }},
                                   {"chain5", [&] { return measure_chain5(chained->settings, directory / "chain5"); }}});
  });

  auto designs = std::make_shared<FiguresOptions>();
  Command& statistics = figures.verb(
      "statistics", "FelixCore's slides: the cost of the designs of its statistics, beside the published values");
  statistics.example("rodeo bench figures statistics", "a minute; 1, 2 and 4 threads");
  statistics.option("--seconds", designs->settings.seconds, "Length of each point [s]");
  statistics.option("--out", designs->directory, "Folder for figures.json and the picture (PNG and SVG)");
  statistics.flag("--sparse", designs->settings.sparse, "Only one thread: a quick look");
  statistics.run(
      [designs] { return make_figures(*designs, {{"statistics", [&] { return measure_statistics(designs->settings); }}}); });
}

}  // namespace rodeo::bench
