// JSON as a small value type for reports, `-o json` and recorded settings. Only json.cpp includes the library behind it.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"

namespace rodeo::settings {

/// A JSON value. Objects keep the order in which their keys were set. Plain value semantics.
class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;
  static constexpr std::size_t kDeepest = 100;  ///< nesting of arrays and objects in parsed text

  Json() = default;  ///< null
  Json(std::nullptr_t) {}
  Json(std::same_as<bool> auto value) : value_(value) {}
  Json(std::signed_integral auto value) : value_(std::int64_t{value}) {}
  Json(std::unsigned_integral auto value)
    requires(!std::same_as<decltype(value), bool>)
      : value_(std::uint64_t{value}) {}
  Json(double value) : value_(value) {}  ///< nan and infinity are written as null
  Json(const char* value) : value_(std::string(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(std::string value) : value_(std::move(value)) {}

  static Json object() { return Json(Object{}); }
  static Json object(std::initializer_list<Member> members) { return Json(Object(members)); }
  static Json array() { return Json(Array{}); }
  template <typename Range>
  static Json array_of(const Range& range) {
    Json list = array();
    for (const auto& element : range) list.push_back(Json(element));
    return list;
  }

  /// The member with this name, created if missing; a null becomes an object first.
  Json& operator[](std::string_view key);
  /// Appends; a null becomes an array first.
  void push_back(Json element);

  /// The member with this name; nullptr if missing, or if this is not an object.
  const Json* find(std::string_view key) const;

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_boolean() const { return std::holds_alternative<bool>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }
  bool is_number() const { return !is_null() && !is_boolean() && !is_string() && !is_array() && !is_object(); }

  bool is_signed() const { return std::holds_alternative<std::int64_t>(value_); }
  bool is_unsigned() const { return std::holds_alternative<std::uint64_t>(value_); }

  // A value of another type gives empty, false or zero.
  bool boolean() const;
  double number() const;
  std::uint64_t unsigned_integer() const;
  std::int64_t signed_integer() const;
  const std::string& string() const;
  const Array& elements() const;
  const Object& members() const;

  /// The value as text; `indent` 0 gives one line. Bytes that are not UTF-8 are replaced.
  std::string dump(int indent = 2) const;

  /// Accepts any bytes. Error config.bad_json with line and column: also for numbers beyond a double, and for values nested
  /// deeper than kDeepest.
  static Result<Json> parse(std::string_view text);

 private:
  explicit Json(Array value) : value_(std::move(value)) {}
  explicit Json(Object value) : value_(std::move(value)) {}

  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, Array, Object> value_;
};

}  // namespace rodeo::settings
