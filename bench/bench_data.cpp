// `rodeo bench data`: columns of chunks in Python against a C++ loop over the same reader, the same file, in turn.
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include <fmt/core.h>
#include <unistd.h>

#include "base/sentence.h"
#include "bench/bench.h"
#include "bench/readout/build_bench.h"
#include "bench/storage/data_bench.h"
#include "cli/python.h"

namespace rodeo::bench {

using namespace cli;

namespace {

namespace fs = std::filesystem;

/// One way to read the file, in a C++ loop and in Python.
struct Way {
  const char* name;
  bool checksums;
  DataWork work;
  const char* help;
};
constexpr std::array<Way, 4> kWays{{
    {"columns", false, DataWork::columns, "link, status and size of every chunk"},
    {"columns_and_sums", false, DataWork::columns, "the same, with the sums in NumPy"},
    {"checked", true, DataWork::columns, "the columns, with Adler-32 of every event"},
    {"data", false, DataWork::bytes, "with every byte: summed in the loop, copied in Python"},
}};

struct DataBenchResult {
  std::array<std::vector<double>, kWays.size()> loop;    // CPU seconds
  std::array<std::vector<double>, kWays.size()> python;  // CPU seconds
  std::vector<double> event_loop;
  std::uint64_t chunks = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t mismatches = 0;
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// The median of the ratios of neighbouring runs.
double ratio(const std::vector<double>& above, const std::vector<double>& below) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < above.size(); ++i) ratios.push_back(above[i] / below[i]);
  return median(std::move(ratios));
}

Result<Json> in_python(const fs::path& file, const fs::path& directory) {
  const fs::path result = directory / "result.json";
  const auto ended = RODEO_TRY(run_python("rodeo.data_bench", {file.string(), result.string()}));
  if (ended != ExitCode::done)
    return std::unexpected(Error{"cli.python", "the Python side of the bench failed", "rodeo.data_bench",
                                 "its message above gives the reason"});
  std::stringstream text;
  text << std::ifstream(result).rdbuf();
  return Json::parse(text.str());
}

std::uint64_t differences(const Json& python, const DataSums& sums) {
  const auto differs = [&](const char* name, std::uint64_t expected) {
    const Json* const found = python.find(name);
    return found == nullptr || static_cast<std::uint64_t>(found->number()) != expected;
  };
  return static_cast<std::uint64_t>(differs("events", sums.events) + differs("chunks", sums.chunks) +
                                    differs("links", sums.links) + differs("statuses", sums.statuses) +
                                    differs("sizes", sums.sizes) + differs("bytes", sums.bytes));
}

Result<DataBenchResult> measure(const DataFileSettings& settings, std::uint32_t rounds, const fs::path& directory) {
  const fs::path file = directory / "bench._0001.data";
  RODEO_TRY(make_data_file(file.string(), settings));
  DataBenchResult result;
  result.file_bytes = fs::file_size(file);
  for (std::uint32_t round = 0; round < rounds; ++round) {
    const Json python = RODEO_TRY(in_python(file, directory));
    for (std::size_t way = 0; way < kWays.size(); ++way) {
      const Way& how = kWays[way];
      RODEO_TRY(read_in_a_loop(file.string(), how.checksums, how.work));  // read once before the measurement, as in Python
      const DataPass pass = RODEO_TRY(read_in_a_loop(file.string(), how.checksums, how.work));
      const Json& there = *python.find(how.name);
      result.mismatches += differences(there, pass.sums);
      result.loop[way].push_back(pass.cpu_seconds);
      result.python[way].push_back(there.find("cpu_seconds")->number());
      result.chunks = pass.sums.chunks;
    }
    const Json& events = *python.find("event_loop");
    result.mismatches += static_cast<std::uint64_t>(events.find("events")->number()) != settings.events ||
                                 static_cast<std::uint64_t>(events.find("chunks")->number()) != result.chunks
                             ? 1
                             : 0;
    result.event_loop.push_back(events.find("cpu_seconds")->number());
  }
  // Reads the file once without timing, to check the order of the bytes.
  const DataPass all = RODEO_TRY(read_in_a_loop(file.string(), true, DataWork::crc));
  const Json python = RODEO_TRY(in_python(file, directory));
  if (static_cast<std::uint64_t>(python.find("data")->find("crc")->number()) != all.sums.crc) ++result.mismatches;
  if (result.chunks != std::uint64_t{settings.events} * settings.links) ++result.mismatches;
  return result;
}

Json json_of(const DataFileSettings& settings, std::uint32_t rounds, const DataBenchResult& result) {
  const auto chunks = static_cast<double>(result.chunks);
  Json out = Json::object({{"events", settings.events},
                           {"links", settings.links},
                           {"chunk_bytes", settings.chunk_bytes},
                           {"rounds", rounds},
                           {"file_bytes", result.file_bytes}});
  for (std::size_t way = 0; way < kWays.size(); ++way) {
    out[kWays[way].name] = Json::object({{"loop_chunks_per_core_second", chunks / median(result.loop[way])},
                                         {"python_chunks_per_core_second", chunks / median(result.python[way])},
                                         {"ratio", ratio(result.loop[way], result.python[way])}});
  }
  out["event_loop_events_per_core_second"] = settings.events / median(result.event_loop);
  out["event_loop_ratio"] = ratio(result.loop[0], result.event_loop);
  out["verified_chunks"] = result.chunks;
  out["mismatches"] = result.mismatches;
  return out;
}

void print(const DataFileSettings& settings, const DataBenchResult& result) {
  const auto chunks = static_cast<double>(result.chunks);
  fmt::print("{} of {} x {} B, {} MB; per second of CPU\n", base::counted(settings.events, "event"),
             base::counted(settings.links, "link"), settings.chunk_bytes, result.file_bytes / 1'000'000);
  for (std::size_t way = 0; way < kWays.size(); ++way) {
    fmt::print("  {:<17}{:7.1f} M chunks/s in Python {:7.1f} M in a C++ loop   ratio {:.2f}   {}\n", kWays[way].name,
               chunks / median(result.python[way]) * 1e-6, chunks / median(result.loop[way]) * 1e-6,
               ratio(result.loop[way], result.python[way]), kWays[way].help);
  }
  fmt::print("  event loop       {:7.1f} k events/s with their chunks as arrays; ratio {:.2f}\n",
             settings.events / median(result.event_loop) * 1e-3, ratio(result.loop[0], result.event_loop));
  fmt::print("  verified         {}; {} different\n", base::counted(result.chunks, "chunk"), result.mismatches);
}

}  // namespace

void add_bench_data(Command& bench) {
  struct Options {
    DataFileSettings settings;
    std::uint32_t rounds = 5;
    std::string json;
  };
  auto options = std::make_shared<Options>();
  Command& data = bench.verb("data", "Event files in Python: columns of chunks against a C++ loop over the same reader");
  data.example("rodeo bench data", "192 links x 40 B, five rounds")
      .example("rodeo bench data --chunk-bytes 1000 --links 24", "fewer and larger chunks");
  data.option("--events", options->settings.events, "Events in the file");
  data.option("--links", options->settings.links, "Links");
  data.option("--chunk-bytes", options->settings.chunk_bytes, "Size of a chunk [B]");
  data.option("--rounds", options->rounds, "Rounds; in each, C++ and Python read in turn");
  data.json_file(options->json);
  data.run([options]() -> Result<ExitCode> {
    const DataFileSettings& given = options->settings;
    RODEO_TRY(check_numbers({{"--events", static_cast<double>(given.events), 1, 1e7},
                             {"--links", static_cast<double>(given.links), 1, 2048},
                             {"--chunk-bytes", static_cast<double>(given.chunk_bytes), 8, kMostBenchChunk},
                             {"--rounds", static_cast<double>(options->rounds), 1, 1000}}));
    const fs::path directory = fs::temp_directory_path() / fmt::format("rodeo-bench-data-{}", ::getpid());
    fs::create_directories(directory);
    const auto result = measure(given, options->rounds, directory);
    std::error_code ignored;
    fs::remove_all(directory, ignored);
    if (!result) return std::unexpected(result.error());
    if (options->json != "-") print(given, *result);
    if (!options->json.empty()) RODEO_TRY(write_json(options->json, json_of(given, options->rounds, *result)));
    if (result->mismatches == 0) return ExitCode::done;
    return std::unexpected(not_proven(result->mismatches, 0, 0));
  });
}

}  // namespace rodeo::bench
