// Data on stdout: tables for people, JSON and CSV for programs, from one description.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/terminal_text.h"
#include "settings/json.h"

namespace rodeo::cli {

using settings::Json;

enum class OutputFormat : std::uint8_t { table, json, csv };

/// Meaning of a cell; a terminal shows it as a colour.
enum class Style : std::uint8_t { plain, good, warning, bad, faint, strong };

/// True on a terminal without NO_COLOR.
bool colours_on_stdout();
bool colours_on_stderr();

/// The text in the colours of a style; unchanged if `colours` is false.
std::string styled(std::string_view text, Style style, bool colours);

struct Column {
  std::string title;  ///< for people, with the unit: "rate [MHz]"
  std::string key;    ///< for JSON and CSV, with the base unit: "rate_hz"
  /// Hides the column from people if it says nothing in any row: no value, zero, or false, and no fault.
  bool if_any = false;
};

/// A value, its text in a table (empty: the value itself) and its meaning.
struct Cell {
  Json value;
  std::string text = {};
  Style style = Style::plain;

  Cell(Json given, std::string shown = {}, Style meaning = Style::plain)
      : value(std::move(given)), text(std::move(shown)), style(meaning) {}
  template <typename T>
    requires std::constructible_from<Json, T>
  Cell(T given) : value(std::move(given)) {}
};

/// Rows of cells under columns. Numbers are aligned to the right. If a table is wider than the terminal, its titles take
/// several lines, then its longest text. If that is not enough, the last columns follow below each row.
class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// `cells` has one cell for each column.
  void add_row(std::vector<Cell> cells);

  std::size_t rows() const { return rows_.size(); }

  /// An array with one object for each row.
  Json json() const;
  /// `header`: the first line has the columns' keys.
  std::string csv(bool header = true) const;
  /// `columns`: the width of the terminal; 0 is unlimited.
  std::string text(bool colours, std::size_t columns = 0) const;

  /// Prints on stdout in this format. Repeated output (`again`) is one stream: JSON has one line each time, CSV has its
  /// header only the first time.
  void print(OutputFormat format, bool again = false, bool first = true) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

/// Names and values below each other, for one object: keys in JSON, titles for people. CSV gives two lines.
class Properties {
 public:
  void add(std::string title, std::string key, Cell cell) {
    entries_.push_back({std::move(title), std::move(key), std::move(cell)});
  }
  Json json() const;
  void print(OutputFormat format) const;

 private:
  struct Entry {
    std::string title;
    std::string key;
    Cell cell;
  };
  std::vector<Entry> entries_;
};

/// Objects as one CSV table: one line for each, with the members of the first object. Lists and objects are included only
/// with `nested`.
void print_csv(const std::vector<Json>& objects, bool nested = false);

/// A member of an object; null if there is no such member. The object must outlive the result.
const Json& member(const Json& object, std::string_view key);

/// Writes text to stdout unchanged.
void print(std::string_view text);
/// Writes a text for people to stdout, in lines that fit the terminal.
void print_folded(std::string_view text);

/// Writes a text for people to stderr, in lines that fit the terminal. Never fails: errors of stderr are ignored.
template <typename... Values>
void say(fmt::format_string<Values...> text, Values&&... values) {
  base::say_folded(fmt::format(text, std::forward<Values>(values)...));
}

/// Checks that write_json() can open the file (error cli.output). Leaves no file behind.
Result<void> check_json_target(const std::string& file);

/// Writes a text to stdout if `file` is "-", else to the file (error cli.output). On an error the old file stays unchanged.
Result<void> write_text(const std::string& file, std::string_view text);

/// Writes a JSON value in the same way.
Result<void> write_json(const std::string& file, const Json& value);

/// Writes the result of a verb to `file` if given (see write_json()). Unless that was stdout, it also prints the result in
/// `format`: `print_table` prints a table; CSV has all members except lists and objects.
Result<void> show(const Json& value, const std::string& file, OutputFormat format, const std::function<void()>& print_table);

}  // namespace rodeo::cli
