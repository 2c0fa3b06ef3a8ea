// `rodeo net sweep`, `plot`, `size` and `figures`: this file checks configurations; rodeo.network (Python) does the work.
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "base/lock_file.h"
#include "cli/net.h"
#include "cli/python.h"
#include "cli/system.h"

namespace rodeo::cli {
namespace {

namespace fs = std::filesystem;

const char* const kModule = "rodeo.network";

struct FileOptions {
  std::string file;
  std::string out;
  std::vector<std::string> overrides;
  std::string json;
  std::string at;
  OutputFormat format = OutputFormat::table;
};

/// Makes and locks the folder, calls `prepare`, and runs Python. Both write into the folder.
template <typename Prepare>
Result<ExitCode> run_in_folder(const fs::path& folder, const std::vector<std::string>& arguments, Prepare&& prepare) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) return std::unexpected(Error{"cli.output", "cannot make the folder: " + failed.message(), folder.string()});
  const auto lock = base::LockFile::acquire(folder / ".lock", base::LockedPart::whole());
  if (!lock) {
    if (lock.error() != EWOULDBLOCK)
      return std::unexpected(
          Error{"cli.output", fmt::format("cannot lock the folder: {}", std::strerror(lock.error())), folder.string()});
    return std::unexpected(Error{"network.folder_in_use", "another rodeo net works in this folder", folder.string(),
                                 "wait for it, or name another folder with --out"});
  }
  RODEO_TRY(prepare());
  auto ended = run_python(kModule, arguments);
  lock->remove();
  return ended;
}

/// Checks the file and passes it to Python as JSON. Prints every error of the file.
Result<ExitCode> run_job(const FileOptions& options, const std::string& verb, std::vector<std::string> further) {
  const auto job = load_network({.file = options.file, .overrides = options.overrides});
  if (!job) {
    for (const Error& error : job.error()) print_error(error);
    return ExitCode::invalid_configuration;
  }
  if (verb == "sweep" && job->find("sweep")->is_null()) {
    return std::unexpected(
        Error{"config.missing_key", "the file has no [network.sweep]", options.file, "rodeo explain network.sweep"});
  }
  const std::string file = (fs::path(options.out) / "job.json").string();
  std::vector<std::string> arguments{verb,       "--job",      file,     "--out",     options.out,
                                     "--source", options.file, "--json", options.json};
  arguments.insert(arguments.end(), further.begin(), further.end());
  return run_in_folder(options.out, arguments, [&] { return write_json(file, *job); });
}

void add_file_options(Command& verb, FileOptions& options, const char* file, const char* out) {
  options.out = out;
  verb.option("FILE", options.file, file).required();
  verb.option("--out", options.out, "Folder for results; its journal lets a killed run continue");
  verb.option("--set", options.overrides, "Override a key of the file, such as network.traffic.rate=6kHz")
      .value_name("KEY=VALUE");
}

}  // namespace

void add_net_sweep(Command& net) {
  auto options = std::make_shared<FileOptions>();
  Command& verb =
      net.verb("sweep", "Sweeps any settings: ranges, repeats, searches; resumes after a kill; writes Parquet and a fit");
  verb.example("rodeo net sweep sweep.toml", "every combination of the axes; results.parquet in ./sweep")
      .example("rodeo net sweep sweep.toml --set network.executor.kind=slurm", "the same, as jobs of a cluster");
  add_file_options(verb, *options, "Configuration with [network.sweep]", "sweep");
  verb.option("--at", options->at,
              "With axes event_size and rate: the point to evaluate the fitted surface (default: the network's own)")
      .value_name("SIZE,RATE");
  verb.output(options->format);
  verb.json_file(options->json);
  verb.run([options] {
    const char* const formats[] = {"table", "json", "csv"};
    return run_job(*options, "sweep", {"--output", formats[static_cast<int>(options->format)], "--at", options->at});
  });
}

void add_net_size(Command& net) {
  auto options = std::make_shared<FileOptions>();
  Command& verb = net.verb(
      "size", "Computes and proves the buffer without drops, its main cause, the rate that a rack's switch reaches");
  verb.example("rodeo net size network.toml", "your topology and traffic; report.html in ./size")
      .example("rodeo net size network.toml --set network.traffic.arrivals=poisson", "another assumption");
  add_file_options(verb, *options, "Configuration with [network.topology] and [network.traffic]", "size");
  verb.json_file(options->json);
  verb.paragraph("Exit status 7: the proof failed. The computed buffer dropped packets, or nine tenths of it dropped none.");
  verb.run([options] { return run_job(*options, "size", {}); });
}

void add_net_plot(Command& net) {
  struct Options {
    std::string results;
    std::string x;
    std::string y;
    std::vector<std::string> by;
    std::vector<std::string> beside;
    std::string out;
  };
  auto options = std::make_shared<Options>();
  Command& verb = net.verb("plot", "Plots the results of a sweep");
  verb.example("rodeo net plot sweep", "the searched quantity against the first axis; sweep/results.png")
      .example("rodeo net plot sweep --x rate --y max_buffer_bytes --by arrivals --out buffer.svg",
               "other columns, other format")
      .example("rodeo net plot simulation --beside laboratory --beside farm",
               "sweeps with several methods in one figure, and as a table");
  verb.option("RESULTS", options->results, "Folder of a sweep, or a Parquet file").required();
  verb.option("--x", options->x, "Column of the horizontal axis");
  verb.option("--y", options->y, "Column of the vertical axis");
  verb.option("--by", options->by, "One line for each value of this column; repeatable");
  verb.option("--beside", options->beside, "Results of another sweep of the same axes, in the same figure; repeatable");
  verb.option("--out", options->out, "Figure file, ending in .png, .svg or .pdf");
  verb.run([options] {
    std::vector<std::string> arguments{"plot", options->results, "--x",   options->x,
                                       "--y",  options->y,       "--out", options->out};
    for (const std::string& column : options->by) arguments.insert(arguments.end(), {"--by", column});
    for (const std::string& other : options->beside) arguments.insert(arguments.end(), {"--beside", other});
    return run_python(kModule, arguments);
  });
}

void add_net_figures(Command& net) {
  struct Options {
    std::string methods = "formula,simulation,laboratory";
    std::string out = "network-figures";
    bool quick = false;
    unsigned workers = 0;
    std::string json;
  };
  auto options = std::make_shared<Options>();
  Command& verb = net.verb(
      "figures", "Makes figures 3 to 6 of the network paper with three methods, and a table with the paper's values");
  verb.example("rodeo net figures --quick", "a few points of each figure")
      .example("rodeo net figures --methods formula,simulation", "without the laboratory, which needs root");
  verb.option("--methods", options->methods, "Methods: formula, simulation, laboratory");
  verb.flag("--quick", options->quick, "Few points, short runs");
  verb.option("--workers", options->workers, "Processes; 0: one for each CPU");
  verb.option("--out", options->out, "Folder for figures, table.md, results and the journal");
  verb.json_file(options->json);
  verb.run([options]() -> Result<ExitCode> {
    std::vector<std::string> arguments{
        "figures", "--methods",  options->methods, "--out", options->out, "--workers", std::to_string(options->workers),
        "--json",  options->json};
    if (options->quick) arguments.emplace_back("--quick");
    return run_in_folder(options->out, arguments, [] { return Result<void>(); });
  });
}

}  // namespace rodeo::cli
