#include "readout/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/sentence.h"
#include "base/units.h"
#include "formats/event_file_records.h"
#include "formats/event_frame.h"
#include "formats/fid.h"
#include "formats/recording_info.h"
#include "input/card_input.h"
#include "input/event_file_input.h"
#include "input/file_input.h"
#include "input/generator_settings.h"
#include "process/configuration.h"
#include "readout/builder/builder_common.h"
#include "readout/builder/gbt_builder.h"
#include "readout/consumer/fragment_publisher.h"
#include "readout/consumer/hlt_request_handler.h"
#include "readout/rob_links.h"

namespace rodeo::readout {
namespace {

void add(const SetupError& refused, const std::string& where, ConfigurationErrors& errors) {
  Error error = refused.error();
  if (!where.empty() && error.where.find(':') == std::string::npos) error.where = where;
  errors.push_back(std::move(error));
}

/// The builder must know which links of a generator take turns: it accepts one chunk for an event of a group. Throws
/// SetupError.
void check_turns(const ReadoutSettings& settings, const input::GeneratorSettings& input, const RobSettings& rob,
                 const std::vector<BuilderLink>& links) {
  const std::uint32_t turn = input.stride();
  const auto refuse = [&](const std::string& what, const std::string& next) {
    throw SetupError(
        {"readout.not_in_turn", fmt::format("ROB {}: {}", formats::to_text(rob.source_id), what), rob.where, next});
  };
  if (settings.builder.type == "gbt" && turn > 1) {
    refuse(
        fmt::format("the GBT builder needs every event from every link, but {} links of the input carry them in turn", turn),
        "set readout.builder.type = \"full\", or readout.input.groups = 0");
  }
  if (settings.builder.type != "full") return;
  std::map<std::uint32_t, std::vector<std::uint32_t>> dealt;  // groups of the input, by groups of the ROB
  for (const BuilderLink& link : links) {
    const auto position = std::ranges::find(input.links, link.fid) - input.links.begin();
    dealt[link.group].push_back(static_cast<std::uint32_t>(position) / turn);
  }
  for (const auto& [group, members] : dealt) {
    if (members.size() == turn && std::ranges::count(members, members.front()) == turn) continue;
    if (turn == 1) {
      refuse(fmt::format(
                 "{} links are one group, whose links carry events in turn, but each link of the input carries every event",
                 members.size()),
             fmt::format(
                 "set links_per_group = 1 here (a fragment of each link), readout.input.groups = {} (links in turn), or "
                 "readout.builder.type = \"gbt\" (one fragment of all links)",
                 input.links.size() / members.size()));
    }
    refuse(fmt::format("group {} has {}, not the {} of a group of the input that carry its events in turn", group,
                       base::counted(members.size(), "link"), turn),
           fmt::format("set links_per_group = {} here, and list whole groups of the input", turn));
  }
}

/// Checks source ids and links; `input_links` as for rob_links().
void check_robs(const ReadoutSettings& settings, std::optional<std::span<const Fid>> input_links,
                const std::optional<input::GeneratorSettings>& generator, ConfigurationErrors& errors) {
  try {
    check_source_ids(settings.robs);
  } catch (const SetupError& refused) {
    add(refused, refused.error().where.empty() ? settings.input.where : std::string(), errors);
    return;
  }
  AssignedLinks assigned;
  for (const RobSettings& rob : settings.robs) {
    try {
      const std::vector<BuilderLink> links = rob_links(rob, input_links, assigned);
      if (links.empty()) continue;
      const bool gbt = settings.builder.type == "gbt";
      BuilderContext context;
      context.source_id = rob.source_id;
      context.links = links;
      check_links(context, gbt ? GbtSettings::from(settings.builder.parameters).workers : 1);
      if (generator) check_turns(settings, *generator, rob, links);
    } catch (const SetupError& refused) {
      add(refused, rob.where, errors);
    }
  }
}

/// The generator's settings; nothing for another input, or if the settings are refused.
std::optional<input::GeneratorSettings> generator_of(const ReadoutSettings& settings, ConfigurationErrors& errors) {
  if (settings.input.type != "generator") return std::nullopt;
  try {
    return input::GeneratorSettings::from(settings.input.parameters);
  } catch (const SetupError& refused) {
    add(refused, settings.input.where, errors);
    return std::nullopt;
  }
}

/// A lower limit of the size of a whole event in an uncompressed file, before any event is known.
std::uint64_t least_event_bytes(const ReadoutSettings& settings, const std::optional<input::GeneratorSettings>& generator) {
  std::uint64_t bytes = formats::EventFrame(event_frame_settings(settings.run)).bytes_around(Fragment{});
  if (!generator || generator->occupancy < 1 || settings.builder.type != "gbt") return bytes;
  std::size_t links = generator->links.size();
  for (const RobSettings& rob : settings.robs) links = std::min(links, rob.links.empty() ? links : rob.links.size());
  return bytes + links * (sizeof(ChunkHeader) + generator->size_min);
}

void check_file_sizes(const ReadoutSettings& settings, const std::optional<input::GeneratorSettings>& generator,
                      ConfigurationErrors& errors) {
  const std::uint64_t uncompressed = least_event_bytes(settings, generator);
  for (const ComponentSettings& consumer : settings.consumers) {
    if (consumer.type != "file_writer") continue;
    // The size of a compressed payload is not known in advance.
    const std::uint64_t event = consumer.parameters.integer("compression") > 0 ? formats::kSeparatorBytes : uncompressed;
    const auto most = static_cast<std::uint64_t>(consumer.parameters.integer("max_file_size"));
    if (most == 0 || most >= event) continue;
    errors.push_back(
        {"readout.small_files",
         fmt::format("consumer `{}`: max_file_size is {} bytes, but an event takes {} and more: each would have a "
                     "file of its own",
                     consumer.name, most, event),
         consumer.where, "write 2GiB, for example, or 0 for no limit"});
  }
}

/// Checks the secret of consumers that other hosts can reach.
void check_publishers(const ReadoutSettings& settings, ConfigurationErrors& errors) {
  for (const ComponentSettings& consumer : settings.consumers) {
    if (consumer.type != "publish" && consumer.type != "hlt_request_handler") continue;
    const auto sound = consumer.type == "publish" ? FragmentPublisher::check(consumer.parameters)
                                                  : HltRequestHandler::check(consumer.parameters);
    if (!sound) add(SetupError(sound.error()), consumer.where, errors);
  }
}

/// Two consumers must not serve events under one name, or write files of one name.
void check_outputs(const ReadoutSettings& settings, ConfigurationErrors& errors) {
  std::map<std::string, const ComponentSettings*> outputs;
  for (const ComponentSettings& consumer : settings.consumers) {
    const Parameters& keys = consumer.parameters;
    const bool sampler = consumer.type == "event_sampler";
    if (!sampler && consumer.type != "file_writer") continue;
    const std::string target = sampler ? keys.text("endpoint").empty() ? settings.name : keys.text("endpoint")
                                       : std::filesystem::path(keys.text("directory")).lexically_normal().string();
    const auto [first, fresh] = outputs.emplace(consumer.type + " " + target, &consumer);
    if (fresh) continue;
    errors.push_back({"readout.duplicate_output",
                      sampler ? fmt::format("consumers `{}` and `{}` would both serve events under the name `{}`",
                                            first->second->name, consumer.name, target)
                              : fmt::format("consumers `{}` and `{}` would both write the files of this run into {}",
                                            first->second->name, consumer.name, target),
                      consumer.where,
                      sampler ? "give one of them another `endpoint`" : "give one of them another `directory`"});
  }
}

/// A handler serves fragments in their form at the end of the list, so no processor may change them after the handler.
void check_order(const ReadoutSettings& settings, ConfigurationErrors& errors) {
  const ComponentSettings* handler = nullptr;
  for (const ComponentSettings& consumer : settings.consumers) {
    if (consumer.type == "hlt_request_handler") handler = &consumer;
    if (consumer.type != "processor" || handler == nullptr) continue;
    errors.push_back(
        {"readout.handler_order",
         fmt::format("consumer `{}` works on fragments that `{}` before it keeps and serves", consumer.name, handler->name),
         consumer.where, "put every processor before the first hlt_request_handler"});
  }
}

void check_names(const ReadoutSettings& settings, ConfigurationErrors& errors) {
  std::map<std::string, int> names;
  for (const ComponentSettings& consumer : settings.consumers) {
    if (++names[consumer.name] != 2) continue;
    errors.push_back({"readout.duplicate_consumer", fmt::format("two consumers are called `{}`", consumer.name),
                      consumer.where, "give each its own `name`: reports and --set use it"});
  }
}

}  // namespace

void check_settings(const ReadoutSettings& settings, ConfigurationErrors& errors) {
  check_names(settings, errors);
  if (settings.input.type == "card") {
    try {
      (void)input::CardInputSettings::from(settings.input.parameters);
    } catch (const SetupError& refused) {
      add(refused, settings.input.where, errors);
    }
  }
  check_outputs(settings, errors);
  check_order(settings, errors);
  check_publishers(settings, errors);
  const std::size_t before = errors.size();
  const auto generator = generator_of(settings, errors);
  if (errors.size() != before) return;
  check_file_sizes(settings, generator, errors);
  std::optional<std::span<const Fid>> links;
  if (generator) links = generator->links;
  check_robs(settings, links, generator, errors);
}

std::vector<std::string> warnings_of(const ReadoutSettings& settings) {
  std::vector<process::EndTime> end;
  for (const ComponentSettings& consumer : settings.consumers) {
    for (const char* key : {"grace", "linger"}) {
      if (consumer.parameters.has(key))
        end.push_back({fmt::format("{} of consumer {}", key, consumer.name), consumer.parameters.duration(key)});
    }
  }
  std::vector<std::string> warnings = process::cut_by_stop_limit(end, settings.stop_limit);
  const Parameters& input = settings.input.parameters;
  const Parameters& builder = settings.builder.parameters;
  if (settings.input.type != "generator" || !input.has("flush") || !builder.has("timeout") ||
      input.duration("flush") < builder.duration("timeout"))
    return warnings;
  const auto text = [](std::chrono::nanoseconds time) { return base::format_duration(time); };
  warnings.push_back(
      fmt::format("chunks may wait in the input for {} (readout.input.flush), and events wait for {} "
                  "(readout.builder.timeout): healthy data "
                  "will be late; make the time-out longer than the flush",
                  text(input.duration("flush")), text(builder.duration("timeout"))));
  return warnings;
}

namespace {

void refuse_bad_event_file(const ReadoutSettings& settings, ConfigurationErrors& errors) {
  const auto input = input::EventFileInputSettings::from(settings.input.parameters);
  try {
    const input::PlayedFiles files(input.file, input.sequence, input.robs);
    std::vector<Fid> links;
    for (const input::PlayedLink& link : files.links()) links.push_back(input::fid_of_link_id(input.detector, link.link_id));
    check_robs(settings, links, std::nullopt, errors);
  } catch (const SetupError& refused) {
    Error error = refused.error();
    error.what = fmt::format("the event file of the input: {}: {}", error.where, error.what);
    error.where = settings.input.where;
    errors.push_back(std::move(error));
  }
}

}  // namespace

void check_input_files(const ReadoutSettings& settings, ConfigurationErrors& errors) {
  if (settings.input.type == "event_file") return refuse_bad_event_file(settings, errors);
  if (settings.input.type != "file") return;
  const auto input = input::FileInputSettings::from(settings.input.parameters);
  const std::string name = input.file.string();
  const auto refuse = [&](Error error) {
    error.what = fmt::format("the recording of the input: {}: {}", name, error.what);
    error.where = settings.input.where;
    errors.push_back(std::move(error));
  };
  const auto file = base::MappedFile::open(name);
  if (!file) return refuse(file.error());
  const auto format = formats::detect_block_format(file->bytes());
  if (!format) return refuse(format.error());
  std::vector<Fid> links;
  for (const std::uint16_t elink : formats::elinks_of(file->bytes(), *format)) {
    if (elink != input.recording.trigger_elink)
      links.push_back(formats::fid_of_card_elink(input.detector, input.card, elink));
  }
  if (const auto whole = file->check(); !whole) return refuse(whole.error());
  check_robs(settings, links, std::nullopt, errors);
}

}  // namespace rodeo::readout
