#include "settings/effective.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

using namespace rodeo;
using namespace rodeo::settings;

namespace {

std::vector<TableDeclaration> declarations() {
  return {{.path = "one",
           .help = "A table.",
           .keys = {{.name = "text", .type = KeyType::text, .fallback = "a", .help = "Text."},
                    {.name = "number", .type = KeyType::integer, .fallback = "3", .help = "Number."}}},
          {.path = "two",
           .help = "Several.",
           .keys = {{.name = "name", .type = KeyType::text, .fallback = "", .help = "Name."}},
           .form = TableDeclaration::Form::array}};
}

std::string hash(std::string text, std::vector<std::string> overrides = {}) {
  base::ComponentRegistry registry;
  base::PluginHost plugins(registry, {});
  const auto configuration = load_configuration(
      {.file = "/etc/run.toml", .text = std::move(text), .overrides = std::move(overrides), .environment = false},
      declarations(), registry, plugins);
  EXPECT_TRUE(configuration.has_value());
  return configuration ? configuration_sha256(*configuration) : "";
}

}  // namespace

TEST(ConfigurationHash, IsOfWhatIsInEffectAndNotOfHowItIsWritten) {
  const std::string plain = hash("");
  EXPECT_EQ(plain.size(), 64U);
  EXPECT_EQ(plain.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(hash("[one]\nnumber = 3\ntext = 'a'"), plain) << "explicit defaults";
  EXPECT_EQ(hash("# nothing\n[one]\ntext = \"a\""), plain);
  EXPECT_EQ(hash("[one]\ntext = 'b'", {"one.text=a"}), plain) << "a flag overrides the file";
}

TEST(ConfigurationHash, ChangesWithEveryValue) {
  std::set<std::string> hashes;
  for (const char* text :
       {"", "[one]\ntext = 'b'", "[one]\nnumber = 4", "[[two]]", "[[two]]\nname = 'x'", "[[two]]\n[[two]]",
        "[[two]]\nname = 'x'\n[[two]]\nname = 'y'", "[[two]]\nname = 'y'\n[[two]]\nname = 'x'"})
    EXPECT_TRUE(hashes.insert(hash(text)).second) << text;
}
