#include "settings/key_list.h"

#include <fmt/format.h>

namespace rodeo::settings {

namespace {

void add_component_keys(std::vector<ListedKey>& list, const TableDeclaration& table, const base::ComponentRegistry& registry,
                        ComponentKind kind, const std::string& slot) {
  for (const auto& component : registry.components()) {
    if (component->kind != kind) continue;
    for (const Key& key : component->info.keys) list.push_back({&table, component.get(), slot, key});
  }
}

}  // namespace

Key type_key(const TableDeclaration& table, const base::ComponentRegistry& registry) {
  return {
      .name = "type",
      .type = KeyType::choice,
      .fallback = table.default_type,
      .help = fmt::format("Which {} it is: one of the default library, or of a plug-in.", base::kind_name(*table.component)),
      .choices = registry.names(*table.component),
      .required = table.default_type.empty()};
}

std::vector<ListedKey> list_keys(std::span<const TableDeclaration> declarations, const base::ComponentRegistry& registry) {
  std::vector<ListedKey> list;
  for (const TableDeclaration& table : declarations) {
    if (table.component) list.push_back({&table, nullptr, "", type_key(table, registry)});
    for (const Key& key : table.keys) list.push_back({&table, nullptr, "", key});
    if (table.component) add_component_keys(list, table, registry, *table.component, "type");
    for (const JoinedSlot& slot : table.joined) add_component_keys(list, table, registry, slot.kind, slot.key);
  }
  return list;
}

}  // namespace rodeo::settings
