#include "cli/completion_values.h"

#include <algorithm>
#include <set>

#include "card/enumeration.h"
#include "cli/codes.h"
#include "cli/system.h"
#include "cli/vocabulary.h"
#include "readout/library.h"
#include "settings/key_list.h"
#include "settings/key_value.h"

namespace rodeo::cli {
namespace {

using settings::ListedKey;

std::vector<Candidate> cards() {
  std::vector<Candidate> found;
  for (const auto& function : card::pci::all_functions()) {
    if (!function.problem.empty()) continue;
    found.push_back({function.address.text(), function.capabilities().emulated ? "emulated card" : "card"});
  }
  return found;
}

/// The key as typed after --set; for an array, that of its first table.
std::string typed_path(const ListedKey& listed) {
  const bool array = listed.table->form == settings::TableDeclaration::Form::array;
  return array ? listed.table->path + "[0]." + listed.key.name : listed.path();
}

std::vector<std::string> values_of(const Key& key) {
  if (key.type == KeyType::boolean) return {"true", "false"};
  return key.choices;
}

std::vector<Candidate> keys(std::string_view typed) {
  readout::Library library;
  const auto tables = system_tables();
  const std::size_t equals = typed.find('=');
  std::vector<Candidate> found;
  std::set<std::string> seen;
  for (const ListedKey& listed : settings::list_keys(tables, library.registry())) {
    const std::string path = typed_path(listed);
    if (equals == std::string_view::npos) {
      if (seen.insert(path).second) found.push_back({path + "=", listed.key.help});
    } else if (path == typed.substr(0, equals)) {
      for (const std::string& value : values_of(listed.key)) {
        if (seen.insert(value).second) found.push_back({std::string(path).append("=").append(value), {}});
      }
    }
  }
  return found;
}

std::vector<Candidate> names() {
  readout::Library library;
  const auto tables = system_tables();
  std::vector<Candidate> found;
  std::set<std::string> seen;
  const auto add = [&](const std::string& name, const std::string& help) {
    if (seen.insert(name).second) found.push_back({name, help});
  };
  for (const auto& table : tables) add(table.path, table.help);
  for (const ListedKey& listed : settings::list_keys(tables, library.registry())) add(listed.path(), listed.key.help);
  for (const ErrorCode& code : error_codes()) add(code.code, code.text);
  for (const Word& word : vocabulary()) add(word.word, word.kind);
  return found;
}

}  // namespace

std::vector<Candidate> completion_values(ValueKind kind, std::string_view typed) {
  try {
    switch (kind) {
      case ValueKind::card: return cards();
      case ValueKind::key: return keys(typed);
      case ValueKind::name: return names();
      default: return {};
    }
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace rodeo::cli
