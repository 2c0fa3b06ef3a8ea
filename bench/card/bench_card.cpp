// `rodeo card bench`: DMA with every check of ReadoutCard's bench-dma, and register accesses of several processes
// (bar-stress).
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "base/units.h"
#include "bench/card/bar_bench.h"
#include "bench/card/dma_bench.h"
#include "bench/card/verbs.h"
#include "cli/card.h"
#include "process/stop_signals.h"

namespace rodeo::bench {

using namespace cli;

namespace {

constexpr double kGiga = 1e9;

struct DmaOptions {
  std::string id;
  DmaBenchSettings settings;
  std::uint64_t superpage_bytes = 1U << 20;
  std::string source = "internal";
  std::string level = "full";
  std::optional<std::string> links;
  std::string pattern = "auto";
  std::optional<std::uint64_t> bytes;
  std::optional<std::chrono::nanoseconds> time;
  std::chrono::nanoseconds patience = std::chrono::seconds{5};
  bool no_resync = false;
  bool no_time_frames = false;
  bool no_orbits = false;
  bool no_firmware_check = false;
  std::string firmware_list;
  std::string to_file;
  std::string error_file;
  std::string numa = "card";
  std::string json;
  OutputFormat format = OutputFormat::table;
};

/// Like show(), but CSV has a column for each value of a group (group_name), and for each list.
template <typename PrintTable>
Result<void> publish(const Json& json, const std::string& file, OutputFormat format, PrintTable print_table) {
  if (format != OutputFormat::csv) return show(json, file, format, print_table);
  if (!file.empty()) RODEO_TRY(write_json(file, json));
  if (file == "-") return {};
  Properties properties;
  for (const auto& [key, value] : json.members()) {
    if (!value.is_object()) {
      properties.add(key, key, value.is_array() ? Cell(value.dump(0)) : Cell(value));
      continue;
    }
    for (const auto& [name, one] : value.members()) {
      const std::string title = fmt::format("{}_{}", key, name);
      properties.add(title, title, Cell(one));
    }
  }
  properties.print(format);
  return {};
}

CheckLevel level_of(const std::string& name) {
  if (name == "full") return CheckLevel::full;
  return name == "fast" ? CheckLevel::fast : CheckLevel::none;
}

Json json_of(const DmaOptions& options, const card::Card& card, const DmaBenchResult& result) {
  Json counts = Json::object();
  for (const auto& [name, count] : result.counts) counts[name] = count;
  return Json::object({{"card", std::string(card::name_of(card.type()))},
                       {"pci_address", card.address().text()},
                       {"channel", options.settings.channel},
                       {"data_source", options.source},
                       {"error_check", options.level},
                       {"superpage_bytes", options.superpage_bytes},
                       {"buffer_bytes", options.settings.buffer_bytes},
                       {"memory", result.memory},
                       {"reader", options.settings.place.description},
                       {"bytes", result.bytes},
                       {"superpages", result.superpages},
                       {"seconds", result.seconds},
                       {"bytes_per_second", result.bytes_per_second},
                       {"driver_cpu_fraction", result.driver_cpu_fraction},
                       {"errors", result.errors},
                       {"counts", counts},
                       {"superpage_latency_p50_us", result.superpage_latency_p50_us},
                       {"superpage_latency_p99_us", result.superpage_latency_p99_us},
                       {"looks", result.looks},
                       {"store_ceiling_bytes_per_second", result.store_ceiling_bytes_per_second},
                       {"copy_ceiling_bytes_per_second", result.copy_ceiling_bytes_per_second}});
}

void print_dma(const DmaOptions& options, const DmaBenchResult& result) {
  fmt::print("Seconds              {:.3f}\n", result.seconds);
  fmt::print("Superpages           {}\n", result.superpages);
  fmt::print("Superpage latency    {:.0f} us (p50), {:.0f} us (p99), the card's queue included\n",
             result.superpage_latency_p50_us, result.superpage_latency_p99_us);
  fmt::print("Bytes                {} ({:.3f} GB)\n", result.bytes, static_cast<double>(result.bytes) / kGiga);
  fmt::print("Rate                 {:.3f} GB/s  {:.2f} Gb/s  {:.3f} GiB/s\n", result.bytes_per_second / kGiga,
             result.bytes_per_second * 8 / kGiga, result.bytes_per_second / (1 << 30));
  fmt::print("Driver's CPU         {:.2f} % of a core, checks included\n", 100 * result.driver_cpu_fraction);
  fmt::print("Reader               {}\n", options.settings.place.description);
  fmt::print("Memory               {}\n", result.memory);
  if (result.store_ceiling_bytes_per_second > 0) {
    fmt::print("Ceilings here        {:.2f} GB/s streaming stores, {:.2f} GB/s memcpy\n",
               result.store_ceiling_bytes_per_second / kGiga, result.copy_ceiling_bytes_per_second / kGiga);
  }
  fmt::print("Errors               {}\n", result.errors);
  for (const auto& [name, count] : result.counts) fmt::print("  {:<18} {}\n", name, count);
}

void print_progress(const DmaBenchProgress& progress) {
  const std::string temperature =
      progress.temperature_celsius ? fmt::format("  {:.1f} C", *progress.temperature_celsius) : "";
  say("{}{:6.0f} s  {:>10} superpages  {:7.2f} Gb/s  {} errors  buffer {:3.0f} % read{}{}",
      isatty(STDERR_FILENO) ? "\r" : "", progress.seconds, progress.superpages, progress.bytes_per_second * 8 / kGiga,
      progress.errors, 100 * progress.buffer_fill, temperature, isatty(STDERR_FILENO) ? "   " : "\n");
  std::fflush(stderr);
}

Result<ExitCode> bench_dma(DmaOptions& options) {
  DmaBenchSettings& settings = options.settings;
  const auto source = card::data_source_of(options.source);
  const auto pattern = pattern_named(options.pattern);
  if (!source || !pattern) return value_error("no such data source or pattern", "rodeo card bench dma --help");
  if (options.superpage_bytes > UINT32_MAX)
    return value_error("superpages have less than 4 GiB", "a CRU takes less than 16 MiB; 1MiB is the usual size");
  if (settings.check.every == 0 || settings.check.every > 255)
    return value_error("--error-check-frequency is 1 to 255", "1 checks every page");
  if (options.time && options.time->count() == 0 && options.bytes.value_or(0) == 0)
    return value_error("--duration 0 would never end",
                       "give a time, or an amount with --bytes; --bytes 0 alone reads until Ctrl-C");
  if (options.links) {
    const auto links = RODEO_TRY(link_mask(*options.links));
    settings.dma.links = links;
  }
  settings.superpage_bytes = static_cast<std::uint32_t>(options.superpage_bytes);
  settings.dma.source = *source;
  settings.check.pattern = *pattern;
  settings.check.level = level_of(options.level);
  settings.check.resynchronise = !options.no_resync;
  if (options.no_time_frames) settings.check.time_frame_orbits = 0;
  settings.check.heartbeat_frames = !options.no_orbits;
  settings.bytes = options.bytes.value_or(options.time ? 0 : std::uint64_t{16} << 30);
  settings.time = options.time.value_or(std::chrono::nanoseconds{0});
  settings.patience = options.patience;

  const auto firmware = RODEO_TRY(firmware_table(options.firmware_list));
  settings.dma.firmware = &firmware;
  settings.dma.check_firmware = !options.no_firmware_check;
  auto card = RODEO_TRY(open_card(options.id));
  auto place = RODEO_TRY(card::reader_place(options.numa, card->found().numa_node));
  settings.place = std::move(place);
  std::ofstream file;
  if (!options.to_file.empty()) {
    file.open(options.to_file, std::ios::binary);
    settings.sink = [&file](std::span<const std::byte> data) {
      return static_cast<bool>(
          file.write(reinterpret_cast<const char*>(data.data()), static_cast<std::streamsize>(data.size())));
    };
    if (!file) return std::unexpected(Error{"cli.output", "cannot write", options.to_file, "may you write there?"});
  }
  // Open it before the measurement, like the file of the data.
  std::ofstream errors;
  if (!options.error_file.empty()) {
    errors.open(options.error_file);
    if (!errors)
      return std::unexpected(Error{"cli.output", "cannot write the errors", options.error_file, "may you write there?"});
  }
  const process::StopSignals signals;
  settings.stop = [&signals] { return signals.stop_requested(); };
  settings.progress = print_progress;
  const auto result = run_dma_bench(*card, settings);
  if (isatty(STDERR_FILENO) != 0) say("\n");
  if (!result) return std::unexpected(result.error());
  if (file.is_open() && !file.flush())
    return std::unexpected(
        Error{"cli.output", "cannot write all of the data", options.to_file, "is the disk full? --bytes limits them"});

  for (std::size_t i = 0; i < std::min<std::size_t>(result->findings.size(), 5); ++i) say("{}\n", result->findings[i]);
  RODEO_TRY(publish(json_of(options, *card, *result), options.json, options.format, [&] { print_dma(options, *result); }));
  if (errors.is_open()) {
    for (const std::string& finding : result->findings) errors << finding << '\n';
    if (!errors.flush())
      return std::unexpected(
          Error{"cli.output", "cannot write all of the errors", options.error_file, "is there room on the disk?"});
  }
  return result->errors == 0 ? ExitCode::done : ExitCode::not_verified;
}

void add_dma(Command& bench) {
  auto options = std::make_shared<DmaOptions>();
  DmaBenchSettings& settings = options->settings;
  Command& dma = bench.verb("dma", "Reads a DMA channel at full speed, and checks every byte");
  dma.example("rodeo card bench dma --id '#0' --bytes 16GiB", "the internal generator, all checks")
      .example("rodeo card bench dma --id '#0' --data-source fee --duration 10s --error-check fast",
               "data of the links, headers only")
      .example("rodeo card bench dma --id '#0' --error-check none --superpage-size 512KiB --json -",
               "the driver's own cost");
  add_card_id(dma, options->id);
  dma.option("--channel,--dma-channel", settings.channel, "DMA channel: a C-RORC has 0 to 5, a FELIX 0 to 3, a CRU 0");
  dma.choice("--data-source", options->source, {"fee", "ddg", "internal", "siu", "diu"}, "Source of the data");
  dma.size("--bytes", options->bytes,
           "Amount to read, rounded up to a superpage; 0: until --duration is over or Ctrl-C; 16GiB without it");
  dma.duration("--duration", options->time, "Duration of the reading").renamed_from("--time");
  dma.size("--buffer-size", settings.buffer_bytes, "Memory for the card");
  dma.size("--superpage-size", options->superpage_bytes, "A multiple of 32KiB");
  dma.choice("--error-check", options->level, {"full", "fast", "none"},
             "full: every byte; fast: headers and counters; none: first and last line of each superpage");
  dma.choice("--pattern", options->pattern, {"auto", "ddg", "words", "internal", "provable", "unknown"},
             "Pattern of the payload");
  dma.option("--error-check-frequency", settings.check.every, "Check packet counter and payload of every Nth page only");
  dma.option("--max-rdh-packetcount", settings.check.packet_counter_max, "Last value of the packet counter");
  dma.option("--timeframe-length", settings.check.time_frame_orbits, "Orbits of a time frame");
  dma.flag("--no-tf-check", options->no_time_frames, "Time frames may begin anywhere");
  dma.flag("--no-orbit-check", options->no_orbits, "CRU: heartbeat frames need not follow each other orbit by orbit");
  dma.flag("--no-resync", options->no_resync, "After an error, keep counting from the expected value");
  dma.option("--seed", settings.check.seed, "Seed of provable payload");
  dma.option("--detector", settings.check.detector, "FELIX: detector id of the emulated links");
  dma.option("--connector", settings.check.connector,
             "FELIX: connector id of the emulated links; default: that of the first chunk");
  dma.option("--links", options->links, "CRU: links, as in 0,1,8-10; default: the enabled ones").value_name("LINKS");
  dma.duration("--pause", settings.pause,
               "Time between two polls of the card; default: the time to fill an eighth of its superpages");
  dma.option("--numa", options->numa, "CPUs to read on: card (of the card's NUMA node), off (any), or a node's number")
      .value_name("PLACE");
  dma.duration("--patience", options->patience, "Give up after this time without data");
  dma.flag("--no-firmware-check,--bypass-fw-check", options->no_firmware_check,
           "Accept firmware that the driver does not know");
  dma.option("--firmware-list", options->firmware_list, "JSON object of further hashes and names").value_name("FILE");
  dma.option("--to-file", options->to_file, "Also write the data to this file, in order").value_name("FILE");
  dma.option("--error-file", options->error_file, "Write the first 10000 errors to this file").value_name("FILE");
  dma.output(options->format);
  dma.json_file(options->json);
  dma.paragraph(
      "Errors end in exit status 7. docs/reference/card-tools.md lists the options of bench-dma and their counterparts.");
  dma.run([options] { return bench_dma(*options); });
}

struct BarOptions {
  std::string id;
  std::optional<unsigned> bar;
  std::string name;
  std::optional<std::string> value;
  unsigned processes = 1;
  std::optional<std::chrono::nanoseconds> time;
  std::optional<std::uint64_t> cycles;
  std::string json;
  OutputFormat format = OutputFormat::table;
};

/// A register of the BAR that can be read without consequences.
Result<card::RegisterTarget> some_register(const card::Card& card, std::optional<unsigned> bar) {
  const bool every = card.type() == card::CardType::crorc;
  for (const card_registers::Register& known : card.map().registers()) {
    const unsigned home = every ? bar.value_or(0) : known.bar;
    const card::RegisterTarget target{home, known.offset, known.width_bytes, &known, 0};
    if (home == bar.value_or(card.type() == card::CardType::crorc ? 0 : 2) && target.harmless_to_read()) return target;
  }
  return std::unexpected(
      Error{"card.no_region", "the card has no BAR with registers that can be read", {}, "rodeo card reg list"});
}

Result<ExitCode> bench_bar(const BarOptions& options) {
  if (options.time && options.cycles)
    return usage_error("--duration and --cycles exclude each other", "leave out one of them");
  if (options.cycles && *options.cycles == 0) return value_error("--cycles takes 1 or more", "100 is upstream's default");
  const std::chrono::nanoseconds time = options.time.value_or(std::chrono::seconds{1});
  if (time < std::chrono::milliseconds{1})
    return value_error("--duration takes a millisecond or more: a shorter time measures nothing", "1s if left out");
  auto entry = RODEO_TRY(card::find_card(options.id));
  if (!entry.unanswered.code.empty()) return std::unexpected(entry.unanswered);
  entry.function = RODEO_TRY(as_asked(entry.function));
  BarBenchSettings settings;
  settings.processes = options.processes;
  settings.time = std::chrono::duration_cast<std::chrono::milliseconds>(time);
  settings.cycles = options.cycles.value_or(0);
  {
    const auto card = RODEO_TRY(card::Card::open(entry.function));
    const auto target =
        RODEO_TRY(options.name.empty() ? some_register(*card, options.bar)
                                       : card::find_register(register_space(*card), options.name, options.bar));
    settings.target = target;
    if (options.value) RODEO_TRY(card->check_map());
  }
  if (options.value) {
    settings.write = card::parse_number(*options.value);
    if (!settings.write || options.name.empty())
      return value_error("--value needs a number, and --register the register to write it to",
                         "for example --register ctp_bc_max --value 3563");
    if (auto allowed = card::may_write(settings.target); !allowed) {
      allowed.error().next = "take another register, or leave out --value";
      return std::unexpected(allowed.error());
    }
  }
  const auto result = RODEO_TRY(run_bar_bench(entry, settings));
  const auto print_table = [&] {
    fmt::print("{} {} of BAR {} at {:#x}, {} process{}, {}\n", settings.write ? "write and read" : "read",
               settings.target.name(), settings.target.bar, settings.target.offset, settings.processes,
               settings.processes == 1 ? "" : "es", result.mapped ? "mapped" : "trapped");
    fmt::print("  operations  {} in {:.6f} s: {:.3f} M/s, {:.1f} Mb/s; {:.3f} us each\n", result.operations, result.seconds,
               result.operations_per_second * 1e-6, result.operations_per_second * 8e-6 * settings.target.width_bytes,
               1e6 * settings.processes / result.operations_per_second);
    fmt::print("  each        ");
    for (const double rate : result.per_process) fmt::print(" {:.3f}", rate * 1e-6);
    fmt::print(" M/s; at most {:.1f} % from their mean\n", 100 * result.unfairness);
    fmt::print("  ceiling     {:.3f} M/s ({}): {:.2f} of it\n", result.ceiling_per_second * 1e-6,
               result.mapped ? "plain loads by one process" : "bare ping-pong of one process over a socket",
               result.of_ceiling);
  };
  const Json json = Json::object({{"card", std::string(card::name_of(entry.type))},
                                  {"bar", settings.target.bar},
                                  {"address_bytes", settings.target.offset},
                                  {"register", settings.target.name()},
                                  {"writes", settings.write.has_value()},
                                  {"operations", result.operations},
                                  {"seconds", result.seconds},
                                  {"operations_per_second", result.operations_per_second},
                                  {"per_process", Json::array_of(result.per_process)},
                                  {"unfairness", result.unfairness},
                                  {"mapped", result.mapped},
                                  {"wrong_reads", result.wrong_reads},
                                  {"ceiling_per_second", result.ceiling_per_second},
                                  {"of_ceiling", result.of_ceiling}});
  RODEO_TRY(publish(json, options.json, options.format, print_table));
  if (result.wrong_reads == 0) return ExitCode::done;
  return std::unexpected(Error{
      "readout.bench_mismatch",
      fmt::format("{} reads of {} returned another value than was written", result.wrong_reads, settings.target.name()),
      {},
      "take a register that keeps written values, and check that no other program writes to it"});
}

void add_bar(Command& bench) {
  auto options = std::make_shared<BarOptions>();
  Command& bar = bench.verb("bar", "Register accesses per second, and their shares among processes");
  bar.example("rodeo card bench bar --id '#0' --bar 2 --processes 8", "reads by eight processes at once")
      .example("rodeo card bench bar --id '#0' --register ctp_bc_max --value 3563",
               "write and read in turn, as bar-stress does")
      .example("rodeo card bench bar --id '#0' --register ctp_bc_max --value 3563 --cycles 100000", "100,000 times");
  add_card_id(bar, options->id);
  bar.option("--bar,--channel", options->bar, "BAR; 2 (C-RORC: 0) if left out");
  bar.option("--register,--address", options->name, "Name or byte address; default: a register that is harmless to read")
      .value_name("REGISTER");
  bar.option("--value", options->value, "Write this before each read; other values read back end in exit status 7");
  bar.option("--processes", options->processes, "Processes that begin together; at most 128");
  bar.duration("--duration", options->time, "A millisecond or more; default: 1s").renamed_from("--time");
  bar.option("--cycles", options->cycles,
             "Number of reads, or pairs of write and read, of each process; in place of --duration");
  bar.output(options->format);
  bar.json_file(options->json);
  bar.run([options] { return bench_bar(*options); });
}

}  // namespace

void add_card_bench(Command& card) {
  Command& bench = card.verb("bench", "Speed of the card and its driver");
  add_dma(bench);
  add_bar(bench);
}

}  // namespace rodeo::bench
