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
#include "settings/json.h"

namespace rodeo::cli {

using settings::Json;

enum class OutputFormat : std::uint8_t { table, json, csv };

/// Meaning of a cell, shown as colour on a terminal that wants colours.
enum class Style : std::uint8_t { plain, good, warning, bad, faint, strong };

/// Whether colours are wanted there: a terminal, and no NO_COLOR.
bool colours_on_stdout();
bool colours_on_stderr();

/// The text in the colours of a style, or as it is if `colours` is false.
std::string styled(std::string_view text, Style style, bool colours);

struct Column {
  std::string title;  ///< for people, with the unit: "rate [MHz]"
  std::string key;    ///< for JSON and CSV, with the base unit: "rate_hz"
};

/// A value, how a table shows it (empty: as it is) and what it means.
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

/// Rows of cells under columns. Numbers are aligned to the right.
class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// As many cells as there are columns.
  void add_row(std::vector<Cell> cells);

  std::size_t rows() const { return rows_.size(); }

  /// An array with one object a row.
  Json json() const;
  /// `header`: with a line of the columns' keys first.
  std::string csv(bool header = true) const;
  std::string text(bool colours) const;

  /// On stdout, in the format asked for. What is printed `again` and again is one stream: JSON a line each time, CSV with its
  /// header the first time only.
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

/// Objects as one CSV table: a line each, with the members that the first has; lists and objects among them only if they are `nested`.
void print_csv(const std::vector<Json>& objects, bool nested = false);

/// A member of an object, which must outlive it; null if it has none of this name.
const Json& member(const Json& object, std::string_view key);

/// Columns that a text takes on a terminal: bytes that continue a UTF-8 character take none.
std::size_t width(std::string_view text);

/// Writes text to stdout as it is.
void print(std::string_view text);

/// Writes a text for people to stderr, and never throws: where nobody can be told (stderr is closed, or a full disk), what is done goes on.
template <typename... Values>
void say(fmt::format_string<Values...> text, Values&&... values) {
  const std::string said = fmt::format(text, std::forward<Values>(values)...);
  std::fwrite(said.data(), 1, said.size(), stderr);
}

/// Whether write_json() will be able to open the file (error cli.output); leaves no file behind.
Result<void> check_json_target(const std::string& file);

/// Writes a text: to stdout if `file` is "-", else to the file (error cli.output), which is there whole or as it was before.
Result<void> write_text(const std::string& file, std::string_view text);

/// The same with a JSON value, for programs.
Result<void> write_json(const std::string& file, const Json& value);

/// What a verb has found: to `file` if one is named (see write_json()), and, unless that was stdout, as `format` asks: a table is printed by
/// `print_table`, CSV has the members that are no lists or objects.
Result<void> show(const Json& value, const std::string& file, OutputFormat format, const std::function<void()>& print_table);

}  // namespace rodeo::cli
