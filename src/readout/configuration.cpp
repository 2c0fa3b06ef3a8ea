#include "readout/configuration.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/sentence.h"
#include "base/units.h"
#include "formats/rdh.h"
#include "input/card_ids.h"
#include "input/generator_settings.h"
#include "process/configuration.h"
#include "readout/builder/builder_common.h"
#include "readout/builder/gbt_builder.h"
#include "readout/check.h"
#include "readout/retention_need.h"
#include "readout/run/run_record.h"
#include "settings/effective.h"
#include "storage/event_file_encoder.h"

namespace rodeo::readout {

using process::refuse_other_than_plain_name;
using settings::Table;

const std::vector<std::pair<std::string, std::uint32_t>>& run_types() {
  static const std::vector<std::pair<std::string, std::uint32_t>> types{
      {"physics", 0}, {"calibration", 1}, {"cosmics", 2}, {"test", 0xf}};
  return types;
}

const Settings<RunKeys>& run_settings() {
  using R = RunInfo;
  static const Settings<RunKeys> settings{
      setting(&R::run_number, "number",
              "Run number: 31 bits, as in ROD headers. 0: one more than the highest in the directories of the file "
              "writers.",
              {.maximum = 0x7fffffff}),
      setting(&R::run_type, "type", run_types(), "Kind of run, as in the ATLAS event header."),
      setting(&R::lumi_block, "lumi_block", "Luminosity block.", {.maximum = 0xffff}),
      setting(&R::source_id, "source_id",
              "Source id of the full event header. Subdetector 0x7c is the HLT, as in events of the experiment; 0 "
              "only says "
              "that it is a full event."),
      setting(&R::project, "project", "Project tag: the first part of a file's name. Letters, digits, `_`, `-` and `.`."),
      setting(&R::stream_type, "stream_type", "Type of the stream, in the stream tag and in file names.",
              {.choices = {"physics", "calibration", "reserved", "debug", "unknown", "express", "monitoring"}}),
      setting(&R::stream_name, "stream",
              "Name of the stream, in the stream tag and in file names. Letters, digits, `_`, `-` and `.`."),
  };
  return settings;
}

const Settings<ProcessKeys>& process_settings() {
  using P = ProcessKeys;
  static const Settings<P> settings{
      setting(&P::name, "name", "Name of the process; also in the name of its control socket and in its files."),
      setting(&P::plugins, "plugins",
              "Plug-in libraries to load, by name (libNAME.so in the search path) or by path (with a /, relative to this "
              "file)."),
      setting(&P::plugin_directories, "plugin_directories",
              "Directories to look for plug-ins in, relative to this file; searched after RODEO_PLUGIN_PATH."),
      setting(&P::control, "control",
              "Listens on a control socket in the runtime directory, for `rodeo readout status`, `link` and `stop`."),
      setting(&P::fail_on_loss, "fail_on_loss",
              "Exit status 6 if a larger fraction of chunks is lost, of fragments incomplete, or of events not written; 0: "
              "if anything is lost, 1: never.",
              {.minimum = 0, .maximum = 1}),
      process::stop_limit_setting<P>(),
  };
  return settings;
}

const Settings<RobSettings>& rob_settings() {
  using R = RobSettings;
  static const Settings<R> settings{
      setting(&R::source_id, "source_id", "Source id of the ROB; unique in the readout.", {.required = true}),
      setting(&R::links, "links", "Links of the ROB: FIDs, or ranges FID+N. Left out: every link of the input."),
      setting(&R::link_ids, "link_ids",
              "Detector resource ids for the chunk headers, one per link. Left out: bits 47 to 16 of the FID."),
      setting(&R::links_per_group, "links_per_group",
              "FULL mode: this many neighbours in `links` form a group and carry its events in turn. 0: all of them form "
              "one.",
              {.maximum = 65535}),
  };
  return settings;
}

const Settings<LinkPolicySettings>& link_policy_settings() {
  using L = LinkPolicySettings;
  static const Settings<L> settings{
      setting(&L::remove_after_events, "remove_after_events",
              "Removes a link after this many consecutive events without it, each of which costs its time-out. 0: never."),
      setting(&L::restore, "restore", "Restores a link that was removed by this policy when it delivers again."),
  };
  return settings;
}

namespace {

/// Files describe how their payload proves itself: from the generator's seed, else from the settings of the processor that
/// verifies. BCID and trigger type are known only if the extractor reads them.
std::optional<formats::ProvableMark> provable_of(const ReadoutSettings& settings) {
  const Parameters& input = settings.input.parameters;
  const Parameters& extractor = settings.extractor.parameters;
  const bool full_trigger = settings.extractor.type == "rodeo" && extractor.integer("bcid_offset") >= 0 &&
                            extractor.integer("trigger_type_offset") >= 0;
  if (settings.input.type == "generator") {
    return formats::ProvableMark{.seed = static_cast<std::uint64_t>(input.integer("seed")),
                                 .crc = input.boolean("crc"),
                                 .l1id_bits = static_cast<std::uint32_t>(input.integer("l1id_bits")),
                                 .l1id_counter = static_cast<std::uint32_t>(input.integer("l1id_counter")),
                                 .full_trigger = full_trigger};
  }
  for (const ComponentSettings& consumer : settings.consumers) {
    const Parameters& keys = consumer.parameters;
    if (!keys.has("work") || keys.text("work") != "verify") continue;
    return formats::ProvableMark{.seed = static_cast<std::uint64_t>(keys.integer("seed")),
                                 .crc = keys.boolean("crc"),
                                 .l1id_bits = static_cast<std::uint32_t>(keys.integer("l1id_bits")),
                                 .l1id_counter = static_cast<std::uint32_t>(keys.integer("l1id_counter")),
                                 .full_trigger = full_trigger};
  }
  return std::nullopt;
}

RunInfo run_info(const Table& run, const ReadoutSettings& settings) {
  RunInfo info = run_settings().read(run.parameters());
  info.readout_name = settings.name;
  info.emulated = settings.input.type == "generator";
  info.provable = provable_of(settings);
  return info;
}

ComponentSettings component(const Table& table) {
  const Parameters& keys = table.parameters();
  const std::string name = keys.has("name") ? keys.text("name") : std::string{};
  return {.type = table.type(), .name = name.empty() ? table.type() : name, .parameters = keys, .where = table.where()};
}

/// Views and reports print the name within a line.
void refuse_control_characters(const Table& table, ConfigurationErrors& errors) {
  const std::string& name = table.parameters().text("name");
  if (std::ranges::none_of(name, [](unsigned char c) { return c < ' ' || c == 0x7f; })) return;
  errors.push_back({"config.bad_value", fmt::format("{}.name has a control character in it", table.path()),
                    where_of(table, "name"), "write letters, digits and signs"});
}

RobSettings rob(const Table& table) {
  RobSettings out = rob_settings().read(table.parameters());
  out.where = where_of(table, out.links.empty() ? "source_id" : "links");
  return out;
}

/// Copies the input's value if the configuration does not give the key.
void copy_unless_given(const Table& table, const Parameters& input, std::string_view key, ComponentSettings& out) {
  if (table.given(key)) return;
  if (key == "crc") return out.parameters.set("crc", input.boolean(key));
  out.parameters.set(std::string(key), input.integer(key));
}

/// Readers of a generator's chunks take the format from the generator, unless the configuration gives it.
void copy_generator_format(const Table& readout, ReadoutSettings& out) {
  if (out.input.type != "generator") return;
  const Parameters& input = out.input.parameters;
  if (out.extractor.type == "rodeo" || out.extractor.type == "rodeo_per_chunk") {
    for (const char* key : {"l1id_bits", "l1id_counter"})
      copy_unless_given(*readout.table("extractor"), input, key, out.extractor);
  }
  for (std::size_t i = 0; i < out.consumers.size(); ++i) {
    ComponentSettings& consumer = out.consumers[i];
    if (!consumer.parameters.has("work") || consumer.parameters.text("work") != "verify") continue;
    for (const char* key : {"seed", "crc", "l1id_bits", "l1id_counter"})
      copy_unless_given(readout.tables("consumer")[i], input, key, consumer);
  }
}

/// Gives a consumer without a name its type as name, with a number if the name is taken. Reports use the name as key.
void number_consumers(const Table& readout, ReadoutSettings& out) {
  std::vector<std::string> taken;
  for (std::size_t i = 0; i < out.consumers.size(); ++i) {
    if (readout.tables("consumer")[i].given("name")) taken.push_back(out.consumers[i].name);
  }
  for (std::size_t i = 0; i < out.consumers.size(); ++i) {
    if (readout.tables("consumer")[i].given("name")) continue;
    std::string& name = out.consumers[i].name;
    for (int number = 2; std::ranges::find(taken, name) != taken.end(); ++number)
      name = fmt::format("{}_{}", out.consumers[i].type, number);
    out.consumers[i].parameters.set("name", name);
    taken.push_back(name);
  }
}

/// The chunks that an input's source sends, as far as the configuration determines them.
struct SentChunks {
  std::string_view of;  ///< the key to reduce
  std::size_t links = 0;
  std::size_t longest = 0;
};

/// Payload and headers of the pages of a time frame, without padding.
std::size_t rdh_frame_bytes(std::size_t payload, std::size_t page, std::size_t orbits) {
  const std::size_t room = page - formats::kRdhBytes;
  return orbits * (payload + ((payload + room - 1) / room + 1) * formats::kRdhBytes);
}

/// The chunks of the generator, or of the emulated cards in the same configuration.
std::optional<SentChunks> sent_chunks(const Configuration& configuration, const ReadoutSettings& settings) {
  if (settings.input.type == "generator") {
    const auto input = input::GeneratorSettings::from(settings.input.parameters);
    return SentChunks{"readout.input.chunk_bytes", input.links.size(), input.size_max};
  }
  const Table* const emulator = configuration.table("emulator");
  if (emulator == nullptr || settings.input.type != "card") return std::nullopt;
  SentChunks sent;
  for (const Table& card : emulator->tables("card")) {
    const Parameters& keys = card.parameters();
    const auto size = [&](std::string_view key) { return static_cast<std::size_t>(keys.integer(key)); };
    const bool felix = keys.text("type") == "felix";
    const std::size_t longest =
        felix ? std::max(size("chunk_size"), size("chunk_size_max"))
              : rdh_frame_bytes(size("frame_size"), size("page_size"),
                                static_cast<std::size_t>(settings.input.parameters.integer("orbits_per_frame")));
    if (longest > sent.longest) sent = {felix ? "chunk_size of the card" : "frame_size of the card", size("links"), longest};
  }
  return sent.longest > 0 ? std::optional(sent) : std::nullopt;
}

/// Refuses chunks that do not fit into the builder's slices.
void refuse_small_slices(const Configuration& configuration, const ReadoutSettings& settings, ConfigurationErrors& errors) {
  if (settings.builder.type != "gbt") return;
  try {
    const auto sent = sent_chunks(configuration, settings);
    if (!sent) return;
    const auto builder = GbtSettings::from(settings.builder.parameters);
    for (const RobSettings& rob : settings.robs) {
      const std::size_t links = rob.links.empty() ? sent->links : rob.links.size();
      const std::size_t per_worker = builder.links_per_worker(links);
      if (builder.workers > links || builder.chunks_per_slice(links, sent->longest) >= per_worker) continue;
      const std::uint64_t slice = per_worker * (sent->longest + 8);
      const std::uint64_t all = slice * builder.workers * (builder.buffers != 0 ? builder.buffers : builder.window * 5 / 4);
      errors.push_back(
          {"readout.small_slices",
           fmt::format("chunks of up to {} bytes from {} do not fit into slices for readout.builder.chunk_size = {} with "
                       "max_extensions = {}",
                       sent->longest, base::counted(per_worker, "link"), builder.chunk_bytes, builder.max_extensions),
           settings.builder.where.empty() ? settings.input.where : settings.builder.where,
           fmt::format(
               "set readout.builder.chunk_size = {} (slices then take {}; a smaller readout.builder.window takes less), or "
               "make {} smaller",
               sent->longest, base::format_size(all), sent->of)});
      return;
    }
  } catch (const SetupError&) {
    return;  // errors in these settings are reported when the components are made
  }
}

/// An empty list is an error; only a missing list means all links.
void refuse_empty_list(const Table& table, const char* key, ConfigurationErrors& errors) {
  if (!table.given(key) || !table.parameters().fids(key).empty()) return;
  errors.push_back({"readout.no_links", fmt::format("{}.{} is an empty list: zero links", table.path(), key),
                    where_of(table, key), fmt::format("name the links, or leave `{}` out", key)});
}

/// Refuses event counter resets, by the generator or the trigger of emulated cards, that the builder cannot see.
void refuse_untold_resets(const Configuration& configuration, const ReadoutSettings& settings, ConfigurationErrors& errors) {
  const Table* const emulator = configuration.table("emulator");
  const Table* const trigger = settings.input.type == "card" && emulator != nullptr ? emulator->table("trigger") : nullptr;
  if (settings.input.type != "generator" && trigger == nullptr) return;
  const Parameters& resets = trigger != nullptr ? trigger->parameters() : settings.input.parameters;
  const Parameters& extractor = settings.extractor.parameters;
  const Parameters& builder = settings.builder.parameters;
  if (resets.integer("ecr_triggers") == 0 && resets.duration("ecr_period").count() == 0) return;
  if (!extractor.has("l1id_bits") || !builder.has("trigger_list")) return;
  const std::int64_t bits = extractor.integer("l1id_bits");
  if (bits < 16 && !builder.boolean("trigger_list")) {
    errors.push_back(
        {"readout.untold_resets",
         fmt::format("{} resets the event counter, but an L1 id of {} bits does not tell a reset from a jump",
                     trigger != nullptr ? trigger->path() : "readout.input", bits),
         trigger != nullptr ? trigger->where() : settings.input.where,
         "set readout.builder.trigger_list = true, l1id_bits = 16 or more, or no resets (ecr_triggers, ecr_period)"});
  }
}

/// Refuses an extractor that cannot be made, or whose ids do not fit the trigger list.
void refuse_extractor(const Configuration& configuration, const ReadoutSettings& settings,
                      const base::ComponentRegistry& registry, ConfigurationErrors& errors) {
  const auto extractor = registry.make_extractor(settings.extractor.type, settings.extractor.parameters);
  const Table& builder = *configuration.table("readout.builder");
  std::optional<Error> refused;
  if (!extractor) {
    refused = extractor.error();
    refused->where = settings.extractor.where;
  } else if (builder.parameters().has("trigger_list") && builder.parameters().boolean("trigger_list")) {
    refused = refused_by_list((*extractor)->fields());
    if (refused) refused->where = where_of(builder, "trigger_list");
  }
  if (refused) errors.push_back(*std::move(refused));
}

/// An extractor that reads more bits of the L1 id than the generator writes would read neighbouring fields as well. A
/// processor that expects another number of bits would find every chunk wrong.
void refuse_other_ids(const Table& readout, const ReadoutSettings& settings, ConfigurationErrors& errors) {
  if (settings.input.type != "generator") return;
  const std::int64_t sent = settings.input.parameters.integer("l1id_bits");
  const std::int64_t counter = settings.input.parameters.integer("l1id_counter");
  const auto refuse_counter = [&](const Table& table, std::int64_t read) {
    if (read == counter) return;
    errors.push_back({"readout.l1id_bits",
                      fmt::format("{}.l1id_counter is {}, but that of the generator is {}", table.path(), read, counter),
                      where_of(table, "l1id_counter"), "leave it out: it then follows readout.input.l1id_counter"});
  };
  const auto refuse = [&](const Table& table, std::int64_t bits) {
    errors.push_back(
        {"readout.l1id_bits",
         fmt::format("{}.l1id_bits is {}, but the generator's chunks carry L1 ids of {} bits", table.path(), bits, sent),
         where_of(table, "l1id_bits"), "leave it out: it then follows readout.input.l1id_bits"});
  };
  const ComponentSettings& extractor = settings.extractor;
  if (extractor.type == "rodeo" || extractor.type == "rodeo_per_chunk") {
    if (const std::int64_t bits = extractor.parameters.integer("l1id_bits"); bits > sent)
      refuse(*readout.table("extractor"), bits);
    refuse_counter(*readout.table("extractor"), extractor.parameters.integer("l1id_counter"));
  }
  for (std::size_t i = 0; i < settings.consumers.size(); ++i) {
    const Parameters& keys = settings.consumers[i].parameters;
    if (!keys.has("work") || keys.text("work") != "verify") continue;
    if (const std::int64_t bits = keys.integer("l1id_bits"); bits != sent) refuse(readout.tables("consumer")[i], bits);
    refuse_counter(readout.tables("consumer")[i], keys.integer("l1id_counter"));
  }
}

/// Refuses a time-out that closes events while their chunks still wait in a block of an emulated card or a router's page.
void refuse_hasty_timeout(const Configuration& configuration, const ReadoutSettings& settings, ConfigurationErrors& errors) {
  const Parameters& builder = settings.builder.parameters;
  const bool network = settings.input.type == "network";
  if ((settings.input.type != "card" && !network) || !builder.has("timeout")) return;
  const std::chrono::nanoseconds timeout = builder.duration("timeout");
  const auto compare = [&](const Table& sender, const char* what) {
    const std::chrono::nanoseconds flush = sender.parameters().duration("flush");
    if (flush < timeout) return;
    errors.push_back({"readout.timeout_before_flush",
                      fmt::format("readout.builder.timeout is {}, but {} sends {} that are not full after {}",
                                  base::format_duration(timeout), sender.path(), what, base::format_duration(flush)),
                      where_of(*configuration.table("readout.builder"), "timeout"),
                      fmt::format("make the time-out longer than {}, or `flush` of {} shorter than {}",
                                  base::format_duration(flush), sender.path(), base::format_duration(timeout))});
  };
  if (const Table* const emulator = configuration.table("emulator"); emulator != nullptr) {
    for (const Table& card : emulator->tables("card")) {
      if (card.parameters().text("type") == "felix") compare(card, "blocks");
    }
  }
  if (const Table* const router = configuration.table("router"); router != nullptr && network) compare(*router, "pages");
}

/// Takes rate and resets of the trigger: of the generator, of a recording played at a rate, or of emulated cards.
void copy_trigger_settings(const Configuration& configuration, ReadoutSettings& out) {
  const Table* source = nullptr;
  if (out.input.type == "card") {
    const Table* const emulator = configuration.table("emulator");
    source = emulator != nullptr ? emulator->table("trigger") : nullptr;
    if (source == nullptr) return;
  }
  const Parameters& keys = source != nullptr ? source->parameters() : out.input.parameters;
  if (keys.has("rate") && keys.rate_hz("rate") > 0) out.trigger_rate_hz = keys.rate_hz("rate");
  if (keys.has("ecr_triggers")) out.reset_events = static_cast<std::uint64_t>(keys.integer("ecr_triggers"));
  if (out.reset_events == 0 && out.trigger_rate_hz && keys.has("ecr_period"))
    out.reset_events = static_cast<std::uint64_t>(*out.trigger_rate_hz *
                                                  std::chrono::duration<double>(keys.duration("ecr_period")).count());
}

ReadoutSettings settings_of(const Configuration& configuration, ConfigurationErrors& errors) {
  const Table& readout = *configuration.table("readout");
  ReadoutSettings out;
  const ProcessKeys process = process_settings().read(readout.parameters());
  out.name = process.name;
  out.fail_on_loss = process.fail_on_loss;
  out.stop_limit = process.stop_limit;
  out.input = component(*readout.table("input"));
  out.builder = component(*readout.table("builder"));
  out.extractor = component(*readout.table("extractor"));
  if (const Table* checker = readout.table("checker")) out.checker = component(*checker);
  for (const Table& table : readout.tables("rob")) out.robs.push_back(rob(table));
  for (const Table& table : readout.tables("consumer")) out.consumers.push_back(component(table));
  number_consumers(readout, out);
  copy_generator_format(readout, out);
  copy_trigger_settings(configuration, out);
  out.run = run_info(*configuration.table("run"), out);
  out.link_policy = link_policy_settings().read(readout.table("link_policy")->parameters());
  input::refuse_bad_cards(*configuration.table("readout.input"), errors);
  process::refuse_bad_listen(*configuration.table("readout.metrics"), errors);
  refuse_other_ids(readout, out, errors);
  refuse_untold_resets(configuration, out, errors);
  refuse_small_slices(configuration, out, errors);
  size_buffers_for_retention(*readout.table("builder"), out, errors);
  refuse_hasty_timeout(configuration, out, errors);
  if (out.input.parameters.has("fids")) refuse_empty_list(*readout.table("input"), "fids", errors);
  for (const Table& table : readout.tables("rob")) refuse_empty_list(table, "links", errors);
  if (errors.empty()) check_settings(out, errors);
  for (const Table& table : readout.tables("consumer")) refuse_control_characters(table, errors);
  refuse_other_than_plain_name(readout, "name", errors);
  for (const char* key : {"project", "stream"}) refuse_other_than_plain_name(*configuration.table("run"), key, errors);
  return out;
}

/// The highest run number of this project in the directories of the file writers, plus one.
std::uint32_t next_run_number(const ReadoutSettings& settings) {
  std::uint32_t last = 0;
  for (const std::string& directory : data_directories(settings)) {
    std::error_code ignored;
    std::filesystem::directory_iterator entry(directory, ignored), end;
    for (; !ignored && entry != end; entry.increment(ignored)) {
      const auto number = storage::run_number_in(entry->path().filename().string(), settings.run.project);
      last = std::max(last, number.value_or(0));
    }
  }
  constexpr std::uint32_t kLargest = 0x7fffffff;  // 31 bits, as ROD headers have it
  return std::min(last, kLargest - 1) + 1;
}

}  // namespace

std::vector<std::string> data_directories(const ReadoutSettings& settings) {
  std::vector<std::string> directories;
  for (const ComponentSettings& consumer : settings.consumers) {
    if (consumer.type == "file_writer") directories.push_back(consumer.parameters.text("directory"));
  }
  return directories;
}

ConfigurationErrors check_readout(const Configuration& configuration, const base::ComponentRegistry& registry) {
  ConfigurationErrors errors;
  const ReadoutSettings settings = settings_of(configuration, errors);
  if (errors.empty()) refuse_extractor(configuration, settings, registry, errors);
  if (errors.empty()) check_input_files(settings, errors);
  return errors;
}

std::vector<SilenceNote> silence_notes(const Configuration& configuration, const base::ComponentRegistry& registry) {
  ConfigurationErrors errors;
  const ReadoutSettings settings = settings_of(configuration, errors);
  const auto extractor = registry.make_extractor(settings.extractor.type, settings.extractor.parameters);
  if (!errors.empty() || !extractor) return {};
  std::size_t input_links = 0;
  if (settings.input.type == "generator")
    input_links = input::GeneratorSettings::from(settings.input.parameters).links.size();
  std::vector<std::size_t> links;
  for (const RobSettings& rob : settings.robs) links.push_back(rob.links.empty() ? input_links : rob.links.size());
  return silence_notes(settings, (*extractor)->fields(), links);
}

std::expected<ReadoutConfiguration, ConfigurationErrors> configure_readout(const Configuration& configuration,
                                                                           std::unique_ptr<Library> library) {
  ReadoutConfiguration out;
  ConfigurationErrors errors;
  out.settings = settings_of(configuration, errors);
  out.settings.run.free_strings = run_strings(configuration, library->plugins());
  if (!errors.empty()) return std::unexpected(std::move(errors));
  out.library = std::move(library);
  out.numbered = out.settings.run.run_number == 0;
  if (out.numbered) out.settings.run.run_number = next_run_number(out.settings);
  out.control_socket = configuration.table("readout")->parameters().boolean("control");
  out.configuration_sha256 = settings::configuration_sha256(configuration);
  out.metrics_listen = configuration.table("readout.metrics")->parameters().text("listen");
  return out;
}

}  // namespace rodeo::readout
