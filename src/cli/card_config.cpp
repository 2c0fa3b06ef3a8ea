// `rodeo card config | firmware`: configures cards, and checks whether the driver knows their firmware.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "card/configuration/apply.h"
#include "card/configuration/card_file.h"
#include "card/firmware.h"
#include "card_registers/cru.h"
#include "cli/card.h"
#include "settings/text_file.h"

namespace rodeo::cli {

Result<card::FirmwareTable> firmware_table(const std::string& file) {
  card::FirmwareTable table = card::FirmwareTable::built_in();
  for (const std::string& name : {std::string("/etc/o2.d/readoutcard/o2-roc-fw-list.json"), file}) {
    if (name.empty()) continue;
    const auto text = settings::read_text_file(name);
    if (!text) {
      if (name == file) return std::unexpected(text.error().within("the list of firmware"));
      continue;
    }
    const auto json = Json::parse(*text);
    if (!json || !json->is_object())
      return std::unexpected(Error{"config.syntax", "the list of firmware must be a JSON object of hashes and names", name,
                                   R"(for example {"f71faa86": "v3.18.1"})"});
    for (const auto& [hash, version] : json->members()) {
      if (auto added = table.add(hash, version.string()); !added) {
        Error error = added.error();
        error.where = error.where.empty() ? name : fmt::format("{}: {}", name, error.where);
        return std::unexpected(std::move(error));
      }
    }
  }
  return table;
}

namespace {

struct CardConfigOptions {
  std::vector<std::string> ids;
  std::string file;
  bool all = false;
  std::vector<std::string> settings;
  std::optional<std::string> links;
  std::map<std::string, std::optional<std::string>> named;  // by the names of settings
  bool dry_run = false;
  bool force = false;
  bool while_running = false;
  bool no_firmware_check = false;
  std::string firmware_list;
  std::string generate;
  std::string make_template;
  OutputFormat format = OutputFormat::table;
};

/// The option of a setting: its name with dashes, plus ReadoutCard's name if that differs.
std::string option_of(std::string_view setting) {
  static const std::map<std::string_view, std::string> kAlso{
      {"datapath_mode", "datapathmode"}, {"downstream_data", "downstreamdata"}, {"gbt_mode", "gbtmode"},
      {"dynamic_offset", "dyn-offset"},  {"time_frame_length", "tf-length"},    {"trigger_window", "trigger-window-size"},
      {"run_statistics", "run-stats"}};
  std::string names = "--" + std::string(setting);
  std::ranges::replace(names, '_', '-');
  if (const auto also = kAlso.find(setting); also != kAlso.end()) names += ",--" + also->second;
  return names;
}

template <typename Fields>
void add_fields(Command& verb, CardConfigOptions& options, Fields fields, std::string_view cards) {
  for (const auto& field : fields) {
    const std::string& name = field.key.name;
    if (options.named.contains(name)) continue;
    verb.option(option_of(name), options.named[name], fmt::format("{}: {}", cards, field.key.help)).value_name("VALUE");
  }
}

/// The wanted settings: those of the card, changed by the options. Prints all errors but the last, which it returns.
Result<card::CardSettings> wanted(card::Card& card, const CardConfigOptions& options,
                                  const std::optional<card::CardFile>& file) {
  auto settings = card::read_settings(card);
  if (!settings) return settings;
  if (file) RODEO_TRY(card::apply_card_file(*file, *settings));
  std::vector<Error> errors;
  if (options.links) {
    if (card.type() != card::CardType::cru)
      return std::unexpected(Error{"card.wrong_type", "--links is for CRU cards", card.address().text(),
                                   "name E-links with --set linkN.elinks=MASK"});
    const auto mask = RODEO_TRY(link_mask(*options.links));
    for (unsigned link = 0; link < card_registers::cru::kLinks; ++link) {
      RODEO_TRY(card::set_card_setting(*settings, fmt::format("link{}.enabled", link),
                                       (mask >> link & 1) != 0 ? "true" : "false", "--links"));
    }
  }
  for (const auto& [name, value] : options.named) {
    if (!value) continue;
    const bool of_links = name == "gbt_mux" || name == "fee_id";
    if (auto done = card::set_card_setting(*settings, of_links ? "links." + name : name, *value, option_of(name)); !done)
      errors.push_back(done.error());
  }
  for (const std::string& setting : options.settings) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos)
      return usage_error("--set takes NAME=VALUE, not " + setting, "for example --set link3.fee_id=0x1a");
    if (auto done = card::set_card_setting(*settings, std::string_view(setting).substr(0, equals),
                                           std::string_view(setting).substr(equals + 1), "--set " + setting);
        !done)
      errors.push_back(done.error());
  }
  if (!errors.empty()) {
    for (std::size_t i = 0; i + 1 < errors.size(); ++i) print_error(errors[i]);
    return std::unexpected(errors.back());
  }
  RODEO_TRY(card::check(*settings));
  return settings;
}

/// The kind of configuration, from the ending of the file's name; TOML without an ending, as for - and /dev/stdout.
Result<card::CardFileFormat> kind_of(const std::string& file) {
  const std::string kind = std::filesystem::path(file).extension().string();
  if (!kind.empty() && kind != ".toml" && kind != ".ini" && kind != ".cfg" && kind != ".json")
    return value_error(fmt::format("--generate {}: {} is not a kind of configuration", file, kind),
                       "write .toml, or ReadoutCard's .ini (.cfg) or .json");
  return card::card_file_format(file);
}

Result<ExitCode> config(CardConfigOptions& options) {
  const auto generated = RODEO_TRY(kind_of(options.generate));
  if (!options.make_template.empty()) {
    const card::CardSettings settings = options.make_template == "cru"     ? card::CardSettings(card::CruSettings{})
                                        : options.make_template == "crorc" ? card::CardSettings(card::CrorcSettings{})
                                                                           : card::CardSettings(card::FelixSettings{});
    const std::string file = options.generate.empty() ? "-" : options.generate;
    RODEO_TRY(write_text(file, card::write_card_file(settings, generated)));
    return ExitCode::done;
  }
  if (!options.ids.empty() && options.all)
    return usage_error("--all and --id exclude each other", "leave out one or the other");
  if (options.ids.empty() && !options.all)
    return usage_error("which card?", "--id ID, or --all for all cards of the configuration's type");
  if (!options.generate.empty()) {
    if (options.ids.size() != 1) return usage_error("--generate takes one --id", "a file describes one card");
    auto card = RODEO_TRY(open_card(options.ids.front()));
    const auto settings = RODEO_TRY(card::read_settings(*card));
    RODEO_TRY(write_text(options.generate, card::write_card_file(settings, generated)));
    return ExitCode::done;
  }
  std::optional<card::CardFile> file;
  if (!options.file.empty()) {
    // ReadoutCard's tools name files with ini://, json:// and file:.
    std::string name = options.file;
    for (const std::string_view scheme : {"ini://", "json://", "file:"}) {
      if (name.starts_with(scheme)) name.erase(0, scheme.size());
    }
    file = RODEO_TRY(card::read_card_file(name));
    if (const auto errors = card::check_card_file(*file); !errors.empty()) return report_errors(errors);
  }
  if (!file && !options.links && options.settings.empty() &&
      std::ranges::none_of(options.named, [](const auto& one) { return one.second.has_value(); })) {
    return usage_error(
        "no setting is given",
        "give a FILE, --set NAME=VALUE or an option; --generate - shows the card's settings, --template all settings");
  }
  const auto firmware = RODEO_TRY(firmware_table(options.firmware_list));
  Table table({{"card", "card"}, {"setting", "setting"}, {"from", "from"}, {"to", "to"}, {"", "outcome"}});
  const auto outcome = each_card(options.ids, [&](const card::CardEntry& entry, card::Card& card) -> Result<void> {
    if (options.all && file) {
      // All cards of the file's type.
      const std::string_view section = card.type() == card::CardType::cru     ? "cru"
                                       : card.type() == card::CardType::crorc ? "crorc"
                                                                              : "felix";
      if (std::ranges::none_of(file->sections, [&](const auto& one) { return one.name == section; })) return {};
    }
    const auto settings = RODEO_TRY(wanted(card, options, file));
    if (!options.no_firmware_check) {
      RODEO_TRY(card::check_firmware(card, firmware));
    }
    const auto differences = RODEO_TRY(
        options.dry_run ? card::compare(card, settings)
                        : card::apply(card, settings, {.force = options.force, .while_running = options.while_running}));
    for (const card::Difference& one : differences) {
      table.add_row({Cell(entry.function.address.text()), Cell(one.name), Cell(one.from), Cell(one.to),
                     Cell(options.dry_run ? "would change" : "changed")});
    }
    return {};
  });
  if (!outcome) return outcome;
  if (table.rows() == 0 && options.format == OutputFormat::table) {
    say("nothing to change\n");
  } else {
    table.print(options.format);
  }
  return outcome;
}

Result<ExitCode> firmware(const CardConfigOptions& options) {
  const auto known = RODEO_TRY(firmware_table(options.firmware_list));
  Table table({{"card", "card"},
               {"type", "type"},
               {"serial", "serial"},
               {"endpoint", "endpoint"},
               {"hash", "hash"},
               {"firmware", "version"},
               {"compatible", "compatible"}});
  auto cards = RODEO_TRY(AskedCards::open(options.ids));
  std::vector<char> fits(cards.size());  // one thread writes each element
  cards.ask([&](std::size_t number, const card::CardEntry&, card::Card& card) -> Result<void> {
    fits[number] = card::check_firmware(card, known) ? 1 : 0;
    return {};
  });
  std::size_t bad = 0;
  for (std::size_t number = 0; number < cards.size(); ++number) {
    if (cards.failed(number)) continue;
    const card::CardEntry& entry = *cards.entry(number);
    const bool compatible = fits[number] != 0;
    bad += compatible ? 0 : 1;
    const auto hash = entry.identity.firmware_hash;
    table.add_row({Cell(entry.function.address.text()), Cell(card::name_of(entry.type)), serial_cell(entry.identity.serial),
                   optional_cell(entry.identity.endpoint), Cell(hash ? card::hash_text(*hash) : ""),
                   Cell(hash ? known.name_of(*hash) : ""), Cell(compatible, {}, compatible ? Style::good : Style::bad)});
  }
  const auto outcome = cards.outcome();
  if (!outcome) return outcome;
  table.print(options.format);
  if (bad == 0) return outcome;
  return bad < table.rows() ? ExitCode::partial : ExitCode::failed;
}

}  // namespace

void add_card_config(Command& card) {
  auto options = std::make_shared<CardConfigOptions>();
  Command& verb = card.verb("config", "Configures a card: reads it, writes the settings that differ, and lists them");
  verb.example("rodeo card config card.toml --id '#0' --dry-run", "lists what would change")
      .example("rodeo card config --id '#0' --clock ttc --links 0-3 --set link3.fee_id=0x1a", "without a file")
      .example("rodeo card config --id '#0' --generate card.toml",
               "writes a card's settings to a file; .ini and .json are ReadoutCard's formats")
      .example("rodeo card config --template cru", "every setting with its help");
  verb.option("FILE,--config-uri", options->file, "TOML, or ReadoutCard's ini or json; settings not in the file stay");
  verb.option("--id", options->ids, "Card: '#0', 3b:00.0 or 0233:1; or --all").value_name("ID");
  verb.flag("--all,--config-all", options->all, "All cards of the file's type");
  verb.option("--set", options->settings, "A setting by name: clock=ttc, links.gbt_mux=ddg, link3.fee_id=0x1a")
      .value_name("NAME=VALUE");
  verb.option("--links", options->links, "CRU: enable these links and disable all others, as in 0,1,8-10")
      .value_name("LINKS");
  add_fields(verb, *options, card::cru_fields(), "CRU");
  verb.option("--gbt-mux,--gbtmux", options->named["gbt_mux"], "CRU: the source for all links: ttc, ddg, swt, ttcup, ul")
      .value_name("VALUE");
  verb.option("--fee-id", options->named["fee_id"], "CRU: FEE id in the headers of all links").value_name("VALUE");
  add_fields(verb, *options, card::crorc_fields(), "C-RORC");
  add_fields(verb, *options, card::felix_fields(), "FELIX");
  verb.flag("--dry-run", options->dry_run, "Show the differences and change nothing");
  verb.flag("--force,--force-config", options->force, "Write everything, and reset the parts");
  verb.flag("--while-running", options->while_running, "Also while a process reads data from the card");
  verb.flag("--no-firmware-check,--bypass-fw-check", options->no_firmware_check,
            "Allow firmware that the driver does not know");
  verb.option("--firmware-list", options->firmware_list, "JSON object of further hashes and names").value_name("FILE");
  verb.option("--generate,--gen-cfg-file", options->generate, "Write the card's configuration there; - is stdout")
      .value_name("FILE");
  verb.choice("--template", options->make_template, {"cru", "crorc", "felix"}, "Write a configuration with all defaults");
  verb.output(options->format);
  verb.run([options] { return config(*options); });

  Command& versions = card.verb("firmware", "Shows whether the driver knows each card's firmware");
  versions.example("rodeo card firmware", "all cards");
  add_card_ids(versions, options->ids);
  versions.option("--firmware-list", options->firmware_list, "JSON object of further hashes and names").value_name("FILE");
  versions.output(options->format);
  versions.run([options] { return firmware(*options); });
}

}  // namespace rodeo::cli
