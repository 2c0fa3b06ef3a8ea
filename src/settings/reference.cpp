#include "settings/reference.h"

#include <fmt/format.h>

#include <algorithm>

#include "settings/key_list.h"
#include "settings/key_value.h"

namespace rodeo::settings {

namespace {

constexpr std::string_view kIntroduction = R"(# Configuration reference

Every table and key of a configuration with type, default and range. This page is written by `rodeo check --reference` from the
declarations that also check files; `rodeo explain KEY` shows one entry.

A configuration is a [TOML](https://toml.io) file. Quantities with a unit are texts: sizes `"2MiB"` (1024s) or `"5MB"` (1000s), rates `"100kHz"`,
durations `"10ms"`. Paths are relative to the file. Every value can be overridden: a flag (`--set readout.builder.timeout=20ms`) is stronger than
the environment (`RODEO_READOUT_BUILDER_TIMEOUT=20ms`), that than the file, that than the default. Elements of arrays take a position:
`--set readout.rob[0].source_id=0x00610001`, `RODEO_READOUT_ROB_0_SOURCE_ID`.
)";

/// Escapes text for a cell of a Markdown table.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string row(const Key& key) {
  std::string limits = range_text(key);
  if (!key.choices.empty()) {
    limits.clear();
    for (const std::string& choice : key.choices) limits += (limits.empty() ? "`" : ", `") + choice + "`";
  }
  const std::string fallback = key.required               ? "required"
                               : key.fallback == "{type}" ? "its `type`"
                                                          : "`" + default_text(key) + "`";
  return fmt::format("| `{}` | {} | {} | {} | {} |\n", key.name, type_name(key.type), fallback, cell(limits),
                     cell(key.help));
}

constexpr std::string_view kTableHead = "| key | type | default | allowed | |\n|---|---|---|---|---|\n";

}  // namespace

std::string configuration_reference(std::span<const TableDeclaration> declarations,
                                    const base::ComponentRegistry& registry) {
  std::string page(kIntroduction);
  const std::vector<ListedKey> keys = list_keys(declarations, registry);
  for (const TableDeclaration& table : declarations) {
    const bool array = table.form == TableDeclaration::Form::array;
    page += fmt::format("\n## {}\n\n{}{}\n", array ? "[[" + table.path + "]]" : "[" + table.path + "]", table.help,
                        array            ? " May occur any number of times."
                        : table.optional ? " May be left out."
                                         : "");
    std::string rows;
    for (const ListedKey& listed : keys) {
      if (listed.table == &table && listed.component == nullptr) rows += row(listed.key);
    }
    if (!rows.empty()) page += "\n" + std::string(kTableHead) + rows;
    const auto add_components = [&](ComponentKind kind, const std::string& slot) {
      for (const auto& component : registry.components()) {
        if (component->kind != kind) continue;
        page += fmt::format("\n### {} = \"{}\"\n\n{}\n", slot, component->info.name, component->info.help);
        if (component->info.keys.empty()) continue;
        page += "\n" + std::string(kTableHead);
        for (const Key& key : component->info.keys) page += row(key);
      }
    };
    if (table.component) add_components(*table.component, "type");
    for (const JoinedSlot& slot : table.joined) add_components(slot.kind, slot.key);
  }
  return page;
}

}  // namespace rodeo::settings
