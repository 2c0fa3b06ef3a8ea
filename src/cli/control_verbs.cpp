#include "cli/control_verbs.h"

#include "cli/python.h"
#include "settings/json.h"
#include "settings/text_file.h"

namespace rodeo::cli {
namespace {

using settings::Json;

std::string text_of(const Json& object, std::string_view key) {
  const Json* found = object.find(key);
  return found == nullptr ? std::string{} : found->string();
}

bool is_set(const Json& object, std::string_view key) {
  const Json* found = object.find(key);
  return found != nullptr && found->boolean();
}

void describe(Command& verb, const Json& described) {
  if (const Json* options = described.find("options"); options != nullptr) {
    for (const Json& one : options->elements())
      verb.described(text_of(one, "names"), text_of(one, "value"), text_of(one, "help"), is_set(one, "many"),
                     is_set(one, "flag"));
  }
  if (const Json* verbs = described.find("verbs"); verbs != nullptr) {
    for (const Json& one : verbs->elements()) describe(verb.verb(text_of(one, "name"), text_of(one, "help")), one);
  }
}

}  // namespace

void describe_python_noun(Command& noun, std::string_view name) {
  const auto package = python_package();
  if (!package) return;
  const auto text = settings::read_text_file(*package / "_verbs.json");
  if (!text) return;
  const auto json = Json::parse(*text);
  if (!json) return;
  if (const Json* described = json->find(name); described != nullptr) describe(noun, *described);
}

}  // namespace rodeo::cli
