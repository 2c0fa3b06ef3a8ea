#include "cli/described_verbs.h"

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

const Json::Array& listed(const Json& object, std::string_view key) {
  static const Json::Array none;
  const Json* found = object.find(key);
  return found == nullptr ? none : found->elements();
}

}  // namespace

Json described(const Command& verb) {
  Json json = Json::object({{"name", verb.name()}, {"help", verb.help()}});
  for (const auto& option : verb.options()) {
    const std::string fallback = option->fallback().empty() ? "" : fmt::format(" (default {})", option->fallback());
    std::string names;
    for (const std::string& name : option->names()) names += (names.empty() ? "" : ",") + name;
    json["options"].push_back(Json::object({{"names", names},
                                            {"value", option->is_flag() ? "" : option->value_name()},
                                            {"help", option->help() + fallback},
                                            {"many", option->is_many()},
                                            {"flag", option->is_flag()}}));
  }
  for (const auto& [command, text] : verb.examples()) json["examples"].push_back(Json::array_of(std::vector{command, text}));
  for (const std::string& paragraph : verb.paragraphs()) json["paragraphs"].push_back(paragraph);
  for (const auto& below : verb.verbs()) json["verbs"].push_back(described(*below));
  return json;
}

void describe_as(Command& verb, const Json& described) {
  for (const Json& one : listed(described, "options"))
    verb.described(text_of(one, "names"), text_of(one, "value"), text_of(one, "help"), is_set(one, "many"),
                   is_set(one, "flag"));
  for (const Json& one : listed(described, "examples")) verb.example(one.elements()[0].string(), one.elements()[1].string());
  for (const Json& one : listed(described, "paragraphs")) verb.paragraph(one.string());
  for (const Json& one : listed(described, "verbs")) describe_as(verb.verb(text_of(one, "name"), text_of(one, "help")), one);
}

void describe_python_noun(Command& noun, std::string_view name) {
  const auto package = python_package();
  if (!package) return;
  const auto text = settings::read_text_file(*package / "_verbs.json");
  if (!text) return;
  const auto json = Json::parse(*text);
  if (!json) return;
  if (const Json* described = json->find(name); described != nullptr) describe_as(noun, *described);
}

}  // namespace rodeo::cli
