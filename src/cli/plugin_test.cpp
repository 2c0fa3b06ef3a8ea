// `rodeo plugin test`: tries a plug-in on a recording.
#include <fmt/format.h>

#include "cli/data_file.h"
#include "cli/plugin_trial.h"
#include "cli/verbs.h"

namespace rodeo::cli {

namespace {

struct PluginTestOptions {
  TrialSettings settings;
  std::string recording;
  OutputFormat format = OutputFormat::table;
};

Properties recording_properties(const PluginTestOptions& options, const formats::RecordingInfo& info) {
  std::uint32_t smallest = ~0U;
  std::uint32_t largest = 0;
  std::uint64_t flagged = 0;
  for (const auto& elink : info.elinks) {
    flagged += elink.flagged_chunks;
    if (elink.chunks == 0) continue;
    smallest = std::min(smallest, elink.smallest_chunk_bytes);
    largest = std::max(largest, elink.largest_chunk_bytes);
  }
  Properties p;
  p.add("recording", "recording", options.recording);
  p.add("links", "links", std::uint64_t{info.elinks.size()});
  p.add("chunks", "chunks", info.counter(formats::BlockCounter::chunks));
  p.add("size", "chunk_bytes",
        Cell(info.counter(formats::BlockCounter::chunk_bytes), size_text(info.counter(formats::BlockCounter::chunk_bytes))));
  p.add("smallest chunk [B]", "smallest_chunk_bytes", std::uint64_t{smallest});
  p.add("largest chunk [B]", "largest_chunk_bytes", std::uint64_t{largest});
  p.add("flagged by the card", "flagged_chunks", flagged);
  p.add("blocks are", "sound",
        info.sound() ? Cell(true, "sound", Style::good) : Cell(false, "damaged: rodeo data verify", Style::bad));
  return p;
}

Table components_table(const Trial& trial) {
  Table table({{"kind", "kind"},
               {"name", "name"},
               {"accepted", "accepted"},
               {"refused", "refused"},
               {"threw", "thrown"},
               {"L1 ids from", "smallest_l1id"},
               {"to", "largest_l1id"},
               {"gaps", "gaps"},
               {"repeated", "repeated"},
               {"BCIDs from", "smallest_bcid"},
               {"to", "largest_bcid"},
               {"CPU [ns/chunk]", "ns_per_chunk"}});
  for (const ComponentTrial& one : trial.components) {
    const bool ids = one.kind == base::ComponentKind::extractor && one.accepted > 0;
    const bool bcids = ids && one.fields.has_bcid;
    const auto id = [](std::uint32_t l1id) { return Cell(std::uint64_t{l1id}, fmt::format("{:#x}", l1id)); };
    const auto bad_if = [](std::uint64_t count) { return Cell(count, {}, count == 0 ? Style::plain : Style::bad); };
    const Cell none(Json(), "-", Style::faint);
    table.add_row({base::kind_name(one.kind), one.name, one.accepted, bad_if(one.refused), bad_if(one.thrown),
                   ids ? id(one.smallest_l1id) : none, ids ? id(one.largest_l1id) : none, ids ? bad_if(one.gaps) : none,
                   ids ? bad_if(one.repeated) : none, bcids ? Cell(std::uint64_t{one.smallest_bcid}) : none,
                   bcids ? Cell(std::uint64_t{one.largest_bcid}) : none,
                   Cell(one.ns_per_chunk, fmt::format("{:.1f}", one.ns_per_chunk))});
  }
  return table;
}

Table samples_table(const Trial& trial) {
  Table table(
      {{"first chunks: E-link", "elink"}, {"size [B]", "bytes"}, {"L1 id", "l1id"}, {"BCID", "bcid"}, {"check", "good"}});
  for (const ChunkSample& one : trial.samples) {
    const Cell none(Json(), "-", Style::faint);
    const Cell malformed(Json(), "malformed", Style::bad);
    const auto& trigger = one.trigger;
    const Cell l1id(std::uint64_t{trigger.l1id}, fmt::format("{:#x}", trigger.l1id));
    table.add_row({std::uint64_t{one.elink}, std::uint64_t{one.bytes},
                   !one.has_trigger ? none
                   : trigger.valid  ? l1id
                                    : malformed,
                   one.has_trigger && trigger.valid ? Cell(std::uint64_t{trigger.bcid}) : none,
                   !one.checked ? none
                   : one.good   ? Cell(true, "good", Style::good)
                                : Cell(false, "corrupt", Style::bad)});
  }
  return table;
}

Result<ExitCode> test(PluginTestOptions& options) {
  options.settings.recording = options.recording;
  readout::Library library;
  const auto trial = RODEO_TRY(try_plugin(library, options.settings));
  const Properties recording = recording_properties(options, trial.recording);
  const Table components = components_table(trial);
  const Table samples = samples_table(trial);
  if (options.format == OutputFormat::json) {
    const Json all =
        Json::object({{"recording", recording.json()}, {"components", components.json()}, {"first_chunks", samples.json()}});
    print(all.dump() + "\n");
  } else if (options.format == OutputFormat::csv) {
    components.print(options.format);
  } else {
    recording.print(options.format);
    print("\n");
    components.print(options.format);
    print("\n");
    samples.print(options.format);
  }
  for (const ComponentTrial& one : trial.components) {
    if (one.thrown == 0) continue;
    say("{} {} threw: {}\n", base::kind_name(one.kind), one.name, one.first_thrown);
  }
  return trial.all_accepted() ? ExitCode::done : ExitCode::not_verified;
}

}  // namespace

void add_plugin_test(Command& plugin) {
  auto options = std::make_shared<PluginTestOptions>();
  Command& verb = plugin.verb("test", "Tries a plug-in on a recording: what it reads and refuses, and its CPU time");
  verb.example("rodeo plugin test build/libmy_detector.so my_detector.felix", "every extractor and checker of the library")
      .example("rodeo plugin test rodeo run.felix -o json", "a built-in extractor or checker, for programs");
  verb.option("LIB", options->settings.plugin, "Plug-in by name or path, or the name of a built-in extractor or checker")
      .required();
  verb.option("RECORDING", options->recording, "Recording of FELIX blocks").required();
  verb.option("--set", options->settings.set, "Key of the extractor or the checker").value_name("KEY=VALUE");
  verb.duration("--cost-time", options->settings.cost_time, "CPU time to measure the cost of each");
  verb.output(options->format);
  verb.paragraph(
      "Exit status 7 if an extractor or checker refused any chunk. A gap is a chunk whose L1 id does not follow the "
      "previous one on its link. A recording with losses has a few gaps; an extractor that reads the wrong bytes finds gaps "
      "almost everywhere.");
  verb.run([options] { return test(*options); });
}

}  // namespace rodeo::cli
