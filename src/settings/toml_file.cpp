#include "settings/toml_file.h"

#include <fmt/format.h>

#include <algorithm>
#define TOML_HEADER_ONLY 0
#define TOML_SHARED_LIB 1
#include <toml++/toml.h>

#include "settings/text_file.h"

namespace rodeo::settings {

namespace {

Place place_of(const toml::source_region& source) { return {source.begin.line, source.begin.column}; }

RawValue convert(const toml::node& node) {
  RawValue raw;
  raw.place = place_of(node.source());
  switch (node.type()) {
    case toml::node_type::boolean:
      raw.kind = RawValue::Kind::boolean;
      raw.boolean = **node.as_boolean();
      break;
    case toml::node_type::integer:
      raw.kind = RawValue::Kind::integer;
      raw.integer = **node.as_integer();
      break;
    case toml::node_type::floating_point:
      raw.kind = RawValue::Kind::real;
      raw.real = **node.as_floating_point();
      break;
    case toml::node_type::string:
      raw.kind = RawValue::Kind::text;
      raw.text = **node.as_string();
      break;
    case toml::node_type::array:
      raw.kind = RawValue::Kind::array;
      for (const toml::node& element : *node.as_array()) raw.elements.push_back(convert(element));
      break;
    case toml::node_type::table:
      raw.kind = RawValue::Kind::table;
      for (const auto& [key, value] : *node.as_table()) {
        raw.members.push_back({std::string(key.str()), place_of(key.source()), convert(value)});
      }
      // The library sorts members by name; this restores the order of the file.
      std::stable_sort(raw.members.begin(), raw.members.end(), [](const RawValue::Member& a, const RawValue::Member& b) {
        return std::pair{a.place.line, a.place.column} < std::pair{b.place.line, b.place.column};
      });
      break;
    default: raw.kind = RawValue::Kind::other; break;
  }
  return raw;
}

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace

RawValue* RawValue::find(std::string_view name) {
  const auto found = std::ranges::find(members, name, &Member::name);
  return found == members.end() ? nullptr : &found->value;
}

const RawValue* RawValue::find(std::string_view name) const {
  const auto found = std::ranges::find(members, name, &Member::name);
  return found == members.end() ? nullptr : &found->value;
}

std::string RawValue::written() const {
  switch (kind) {
    case Kind::boolean: return boolean ? "true" : "false";
    case Kind::integer: return fmt::format("{}", integer);
    case Kind::real: return fmt::format("{}", real);
    case Kind::text: return in_quotes(text);
    case Kind::word: return text;
    case Kind::other: return "a date or time";
    case Kind::table: return "{...}";
    case Kind::array: break;
  }
  std::string list;
  for (const RawValue& element : elements) list += (list.empty() ? "" : ", ") + element.written();
  return "[" + list + "]";
}

std::string RawValue::describe() const {
  switch (kind) {
    case Kind::boolean: return written();
    case Kind::integer: return "the integer " + written();
    case Kind::real: return "the number " + written();
    case Kind::text: return "the text " + written();
    case Kind::word: return in_quotes(text);
    case Kind::other: return "a date or time";
    case Kind::array: return "a list";
    case Kind::table: return "a table";
  }
  return {};
}

Result<RawValue> read_toml_file(const std::filesystem::path& file) {
  const auto text = RODEO_TRY(read_text_file(file));
  return parse_toml(text, file.string());
}

Result<RawValue> parse_toml(std::string_view text, std::string_view name) {
  try {
    return convert(toml::parse(text, name));
  } catch (const toml::parse_error& failure) {
    const Place place = place_of(failure.source());
    return std::unexpected(Error{"config.syntax", std::string(failure.description()),
                                 fmt::format("{}:{}:{}", name, place.line, place.column),
                                 "see https://toml.io for the format"});
  }
}

}  // namespace rodeo::settings
