// `rodeo data record`: makes a recording of FELIX blocks from a generator, or from the input of a readout configuration.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/nearest.h"
#include "base/plugin_host.h"
#include "base/registry.h"
#include "base/sentence.h"
#include "base/units.h"
#include "cli/data.h"
#include "cli/data_progress.h"
#include "cli/system.h"
#include "input/block_recorder.h"
#include "input/generator_settings.h"
#include "process/stop_signals.h"
#include "readout/defaults.h"
#include "settings/configuration.h"

namespace rodeo::cli {
namespace {

struct DataRecordOptions {
  std::string file;
  std::optional<std::string> config;
  std::optional<std::uint64_t> links;
  std::optional<std::uint64_t> events;
  std::optional<std::uint64_t> seed;
  std::vector<std::string> faults;
  std::vector<std::string> set;
  std::string blocks = "16";
  std::uint64_t block_bytes = formats::kBlockUnitBytes;
  std::optional<std::uint64_t> trigger_elink;
  OutputFormat format = OutputFormat::table;
};

// Rate 0: a recording is made as fast as possible.
constexpr std::string_view kGenerator = "[readout.input]\ntype = \"generator\"\nrate = 0\nevents = 10000\n";

Result<formats::BlockFormat> block_format(const DataRecordOptions& options) {
  formats::BlockFormat format;
  format.family = options.blocks == "16"   ? formats::BlockFamily::trailer16
                  : options.blocks == "32" ? formats::BlockFamily::trailer32
                                           : formats::BlockFamily::phase2;
  format.block_bytes = options.block_bytes > formats::kMaxBlockBytes ? 0 : static_cast<std::uint32_t>(options.block_bytes);
  if (format.valid()) return format;
  return value_error(fmt::format("there are no blocks of {} bytes with {}", options.block_bytes,
                                 options.blocks == "16" ? "16-bit trailers" : "this layout"),
                     "1 KiB with --blocks 16; 1 KiB to 64 KiB in steps of 1 KiB with 32 and phase2");
}

Result<std::vector<std::string>> overrides(const DataRecordOptions& options) {
  std::vector<std::string> list;
  const auto add = [&](std::string_view key, const auto& value) {
    list.push_back(fmt::format("readout.input.{}={}", key, value));
  };
  if (options.links) add("links", *options.links);
  if (options.events) add("events", *options.events);
  if (options.seed) add("seed", *options.seed);
  for (const std::string& fault : options.faults) {
    const std::size_t equals = fault.find('=');
    if (equals == std::string::npos)
      return value_error(fmt::format("--fault {} lacks a chance", fault), "for example --fault missing=1e-4");
    const std::string name = fault.substr(0, equals);
    std::vector<std::string> known;
    for (const Key& key : input::generator_keys()) {
      constexpr std::string_view kPrefix = "fault_";
      if (key.name.starts_with(kPrefix)) known.push_back(key.name.substr(kPrefix.size()));
    }
    if (std::ranges::find(known, name) == known.end()) {
      std::string next = base::did_you_mean(name, known);
      if (next.empty())
        for (const std::string& one : known) next += (next.empty() ? "there are: " : ", ") + one;
      return value_error(fmt::format("--fault {}: there is no fault `{}`", fault, name), std::move(next));
    }
    add("fault_" + fault.substr(0, equals), fault.substr(equals + 1));
  }
  for (const std::string& setting : options.set) {
    const bool whole_path = setting.substr(0, setting.find('=')).find('.') != std::string::npos;
    list.push_back(whole_path ? setting : "readout.input." + setting);
  }
  return list;
}

// Prints all errors but the last; the caller prints the last.
std::unexpected<Error> all_of(const settings::ConfigurationErrors& errors) {
  for (std::size_t i = 0; i + 1 < errors.size(); ++i) print_error(errors[i]);
  return std::unexpected(errors.back());
}

// The growth of a file that another thread writes; read a few times a second.
class GrowingFile {
 public:
  explicit GrowingFile(std::string path) : path_(std::move(path)) {}

  std::uint64_t growth() {
    const std::uint64_t now = base::steady_now_ns();
    if (now < next_look_ns_) return 0;
    next_look_ns_ = now + 250'000'000;
    std::error_code unknown;
    const std::uint64_t size = std::filesystem::file_size(path_, unknown);
    if (unknown || size <= size_) return 0;
    return size - std::exchange(size_, size);
  }

 private:
  std::string path_;
  std::uint64_t next_look_ns_ = 0;
  std::uint64_t size_ = 0;
};

Result<ExitCode> record(const DataRecordOptions& options) {
  const auto format = RODEO_TRY(block_format(options));
  if (options.trigger_elink && *options.trigger_elink > 2047) {
    return value_error(fmt::format("there is no E-link {}", *options.trigger_elink), "E-links of a card are 0 to 2047");
  }
  const auto set = RODEO_TRY(overrides(options));

  base::ComponentRegistry registry;
  RODEO_TRY(registry.add_library("built in", &readout::register_defaults));
  base::PluginHost plugins(registry);
  settings::ConfigurationSource source{
      .file = options.config.value_or("record.toml"), .overrides = set, .environment = options.config.has_value()};
  if (!options.config) source.text = kGenerator;
  const auto configuration = settings::load_configuration(source, system_tables(), registry, plugins);
  if (!configuration) return all_of(configuration.error());
  const settings::Table& table = *configuration->table("readout.input");
  if (!options.config && table.parameters().integer("events") == 0) {
    return value_error("a recording of 0 events would never end", "give --events N, the number of triggers to record");
  }
  const auto input = RODEO_TRY(registry.make_input(table.type(), table.parameters()));

  input::RecordingSettings settings;
  settings.format = format;
  if (options.trigger_elink) settings.trigger_elink = static_cast<std::uint16_t>(*options.trigger_elink);
  const Parameters& keys = table.parameters();
  settings.ends = keys.has("events") ? keys.integer("events") != 0 : keys.has("loop") && !keys.boolean("loop");
  process::ignore_write_signals();
  const process::StopSignals signals;
  const std::uint64_t begin = base::steady_now_ns();
  std::optional<ProgressLine> line(std::in_place, "recording " + options.file, 0);
  GrowingFile part(options.file + ".part");
  const auto recorded = input::record_blocks(*input, options.file, settings, [&] {
    line->advance(part.growth());
    return signals.stop_requested();
  });
  line.reset();
  const auto summary = RODEO_TRY(recorded);
  const double seconds = static_cast<double>(base::steady_now_ns() - begin) * 1e-9;

  Properties p;
  p.add("file", "file", summary.file.string());
  p.add("links", "links", summary.links);
  p.add("chunks", "chunks", summary.chunks);
  p.add("blocks", "blocks", summary.blocks);
  p.add("size", "size_bytes", Cell(summary.bytes, base::format_size(summary.bytes)));
  p.add("time [s]", "seconds", Cell(seconds, fmt::format("{:.2f}", seconds)));
  for (const NamedCounter& counter : input->counters()) {
    if (counter.value != 0 && counter.name != "sent") p.add(counter.name, counter.name, counter.value);
  }
  p.print(options.format);
  if (!summary.part) return ExitCode::done;
  return std::unexpected(Error{"readout.recording_interrupted",
                               fmt::format("interrupted after {}: the data recorded until then are sound, and stay in {}",
                                           base::counted(summary.chunks, "chunk"), summary.file.string()),
                               {},
                               "rename it to use it, or remove it and record again"});
}

}  // namespace

void add_data_record(Command& data) {
  auto options = std::make_shared<DataRecordOptions>();
  Command& verb = data.verb("record", "Makes a recording of FELIX blocks from generated data, or from an input");
  verb.example("rodeo data record test.felix --links 192 --events 100000",
               "provable chunks of one card; play it with `type = \"file\"`");
  verb.example("rodeo data record bad.felix --fault missing=1e-4 --fault corrupt=1e-4 --seed 7",
               "with faults, identical every time");
  verb.example("rodeo data record mine.felix --config run.toml",
               "the data of [readout.input] of a configuration, until it ends or Ctrl-C");
  verb.option("OUT", options->file, "The recording; must not exist").required();
  verb.option("--config", options->config, "Use [readout.input] of this configuration").value_name("FILE");
  verb.option("--links", options->links, "Links of the generator (default: 192, one card)").value_name("N");
  verb.option("--events", options->events, "Triggers (default: 10000, or the value of the configuration)").value_name("N");
  verb.option("--seed", options->seed, "Seed of payload, sizes and faults (default: 1)").value_name("N");
  verb.option("--fault", options->faults,
              "Fault of the generator, and its chance for each chunk: missing, duplicate, late, corrupt, l1id, truncated, "
              "jump, out_of_sequence, bcid")
      .value_name("NAME=CHANCE");
  verb.option("--set", options->set, "Any key of [readout.input], or of the whole configuration by its path")
      .value_name("KEY=VALUE");
  verb.choice("--blocks", options->blocks, {"16", "32", "phase2"},
              "Blocks with 16-bit trailers, with 32-bit trailers, or of Phase 2");
  verb.size("--block-size", options->block_bytes, "Size of a block").value_name("SIZE");
  verb.option("--trigger-elink", options->trigger_elink, "Also record the trigger's own list (TTC packets), on this E-link")
      .value_name("N");
  verb.output(options->format);
  verb.paragraph(
      "E-links are numbered as on a card, so a recording holds the links of one card. The L1 ids and faults of a generator "
      "depend only on the seed. If a finite input is interrupted, the file keeps the name OUT.part: it is sound, but "
      "incomplete (exit status 6).");
  verb.run([options] { return record(*options); });
}

}  // namespace rodeo::cli
