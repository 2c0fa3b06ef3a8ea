#include "card/configuration/card_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <iterator>
#include <optional>
#include <set>

#include "base/nearest.h"
#include "settings/json.h"
#include "settings/text_file.h"
#include "settings/toml_file.h"

namespace rodeo::card {

using settings::Json;
using settings::parse_toml;
using settings::RawValue;
using settings::read_text_file;

namespace {

using Section = CardFile::Section;
using Entry = CardFile::Entry;

std::string place(const std::filesystem::path& file, std::uint32_t line, std::uint32_t column) {
  return line == 0 ? file.string() : fmt::format("{}:{}:{}", file.string(), line, column);
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

Result<CardFile> parse_ini(std::string_view text, const std::filesystem::path& name) {
  CardFile file;
  std::uint32_t number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++number;
    const std::string where = place(name, number, 1);
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (line.front() == '[') {
      if (line.back() != ']' || line.size() < 3)
        return std::unexpected(Error{"config.syntax", "a section is written [name]", where, "[cru], [links], [link3] ..."});
      file.sections.push_back({std::string(trimmed(line.substr(1, line.size() - 2))), where, {}});
      continue;
    }
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos || file.sections.empty())
      return std::unexpected(
          Error{"config.syntax", "expected key=value below a [section]", where, "comments begin with # or ;"});
    std::string_view value = trimmed(line.substr(equals + 1));
    if (const std::size_t comment = std::min(value.find(" #"), value.find(" ;")); comment != std::string_view::npos)
      value = trimmed(value.substr(0, comment));
    const std::string_view key = trimmed(line.substr(0, equals));
    for (const Section& section : file.sections) {
      if (section.name != file.sections.back().name) continue;
      if (const auto known = std::ranges::find(section.entries, key, &Entry::key); known != section.entries.end())
        return std::unexpected(Error{"config.syntax", fmt::format("{}.{} is given twice", section.name, key), where,
                                     fmt::format("it is given at {} already: leave out one of them", known->where)});
    }
    file.sections.back().entries.push_back({std::string(key), std::string(value), where});
  }
  return file;
}

/// The value as text. The 0x of unsigned numbers keeps their value where a setting's text is hexadecimal.
std::string text_of(const Json& value) {
  if (value.is_string()) return value.string();
  return value.is_unsigned() ? fmt::format("{:#x}", value.unsigned_integer()) : value.dump(0);
}

std::string place_at(std::string_view text, const std::filesystem::path& name, std::size_t at) {
  const std::string_view before = text.substr(0, at);
  return place(name, static_cast<std::uint32_t>(1 + std::ranges::count(before, '\n')),
               // If there is no line break before, npos is -1, which gives the right column.
               static_cast<std::uint32_t>(at - before.rfind('\n')));
}

/// The place of a section, or of a key in it: the first such name in quotes (for a key: after the section's name).
std::string json_place(std::string_view text, const std::filesystem::path& name, std::string_view section,
                       std::string_view key) {
  std::size_t at = text.find(fmt::format("\"{}\"", section));
  if (at != std::string_view::npos && !key.empty()) at = text.find(fmt::format("\"{}\"", key), at + section.size() + 2);
  if (at == std::string_view::npos) return name.string();  // a name written with escapes
  return place_at(text, name, at);
}

/// An error for the first name that occurs twice in one object of a valid JSON text, at its second place. Compares names as
/// written.
std::optional<Error> json_twice(std::string_view text, const std::filesystem::path& name) {
  std::vector<std::set<std::string_view>> open;  // names read up to now in each enclosing object or list
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{' || text[i] == '[') open.emplace_back();
    if ((text[i] == '}' || text[i] == ']') && !open.empty()) open.pop_back();
    if (text[i] != '"') continue;
    const std::size_t begin = i + 1;
    for (++i; i < text.size() && text[i] != '"'; ++i) i += text[i] == '\\' ? 1 : 0;
    const std::string_view word = text.substr(begin, std::min(i, text.size()) - begin);
    const std::size_t next = text.find_first_not_of(" \t\r\n", i + 1);
    if (next == std::string_view::npos || text[next] != ':' || open.empty() || open.back().insert(word).second) continue;
    return Error{"config.syntax", fmt::format("{} is given twice", word), place_at(text, name, begin - 1),
                 "leave out one of them"};
  }
  return std::nullopt;
}

Result<CardFile> parse_json(std::string_view text, const std::filesystem::path& name) {
  const auto json = Json::parse(text);
  if (!json) {
    const Error& error = json.error();
    return std::unexpected(Error{"config.syntax", error.what,
                                 error.where.empty() ? name.string() : name.string() + ":" + error.where,
                                 "`rodeo card config --template cru --generate card.json` writes a valid one"});
  }
  if (auto twice = json_twice(text, name)) return std::unexpected(std::move(*twice));
  CardFile file;
  if (!json->is_object())
    return std::unexpected(Error{"config.syntax", "a configuration is an object of sections", name.string(),
                                 R"(for example {"cru": {"clock": "ttc"}})"});
  for (const auto& [section, members] : json->members()) {
    if (!members.is_object())
      return std::unexpected(Error{"config.syntax", section + " must be an object", json_place(text, name, section, {}),
                                   R"(for example {"cru": {"clock": "ttc"}})"});
    Section one{section, json_place(text, name, section, {}), {}};
    for (const auto& [key, value] : members.members()) {
      if (value.is_array() || value.is_object() || value.is_null())
        return std::unexpected(Error{"config.wrong_type",
                                     fmt::format("{}.{} must be a text, a number, true or false", section, key),
                                     json_place(text, name, section, key), "write one value, not a list or an object"});
      one.entries.push_back(
          {key, text_of(value), json_place(text, name, section, key), value.is_string() ? "" : value.dump(0)});
    }
    file.sections.push_back(std::move(one));
  }
  return file;
}

Result<CardFile> parse_toml_sections(std::string_view text, const std::filesystem::path& name) {
  const auto root = RODEO_TRY(parse_toml(text, name.string()));
  CardFile file;
  for (const RawValue::Member& section : root.members) {
    const std::string where = place(name, section.place.line, section.place.column);
    if (section.value.kind != RawValue::Kind::table)
      return std::unexpected(Error{"config.syntax", section.name + " is outside of a table", where,
                                   "write it below [cru], [crorc], [felix], [links] or [linkN]"});
    Section one{section.name, where, {}};
    for (const RawValue::Member& entry : section.value.members) {
      const RawValue& value = entry.value;
      const std::string there = place(name, entry.place.line, entry.place.column);
      const bool plain = value.kind == RawValue::Kind::boolean || value.kind == RawValue::Kind::integer ||
                         value.kind == RawValue::Kind::text;
      if (!plain)
        return std::unexpected(Error{"config.wrong_type", fmt::format("{} is {}", entry.name, value.describe()), there,
                                     "write a text, an integer, true or false"});
      std::string written =
          value.kind == RawValue::Kind::boolean ? (value.boolean ? "true" : "false")
          : value.kind == RawValue::Kind::integer
              ? fmt::format("{}{:#x}", value.integer < 0 ? "-" : "", value.integer < 0 ? -value.integer : value.integer)
              : value.text;
      one.entries.push_back({entry.name, std::move(written), there,
                             value.kind == RawValue::Kind::integer ? fmt::format("{}", value.integer) : ""});
    }
    file.sections.push_back(std::move(one));
  }
  return file;
}

/// "link7" gives 7.
std::optional<unsigned> link_of(std::string_view section) {
  if (!section.starts_with("link")) return std::nullopt;
  section.remove_prefix(4);
  unsigned link = 0;
  const auto [end, error] = std::from_chars(section.data(), section.data() + section.size(), link);
  if (error != std::errc{} || end != section.data() + section.size()) return std::nullopt;
  return link;
}

template <typename Struct>
Result<void> set_field(std::span<const SettingField<Struct>> fields, Struct& settings, const Entry& entry,
                       std::string_view section) {
  std::vector<std::string> names;
  for (const SettingField<Struct>& field : fields) {
    if (entry.key != field.key.name && (field.upstream.empty() || entry.key != field.upstream)) {
      names.push_back(field.key.name);
      continue;
    }
    auto done = field.parse(settings, entry.value, entry.written);
    if (!done)
      return std::unexpected(Error{"config.bad_value", fmt::format("{}.{}: {}", section, entry.key, done.error().what),
                                   entry.where, done.error().next});
    return {};
  }
  return std::unexpected(Error{"config.unknown_key", fmt::format("{}.{} is not a setting of this card", section, entry.key),
                               entry.where, base::did_you_mean(entry.key, names)});
}

/// Sets a section of links; `links` is the card's array of links.
template <typename Links, typename LinkFields>
Result<void> set_in_links(Links& links, LinkFields fields, const Section& section) {
  const auto one = link_of(section.name);
  if (one && *one >= links.size()) {
    return std::unexpected(Error{"config.unknown_key", fmt::format("there is no link {}", *one), section.where,
                                 fmt::format("links are 0 to {}", links.size() - 1)});
  }
  for (const Entry& entry : section.entries) {
    for (std::size_t link = one ? *one : 0; link < (one ? *one + 1 : links.size()); ++link)
      RODEO_TRY(set_field(fields, links[link], entry, section.name));
  }
  return {};
}

template <typename Settings>
constexpr std::string_view section_of() {
  if constexpr (std::is_same_v<Settings, CruSettings>) return "cru";
  if constexpr (std::is_same_v<Settings, CrorcSettings>) return "crorc";
  return "felix";
}

std::span<const SettingField<CruSettings>> fields_of(const CruSettings&) { return cru_fields(); }
std::span<const SettingField<CrorcSettings>> fields_of(const CrorcSettings&) { return crorc_fields(); }
std::span<const SettingField<FelixSettings>> fields_of(const FelixSettings&) { return felix_fields(); }

template <typename Settings>
Result<void> set_section(Settings& settings, const Section& section) {
  if (section.name == section_of<Settings>()) {
    for (const Entry& entry : section.entries) RODEO_TRY(set_field(fields_of(settings), settings, entry, section.name));
    return {};
  }
  if constexpr (std::is_same_v<Settings, CruSettings>) return set_in_links(settings.links, cru_link_fields(), section);
  if constexpr (std::is_same_v<Settings, FelixSettings>) return set_in_links(settings.links, felix_link_fields(), section);
  return std::unexpected(
      Error{"config.unknown_key", "a C-RORC has no settings of links", section.where, "its settings are in [crorc]"});
}

const std::vector<std::string> kSections{"cru", "crorc", "felix", "links", "link0"};

bool known_section(std::string_view name) {
  return name == "cru" || name == "crorc" || name == "felix" || name == "links" || link_of(name).has_value();
}

template <typename Struct>
void write_fields(std::string& text, std::string_view section, std::span<const SettingField<Struct>> fields,
                  const Struct& settings, CardFileFormat format) {
  text += fmt::format("[{}]\n", section);
  for (const SettingField<Struct>& field : fields) {
    const std::string value = field.text(settings);
    if (format == CardFileFormat::toml) {
      const std::string written = field.key.type == KeyType::choice ? '"' + value + '"' : value;
      text += fmt::format("{} = {}  # {}\n", field.key.name, written, field.key.help);
    } else if (!field.upstream.empty()) {
      text += fmt::format("{}={}\n", field.upstream, value);
    }
  }
  text += '\n';
}

template <typename Struct>
void write_fields(Json& json, std::string_view section, std::span<const SettingField<Struct>> fields,
                  const Struct& settings) {
  Json members = Json::object();
  for (const SettingField<Struct>& field : fields) {
    if (!field.upstream.empty()) members[field.upstream] = field.text(settings);
  }
  json[section] = std::move(members);
}

/// Calls `visit(section, fields, struct)` for the card and each of its links.
template <typename Visit>
void each_section(const CardSettings& settings, Visit visit) {
  std::visit(
      [&](const auto& of) {
        using Settings = std::decay_t<decltype(of)>;
        visit(std::string(section_of<Settings>()), fields_of(of), of);
        if constexpr (std::is_same_v<Settings, CruSettings>) {
          for (std::size_t link = 0; link < of.links.size(); ++link)
            visit(fmt::format("link{}", link), cru_link_fields(), of.links[link]);
        }
        if constexpr (std::is_same_v<Settings, FelixSettings>) {
          for (std::size_t link = 0; link < of.links.size(); ++link)
            visit(fmt::format("link{}", link), felix_link_fields(), of.links[link]);
        }
      },
      settings);
}

}  // namespace

CardFileFormat card_file_format(const std::filesystem::path& file) {
  const std::string end = file.extension().string();
  if (end == ".json") return CardFileFormat::json;
  return end == ".ini" || end == ".cfg" ? CardFileFormat::ini : CardFileFormat::toml;
}

Result<CardFile> parse_card_file(std::string_view text, const std::filesystem::path& name) {
  switch (card_file_format(name)) {
    case CardFileFormat::json: return parse_json(text, name);
    case CardFileFormat::ini: return parse_ini(text, name);
    case CardFileFormat::toml: break;
  }
  return parse_toml_sections(text, name);
}

Result<CardFile> read_card_file(const std::filesystem::path& file) {
  const auto text = RODEO_TRY(read_text_file(file));
  return parse_card_file(text, file);
}

std::vector<Error> check_card_file(const CardFile& file) {
  std::vector<Error> errors;
  const auto note = [&errors](const Result<void>& done) {
    if (done) return;
    // Report a wrong setting of all links once, not for each link.
    if (std::ranges::none_of(errors, [&](const Error& known) { return known.where == done.error().where; }))
      errors.push_back(done.error());
  };
  const auto has = [&file](std::string_view name) {
    return std::ranges::any_of(file.sections, [&](const Section& one) { return one.name == name; });
  };
  for (const Section& section : file.sections) {
    if (!known_section(section.name)) {
      note(std::unexpected(Error{"config.unknown_key", fmt::format("[{}] is not a section of a card", section.name),
                                 section.where, base::did_you_mean(section.name, kSections)}));
      continue;
    }
    const bool links = section.name == "links" || link_of(section.name).has_value();
    // Check a section without entries too: its link may not exist.
    std::vector<Section> ones;
    for (const Entry& entry : section.entries) ones.push_back({section.name, section.where, {entry}});
    if (ones.empty()) ones.push_back(section);
    for (const Section& one : ones) {
      if (section.name == "crorc") {
        CrorcSettings settings;
        note(set_section(settings, one));
      } else if (section.name == "felix" || (links && has("felix"))) {
        FelixSettings settings;
        note(set_section(settings, one));
      } else {
        CruSettings settings;
        note(set_section(settings, one));
      }
    }
  }
  return errors;
}

Result<void> apply_card_file(const CardFile& file, CardSettings& settings) {
  return std::visit(
      [&](auto& of) -> Result<void> {
        using Settings = std::decay_t<decltype(of)>;
        bool found = false;
        for (const Section& section : file.sections) {
          if (!known_section(section.name))
            return std::unexpected(Error{"config.unknown_key", fmt::format("[{}] is not a section of a card", section.name),
                                         section.where, base::did_you_mean(section.name, kSections)});
          found = found || section.name == section_of<Settings>();
        }
        if (!found && !file.sections.empty())
          return std::unexpected(Error{
              "config.missing_key", fmt::format("there is no section [{}], which this card needs", section_of<Settings>()),
              file.sections.front().where,
              fmt::format("add [{}], which may be empty, or choose another card", section_of<Settings>())});
        // Apply [links] before single links, whatever their order in the file.
        for (const bool single : {false, true}) {
          for (const Section& section : file.sections) {
            const bool links = section.name == "links" || link_of(section.name).has_value();
            if (link_of(section.name).has_value() != single) continue;
            if (section.name != section_of<Settings>() && !links) continue;
            if (links && std::is_same_v<Settings, CrorcSettings>) continue;
            RODEO_TRY(set_section(of, section));
          }
        }
        return {};
      },
      settings);
}

Result<void> set_card_setting(CardSettings& settings, std::string_view name, std::string_view value,
                              const std::string& where) {
  const std::size_t dot = name.find('.');
  return std::visit(
      [&](auto& of) -> Result<void> {
        using Settings = std::decay_t<decltype(of)>;
        const std::string_view section = dot == std::string_view::npos ? section_of<Settings>() : name.substr(0, dot);
        const std::string_view key = dot == std::string_view::npos ? name : name.substr(dot + 1);
        if (!known_section(section))
          return std::unexpected(Error{"config.unknown_key", fmt::format("{} is not a section of a card", section), where,
                                       base::did_you_mean(section, kSections)});
        return set_section(of, {std::string(section), where, {{std::string(key), std::string(value), where}}});
      },
      settings);
}

std::string write_card_file(const CardSettings& settings, CardFileFormat format) {
  if (format == CardFileFormat::json) {
    Json json = Json::object();
    each_section(settings,
                 [&](const std::string& section, auto fields, const auto& of) { write_fields(json, section, fields, of); });
    return json.dump() + "\n";
  }
  std::string text;
  each_section(settings, [&](const std::string& section, auto fields, const auto& of) {
    write_fields(text, section, fields, of, format);
  });
  return text;
}

}  // namespace rodeo::card
