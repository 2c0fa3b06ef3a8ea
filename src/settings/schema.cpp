#include "settings/schema.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "settings/key_list.h"
#include "settings/key_value.h"

namespace rodeo::settings {

namespace {

constexpr const char* kDurationPattern = "^ *[0-9.]+([eE][-+]?[0-9]+)? *(ns|us|µs|ms|s|min|h|d) *$|^0$";
constexpr const char* kSizePattern =
    "^ *[0-9.]+([eE][-+]?[0-9]+)? *(B|k|kB|KB|M|MB|G|GB|T|TB|Ki|KiB|kiB|Mi|MiB|Gi|GiB|TiB)? *$";
constexpr const char* kRatePattern = "^ *[0-9.]+([eE][-+]?[0-9]+)? *(Hz|k|kHz|M|MHz|G|GHz|mHz)? *$";
constexpr const char* kFidPattern = "^(0x[0-9a-fA-F]{1,16}|[0-9]+)$";
constexpr const char* kFidRangePattern = "^(0x[0-9a-fA-F]{1,16}|[0-9]+)(\\+[0-9]+)?$";
constexpr const char* kWholePattern = "^(0x[0-9a-fA-F]+|[0-9]+)$";
constexpr const char* kSourceIdPattern = "^(0x[0-9a-fA-F]{1,8}|[0-9]+)$";

Json text(const char* pattern = nullptr) {
  Json schema = Json::object({{"type", "string"}});
  if (pattern != nullptr) schema["pattern"] = pattern;
  return schema;
}

Json number(const char* type, const Key& key) {
  Json schema = Json::object({{"type", type}});
  const bool whole = std::string_view(type) == "integer";
  const auto limit = [&](double value) { return whole ? Json(static_cast<std::int64_t>(value)) : Json(value); };
  if (key.minimum > -9.2e18) schema["minimum"] = limit(key.minimum);
  if (key.maximum < 9.2e18) schema["maximum"] = limit(key.maximum);
  return schema;
}

Json either(Json one, Json other) {
  Json schema;
  schema["anyOf"].push_back(std::move(one));
  schema["anyOf"].push_back(std::move(other));
  return schema;
}

Json list_of(Json element) { return Json::object({{"type", "array"}, {"items", std::move(element)}}); }

Json value_schema(const Key& key) {
  switch (key.type) {
    case KeyType::boolean: return Json::object({{"type", "boolean"}});
    case KeyType::integer: return number("integer", key);
    case KeyType::real: return number("number", key);
    case KeyType::text:
    case KeyType::path: return text();
    case KeyType::duration: return either(text(kDurationPattern), Json::object({{"const", 0}}));
    case KeyType::size: return either(text(kSizePattern), number("integer", key));
    case KeyType::rate: return either(text(kRatePattern), number("number", key));
    case KeyType::choice: return Json::object({{"enum", Json::array_of(key.choices)}});
    case KeyType::fid: return either(text(kFidPattern), Json::object({{"type", "integer"}}));
    case KeyType::source_id:
      return either(text(kSourceIdPattern), Json::object({{"type", "integer"}, {"minimum", 0}, {"maximum", 0xffffffffU}}));
    case KeyType::text_list: return list_of(text());
    case KeyType::integer_list: return list_of(either(text(kWholePattern), number("integer", key)));
    case KeyType::fid_list: return list_of(either(text(kFidRangePattern), Json::object({{"type", "integer"}})));
  }
  return Json::object();
}

/// One possible form of a table: its keys, and the keys with a fixed value in this form.
struct Form {
  std::vector<Key> keys;
  std::vector<std::pair<Key, std::string>> fixed;
};

class SchemaWriter {
 public:
  SchemaWriter(std::span<const TableDeclaration> declarations, const base::ComponentRegistry& registry)
      : declarations_(declarations), registry_(registry) {}

  /// The schema of the table at `path`; "" is the whole file.
  Json table(const std::string& path) const {
    const auto found = std::ranges::find(declarations_, path, &TableDeclaration::path);
    if (found == declarations_.end()) return form({}, path);
    std::vector<Json> forms;
    for (const Form& one : forms_of(*found)) forms.push_back(form(one, path));
    Json schema = forms.size() == 1 ? forms.front() : Json::object({{"oneOf", Json::array_of(forms)}});
    schema["description"] = found->help;
    if (found->form == TableDeclaration::Form::array) return list_of(std::move(schema));
    return schema;
  }

 private:
  std::vector<Form> forms_of(const TableDeclaration& declaration) const {
    if (!declaration.component) return {{declaration.keys, {}}};
    std::vector<Form> forms;
    for (const auto& component : registry_.components()) {
      if (component->kind != *declaration.component) continue;
      Form one{declaration.keys, {}};
      one.keys.insert(one.keys.end(), component->info.keys.begin(), component->info.keys.end());
      one.fixed.emplace_back(type_key(declaration, registry_), component->info.name);
      add_joined(declaration, one, forms);
    }
    return forms;
  }

  /// Adds one form for each component that the joined slot of this form can name.
  void add_joined(const TableDeclaration& declaration, const Form& one, std::vector<Form>& forms) const {
    for (const JoinedSlot& slot : declaration.joined) {
      const auto key = std::ranges::find(one.keys, slot.key, &Key::name);
      if (key == one.keys.end()) continue;
      for (const auto& component : registry_.components()) {
        if (component->kind != slot.kind) continue;
        Form joined = one;
        std::erase_if(joined.keys, [&](const Key& other) { return other.name == slot.key; });
        joined.fixed.emplace_back(*key, component->info.name);
        joined.keys.insert(joined.keys.end(), component->info.keys.begin(), component->info.keys.end());
        forms.push_back(std::move(joined));
      }
      return;
    }
    forms.push_back(one);
  }

  Json form(const Form& one, const std::string& path) const {
    Json schema = Json::object({{"type", "object"}});
    Json& properties = schema["properties"] = Json::object();
    Json required = Json::array();
    for (const auto& [key, value] : one.fixed) {
      properties[key.name] = Json::object({{"const", value}});
      // The default may be omitted; any other choice must be given.
      if (key.required || key.fallback != value) required.push_back(key.name);
    }
    for (const Key& key : one.keys) {
      Json value = value_schema(key);
      value["description"] = key.help + (key.required ? "" : " (" + summary(key) + ")");
      properties[key.name] = std::move(value);
      if (key.required) required.push_back(key.name);
    }
    const std::string prefix = path.empty() ? "" : path + ".";
    for (const TableDeclaration& below : declarations_) {
      if (!below.path.starts_with(prefix) || below.path == path) continue;
      const std::string name = below.path.substr(prefix.size(), below.path.find('.', prefix.size()) - prefix.size());
      if (properties.find(name) == nullptr) properties[name] = table(prefix + name);
    }
    if (!required.elements().empty()) schema["required"] = std::move(required);
    schema["additionalProperties"] = false;
    return schema;
  }

  std::span<const TableDeclaration> declarations_;
  const base::ComponentRegistry& registry_;
};

}  // namespace

Json json_schema(std::span<const TableDeclaration> declarations, const base::ComponentRegistry& registry) {
  Json schema = Json::object({{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", "Rodeo configuration"}});
  const Json file = SchemaWriter(declarations, registry).table("");
  for (const auto& [name, member] : file.members()) schema[name] = member;
  return schema;
}

}  // namespace rodeo::settings
