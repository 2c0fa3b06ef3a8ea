// A TOML file as a tree of values with their places. Only toml_file.cpp includes the library behind it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace rodeo::settings {

/// Line and column, counted from 1; 0: no place.
struct Place {
  std::uint32_t line = 0;
  std::uint32_t column = 0;
};

struct RawValue {
  enum class Kind : std::uint8_t {
    boolean,
    integer,
    real,
    text,
    other,  ///< dates and times, which no key accepts
    array,
    table,
    word,  ///< text from a flag or the environment; the key decides its type
  };

  struct Member;

  Kind kind = Kind::table;
  bool boolean = false;
  std::int64_t integer = 0;
  double real = 0;
  std::string text;  ///< the characters of a text or word
  std::vector<RawValue> elements;
  std::vector<Member> members;  ///< the members in the order of the file
  Place place;                  ///< place of the value

  RawValue* find(std::string_view name);
  const RawValue* find(std::string_view name) const;

  /// "the integer 10", "the text \"abc\"", "a table".
  std::string describe() const;
  /// The value as written in a file.
  std::string written() const;
};

struct RawValue::Member {
  std::string name;
  Place place;  ///< place of the key
  RawValue value;
};

/// Errors: config.unreadable, config.syntax (with file:line:column; duplicate keys and tables are among them).
Result<RawValue> read_toml_file(const std::filesystem::path& file);
Result<RawValue> parse_toml(std::string_view text, std::string_view name);

}  // namespace rodeo::settings
