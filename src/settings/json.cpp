#include "settings/json.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

namespace rodeo::settings {

namespace {

using Library = nlohmann::ordered_json;

Library to_library(const Json& value);

/// Converts a number to another type; 0 if it is not a number, or out of range.
template <typename To, typename From>
To as_number(const From& value) {
  if constexpr (std::same_as<From, bool> || !std::is_arithmetic_v<From>) {
    return 0;
  } else if constexpr (std::floating_point<To>) {
    return static_cast<To>(value);
  } else if constexpr (std::floating_point<From>) {
    using Limits = std::numeric_limits<To>;
    return value >= static_cast<From>(Limits::min()) && value < static_cast<From>(Limits::max()) ? static_cast<To>(value)
                                                                                                 : 0;
  } else {
    return std::in_range<To>(value) ? static_cast<To>(value) : 0;
  }
}

/// Builds the value while the library reads. Any error, also a number out of range, ends the reading and keeps its place.
class Builder {
 public:
  bool null() { return put({}); }
  bool boolean(bool value) { return put(Json(value)); }
  bool number_integer(std::int64_t value) { return put(Json(value)); }
  bool number_unsigned(std::uint64_t value) { return put(Json(value)); }
  bool number_float(double value, const std::string&) { return put(Json(value)); }
  bool string(std::string& value) { return put(Json(std::move(value))); }
  bool binary(Library::binary_t&) { return false; }  // JSON text has no binary values
  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool key(std::string& name) {
    open_.back().key = std::move(name);
    return true;
  }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool parse_error(std::size_t byte, const std::string&, const Library::exception& failure) {
    bad_byte_ = byte;
    out_of_range_ = dynamic_cast<const Library::out_of_range*>(&failure) != nullptr;
    return false;
  }

  Json value() { return std::move(whole_); }
  std::size_t bad_byte() const { return bad_byte_; }  ///< counted from 1, as in the library
  bool out_of_range() const { return out_of_range_; }

 private:
  struct Open {
    Json value;
    std::string key;
  };

  bool put(Json value) {
    if (open_.empty()) {
      whole_ = std::move(value);
    } else if (Open& top = open_.back(); top.value.is_array()) {
      top.value.push_back(std::move(value));
    } else {
      top.value[top.key] = std::move(value);
    }
    return true;
  }
  bool open(Json empty) {
    open_.push_back({std::move(empty), {}});
    return true;
  }
  bool close() {
    Json value = std::move(open_.back().value);
    open_.pop_back();
    return put(std::move(value));
  }

  std::vector<Open> open_;
  Json whole_;
  std::size_t bad_byte_ = 0;
  bool out_of_range_ = false;
};

/// The first bracket nested deeper than Json::kDeepest, counted from 1; 0 if there is none. Values are written and
/// destroyed recursively, so deep nesting could exhaust a thread's stack.
std::size_t too_deep(std::string_view text) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > Json::kDeepest) return i + 1;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return 0;
}

Error bad_json(std::string_view text, std::size_t byte, std::string what) {
  std::size_t line = 1, column = 1;
  for (std::size_t i = 0; i + 1 < byte && i < text.size(); ++i) {
    column = text[i] == '\n' ? 1 : column + 1;
    line += text[i] == '\n';
  }
  return {"config.bad_json", std::move(what), fmt::format("{}:{}", line, column)};
}

const Json::Array kNoElements;
const Json::Object kNoMembers;
const std::string kNoString;

Library to_library(const Json& value) {
  if (value.is_array()) {
    Library list = Library::array();
    for (const Json& element : value.elements()) list.push_back(to_library(element));
    return list;
  }
  if (value.is_object()) {
    Library object = Library::object();
    for (const auto& [key, member] : value.members()) object[key] = to_library(member);
    return object;
  }
  if (value.is_string()) return value.string();
  if (value.is_boolean()) return value.boolean();
  if (value.is_signed()) return value.signed_integer();
  if (value.is_unsigned()) return value.unsigned_integer();
  if (value.is_number()) return value.number();
  return nullptr;
}

}  // namespace

Json& Json::operator[](std::string_view key) {
  if (is_null()) value_ = Object{};
  Object& object = std::get<Object>(value_);
  for (auto& [name, member] : object) {
    if (name == key) return member;
  }
  return object.emplace_back(std::string(key), Json()).second;
}

void Json::push_back(Json element) {
  if (is_null()) value_ = Array{};
  std::get<Array>(value_).push_back(std::move(element));
}

const Json* Json::find(std::string_view key) const {
  for (const auto& [name, member] : members()) {
    if (name == key) return &member;
  }
  return nullptr;
}

bool Json::boolean() const { return is_boolean() && std::get<bool>(value_); }

double Json::number() const {
  return std::visit([](const auto& value) { return as_number<double>(value); }, value_);
}
std::uint64_t Json::unsigned_integer() const {
  return std::visit([](const auto& value) { return as_number<std::uint64_t>(value); }, value_);
}
std::int64_t Json::signed_integer() const {
  return std::visit([](const auto& value) { return as_number<std::int64_t>(value); }, value_);
}

const std::string& Json::string() const { return is_string() ? std::get<std::string>(value_) : kNoString; }
const Json::Array& Json::elements() const { return is_array() ? std::get<Array>(value_) : kNoElements; }
const Json::Object& Json::members() const { return is_object() ? std::get<Object>(value_) : kNoMembers; }

std::string Json::dump(int indent) const {
  return to_library(*this).dump(indent == 0 ? -1 : indent, ' ', false, Library::error_handler_t::replace);
}

Result<Json> Json::parse(std::string_view text) {
  if (const std::size_t byte = too_deep(text); byte != 0)
    return std::unexpected(bad_json(text, byte, fmt::format("values are nested more than {} deep", kDeepest)));
  constexpr const char* kNoJson = "this is not JSON: the text ends early or has a character out of place";
  // The library treats this byte as the end of the text; JSON allows it nowhere.
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos)
    return std::unexpected(bad_json(text, nul + 1, kNoJson));
  Builder builder;
  if (Library::sax_parse(text.begin(), text.end(), &builder)) return builder.value();
  return std::unexpected(bad_json(text, builder.bad_byte(), builder.out_of_range() ? "a number is too large" : kNoJson));
}

}  // namespace rodeo::settings
