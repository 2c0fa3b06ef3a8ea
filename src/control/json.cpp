#include "control/json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace rodeo::control {

namespace {

using Library = nlohmann::ordered_json;

Library to_library(const Json& value);

template <typename... Ts>
struct Overload : Ts... {
  using Ts::operator()...;
};

Json from_library(const Library& value) {
  switch (value.type()) {
    case Library::value_t::boolean: return Json(value.get<bool>());
    case Library::value_t::number_integer: return Json(value.get<std::int64_t>());
    case Library::value_t::number_unsigned: return Json(value.get<std::uint64_t>());
    case Library::value_t::number_float: return Json(value.get<double>());
    case Library::value_t::string: return Json(value.get<std::string>());
    case Library::value_t::array: {
      Json list = Json::array();
      for (const Library& element : value) list.push_back(from_library(element));
      return list;
    }
    case Library::value_t::object: {
      Json object = Json::object();
      for (const auto& [key, member] : value.items()) object[key] = from_library(member);
      return object;
    }
    default: return {};
  }
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
  return std::visit(
      Overload{[](std::int64_t v) { return static_cast<double>(v); }, [](std::uint64_t v) { return static_cast<double>(v); },
               [](double v) { return v; }, [](const auto&) { return 0.0; }},
      value_);
}

std::uint64_t Json::unsigned_integer() const {
  return std::visit(
      Overload{[](std::int64_t v) { return v < 0 ? std::uint64_t{0} : static_cast<std::uint64_t>(v); },
               [](std::uint64_t v) { return v; },
               [](double v) { return v >= 0 && v < 1.8e19 ? static_cast<std::uint64_t>(v) : std::uint64_t{0}; },
               [](const auto&) { return std::uint64_t{0}; }},
      value_);
}

std::int64_t Json::signed_integer() const {
  return std::visit(
      Overload{[](std::int64_t v) { return v; },
               [](std::uint64_t v) { return v <= INT64_MAX ? static_cast<std::int64_t>(v) : std::int64_t{0}; },
               [](double v) { return v > -9.2e18 && v < 9.2e18 ? static_cast<std::int64_t>(v) : std::int64_t{0}; },
               [](const auto&) { return std::int64_t{0}; }},
      value_);
}

const std::string& Json::string() const { return is_string() ? std::get<std::string>(value_) : kNoString; }
const Json::Array& Json::elements() const { return is_array() ? std::get<Array>(value_) : kNoElements; }
const Json::Object& Json::members() const { return is_object() ? std::get<Object>(value_) : kNoMembers; }

std::string Json::dump(int indent) const {
  return to_library(*this).dump(indent == 0 ? -1 : indent, ' ', false, Library::error_handler_t::replace);
}

Result<Json> Json::parse(std::string_view text) {
  try {
    return from_library(Library::parse(text.begin(), text.end()));
  } catch (const Library::parse_error& failure) {
    std::size_t line = 1, column = 1;
    for (std::size_t i = 0; i + 1 < failure.byte && i < text.size(); ++i) {
      column = text[i] == '\n' ? 1 : column + 1;
      line += text[i] == '\n';
    }
    return std::unexpected(Error{"control.bad_json", "this is not JSON: the text ends early or has a character out of place",
                                 fmt::format("{}:{}", line, column)});
  }
}

}  // namespace rodeo::control
