#include "settings/link_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "settings/fid_text.h"

namespace rodeo::settings {

TableDeclaration link_table() {
  return {.path = "link",
          .help = "The name of a link. Statuses, reports, messages and metrics show it beside the FID.",
          .keys = {{.name = "fid", .type = KeyType::text, .help = "The FID of the link.", .required = true},
                   {.name = "name",
                    .type = KeyType::text,
                    .help = "Its name, unique: printable text without `\"` and `\\`, at most 40 characters.",
                    .required = true}},
          .form = TableDeclaration::Form::array};
}

std::expected<std::map<std::uint64_t, std::string>, ConfigurationErrors> link_names(const Configuration& configuration) {
  constexpr std::size_t kLongest = 40;
  std::map<std::uint64_t, std::string> names;
  std::set<std::string> taken;
  ConfigurationErrors errors;
  for (const Table& table : configuration.root.tables("link")) {
    const auto refuse = [&](std::string_view key, std::string what, std::string next) {
      errors.push_back({"config.bad_value", std::move(what), where_of(table, key), std::move(next)});
    };
    const std::string& text = table.parameters().text("fid");
    const std::string& name = table.parameters().text("name");
    const auto fid = parse_fid(text);
    if (!fid) refuse("fid", fid.error().what, "write it like 0x1000000000540000");
    const bool plain = std::ranges::all_of(
        name, [](unsigned char letter) { return letter >= ' ' && letter != 0x7f && letter != '"' && letter != '\\'; });
    if (name.empty() || name.size() > kLongest || !plain || name.front() == ' ' || name.back() == ' ') {
      refuse("name", fmt::format("\"{}\" is not a name of a link", name),
             "write printable text without quotes, at most 40 characters, like BIL-A12");
    } else if (!taken.insert(name).second) {
      refuse("name", fmt::format("two links have the name {}", name), "give each link a name of its own");
    }
    if (fid && !names.emplace(fid->value, name).second)
      refuse("fid", fmt::format("the link {} has two names", text), "give it one name");
  }
  if (!errors.empty()) return std::unexpected(std::move(errors));
  return names;
}

}  // namespace rodeo::settings
