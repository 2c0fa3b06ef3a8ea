#include "cli/system.h"

#include <gtest/gtest.h>

#include <set>

#include "readout/defaults.h"
#include "settings/configuration.h"
#include "settings/key_value.h"

using namespace rodeo;
using namespace rodeo::cli;
using namespace rodeo::settings;

namespace {

base::ComponentRegistry default_library() {
  base::ComponentRegistry registry;
  EXPECT_TRUE(registry.add_library("built in", readout::register_defaults));
  return registry;
}

void expect_sound(const Key& key, const std::string& path) {
  EXPECT_FALSE(key.help.empty()) << path << " has no help";
  EXPECT_LE(key.minimum, key.maximum) << path;
  EXPECT_EQ(key.choices.empty(), key.type != KeyType::choice) << path;
  if (key.required || key.fallback == "{type}") return;
  const auto value = default_value(key, path, "/");
  EXPECT_TRUE(value) << value.error().message();
}

}  // namespace

TEST(Tables, EveryKeyHasHelpAndADefaultThatFits) {
  std::set<std::string> paths;
  for (const TableDeclaration& table : system_tables()) {
    EXPECT_TRUE(paths.insert(table.path).second) << table.path << " is declared twice";
    EXPECT_FALSE(table.help.empty()) << table.path;
    for (const Key& key : table.keys) expect_sound(key, table.path + "." + key.name);
  }
}

TEST(Tables, EveryComponentOfTheDefaultLibraryDeclaresSoundKeys) {
  const base::ComponentRegistry registry = default_library();
  for (const auto& component : registry.components()) {
    EXPECT_FALSE(component->info.help.empty()) << component->info.name;
    for (const Key& key : component->info.keys) expect_sound(key, component->info.name + "." + key.name);
  }
}

TEST(Tables, NoComponentTakesAKeyThatItsTableHasAlready) {
  const base::ComponentRegistry registry = default_library();
  for (const TableDeclaration& table : system_tables()) {
    if (!table.component) continue;
    for (const auto& component : registry.components()) {
      if (component->kind != *table.component) continue;
      for (const Key& key : component->info.keys) {
        for (const Key& taken : table.keys) EXPECT_NE(key.name, taken.name) << table.path << ", " << component->info.name;
      }
    }
  }
}
