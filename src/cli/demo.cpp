// `rodeo demo`: the whole chain on this machine - emulated links, builder, verifying processor, sampler, event files - and then
// the files read back byte by byte.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/mapped_file.h"
#include "base/units.h"
#include "cli/readout_action.h"
#include "cli/verbs.h"
#include "control/demo_directory.h"
#include "control/examples.h"
#include "control/readout_settings.h"
#include "formats/file_verify.h"

namespace rodeo::cli {
namespace {

struct DemoOptions {
  double rate_hz = 100e3;
  std::uint64_t links = 192;
  double seconds = 10;
  bool keep = false;
  std::vector<std::string> settings;
  std::string json_file;
};

// What a demo leaves on the disk, at most. A chunk takes its header and padded bytes; an event a few hundred bytes more.
constexpr double kMostBytes = 0.9e9;
constexpr double kChunkBytes = 48;
constexpr double kEventBytes = 300;

/// The share of the events that fits into what the demo may leave, and into a quarter of what the disk has free.
double written_fraction(const DemoOptions& options, std::uintmax_t free_bytes) {
  const double event_bytes = static_cast<double>(options.links) * kChunkBytes + kEventBytes;
  const double all = event_bytes * options.rate_hz * options.seconds;
  const double most = std::min(kMostBytes, static_cast<double>(free_bytes) / 4);
  return all > 0 ? std::clamp(most / all, 0.0, 1.0) : 1.0;
}

std::vector<std::string> overrides_of(const DemoOptions& options, const control::DemoDirectory& directory) {
  std::vector<std::string> out = {
      fmt::format("readout.input.rate={}", options.rate_hz),
      fmt::format("readout.input.links={}", options.links),
      fmt::format("readout.consumer[2].directory={}", directory.path().string()),
      fmt::format("readout.consumer[2].fraction={:.6f}", written_fraction(options, directory.free_bytes())),
      fmt::format("readout.consumer[2].max_bytes={:.0f}", kMostBytes),
  };
  out.insert(out.end(), options.settings.begin(), options.settings.end());
  return out;
}

/// Reads the files back and proves every byte; says what is wrong.
Result<bool> verify_files(const readout::RunReport& report, Json& json) {
  std::fprintf(stderr, "reading back what was written (%sB) ...\n",
               base::format_count(static_cast<double>(report.bytes_written)).c_str());
  std::uint64_t events = 0;
  std::uint64_t chunks = 0;
  std::uint64_t bytes = 0;
  std::uint64_t findings = 0;
  for (const std::string& file : report.files) {
    const auto mapped = base::MappedFile::open(file);
    if (!mapped) return std::unexpected(mapped.error());
    const formats::EventFileReport found = formats::verify_event_file(mapped->bytes());
    for (const formats::Finding& finding : found.findings.listed()) {
      std::fprintf(stderr, "%s: at byte %llu: %s\n", file.c_str(), static_cast<unsigned long long>(finding.offset),
                   finding.what.c_str());
    }
    // What no chunk of the file proves, nobody has shown to be right.
    if (found.totals.proven_chunks + found.totals.flagged_chunks != found.totals.chunks) {
      std::fprintf(
          stderr, "%s: %llu chunks do not prove themselves\n", file.c_str(),
          static_cast<unsigned long long>(found.totals.chunks - found.totals.proven_chunks - found.totals.flagged_chunks));
      ++findings;
    }
    findings += found.findings.total();
    events += found.totals.events;
    chunks += found.totals.proven_chunks;
    bytes += found.bytes;
  }
  json["files_verified"] = Json::object(
      {{"files", report.files.size()}, {"events", events}, {"chunks", chunks}, {"bytes", bytes}, {"mismatches", findings}});
  std::fprintf(stderr, "%s\n",
               fmt::format("files read back: {} files, {} events, {} chunks, {}B: {}", report.files.size(), events, chunks,
                           base::format_count(static_cast<double>(bytes)),
                           events == 0     ? "nothing was written that could be verified"
                           : findings == 0 ? "every byte verified"
                                           : fmt::format("{} FINDINGS", findings))
                   .c_str());
  return findings == 0;
}

Result<ExitCode> run(const DemoOptions& options) {
  constexpr std::uint64_t kMostLinks = 65534;
  if (options.links == 0 || options.links > kMostLinks) {
    return std::unexpected(Error{options.links == 0 ? "readout.no_links" : "readout.too_many_links",
                                 fmt::format("--links {}: expected 1 to {}", options.links, kMostLinks), "",
                                 "rodeo demo --links 24"});
  }
  const control::DemoDirectory directory(options.keep);
  auto plan =
      control::load_readout_text(control::example_text("demo.toml"),
                                 {.file = "demo.toml", .overrides = overrides_of(options, directory), .environment = false});
  if (!plan) return report_errors(plan.error());
  plan->another_name_will_do = true;
  std::fprintf(stderr, "%s\n",
               fmt::format("{} emulated links at {} for {:g} s: generator -> GBT builder -> verify -> sampler -> file "
                           "writer\nfiles in {} ({})",
                           options.links, base::format_quantity(options.rate_hz, "Hz"), options.seconds,
                           directory.path().string(), options.keep ? "kept" : "removed by the next demo; --keep keeps them")
                   .c_str());
  return run_to_report(*plan, {.seconds = options.seconds}, options.json_file, &verify_files);
}

}  // namespace

void add_demo(Command& root) {
  auto options = std::make_shared<DemoOptions>();
  Command& demo = root.verb("demo", "The whole chain on this machine, verified end to end");
  demo.example("rodeo demo", "192 links at 100 kHz for 10 s")
      .example("rodeo demo --rate 20kHz --seconds 60", "slower and longer")
      .example("rodeo demo --json -", "the report for programs");
  demo.rate("--rate", options->rate_hz, "Triggers offered per second");
  demo.option("--links", options->links, "Number of emulated links");
  demo.option("--seconds", options->seconds, "How long").value_name("S");
  demo.flag("--keep", options->keep, "Keep the files when the next demo runs");
  demo.option("--set", options->settings, "Set a key of examples/demo.toml: KEY=VALUE").value_name("KEY=VALUE");
  demo.json_file(options->json_file);
  demo.paragraph(
      "It is examples/demo.toml with these options set. Every chunk of every fragment is verified in passing; a share of "
      "the fragments, at most about "
      "1 GB, is written to event files, which are read back and verified at the end. A machine that cannot keep up shows "
      "dead time, never loss. "
      "Exit status 0: all is well; 1: the run failed; 7: something did not verify.");
  demo.run([options] { return run(*options); });
}

}  // namespace rodeo::cli
