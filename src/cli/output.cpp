#include "cli/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <span>
#include <system_error>

#include "base/terminal_text.h"
#include "cli/wrapped.h"

namespace rodeo::cli {

using base::shown_width;
using base::without_control_characters;

namespace {

bool colours_on(int descriptor) {
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') return false;
  const char* terminal = std::getenv("TERM");
  return isatty(descriptor) == 1 && (terminal == nullptr || std::strcmp(terminal, "dumb") != 0);
}

/// Four digits of a fraction; whole numbers stay whole.
std::string rounded(double value) {
  return std::fabs(value) < 1000 ? fmt::format("{:.4g}", value) : fmt::format("{:.0f}", value);
}

std::string shown(const Cell& cell) {
  if (!cell.text.empty()) return without_control_characters(cell.text);
  if (cell.value.is_null()) return "-";
  if (cell.value.is_boolean()) return cell.value.boolean() ? "yes" : "no";
  if (cell.value.is_string()) return without_control_characters(cell.value.string());
  if (cell.value.is_array()) {
    std::string list;
    for (const Json& element : cell.value.elements()) list += (list.empty() ? "" : ", ") + shown(Cell(element));
    return list;
  }
  if (cell.value.is_number() && !cell.value.is_signed() && !cell.value.is_unsigned()) return rounded(cell.value.number());
  return cell.value.dump(0);
}

std::string csv_field(const Json& value) {
  std::string text = value.is_null() ? "" : value.is_string() ? value.string() : value.dump(0);
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string padded(const std::string& text, std::size_t to, bool right) {
  const std::string blanks(to > shown_width(text) ? to - shown_width(text) : 0, ' ');
  return right ? blanks + text : text + blanks;
}

constexpr std::size_t kBetween = 2;      // blanks between two columns
constexpr std::size_t kNarrowText = 20;  // a column of text is not made narrower than this

bool says_something(const Cell& cell) {
  const Json& value = cell.value;
  if (cell.style == Style::bad || cell.style == Style::warning) return true;
  if (value.is_null()) return false;
  if (value.is_boolean()) return value.boolean();
  if (value.is_number()) return value.number() != 0;
  if (value.is_array() || value.is_object()) return !value.elements().empty() || !value.members().empty();
  return !value.is_string() || !value.string().empty();
}

std::size_t longest_word(std::string_view text) {
  std::size_t longest = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    longest = std::max(longest, shown_width(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return longest;
}

std::vector<std::string> lines_of(const std::string& text, std::size_t columns) {
  std::vector<std::string> lines;
  const std::string all = shown_width(text) > columns ? wrapped(text, columns, 0) : text;
  for (std::size_t from = 0; from <= all.size();) {
    const std::size_t end = std::min(all.find('\n', from), all.size());
    lines.push_back(all.substr(from, end - from));
    from = end + 1;
  }
  return lines;
}

/// "cpu [cores]" and "0.72" give "cpu 0.72 cores".
std::string with_title(std::string_view title, const std::string& value) {
  const std::size_t unit = title.ends_with(']') ? title.rfind(" [") : std::string_view::npos;
  if (unit == std::string_view::npos) return fmt::format("{} {}", title, value);
  return fmt::format("{} {} {}", title.substr(0, unit), value, title.substr(unit + 2, title.size() - unit - 3));
}

/// One column as people see it.
struct Field {
  std::string title;
  std::vector<std::string> texts;  // of all rows
  std::vector<Style> styles;
  std::size_t widest = 0;
  std::size_t width = 0;
  bool right = false;
};

std::size_t width_of(std::span<const Field> fields) {
  std::size_t sum = 0;
  for (const Field& field : fields) sum += field.width + (sum > 0 ? kBetween : 0);
  return sum;
}

/// Chooses the widths. Returns the number of fields that fit beside each other.
std::size_t fit(std::vector<Field>& fields, std::size_t columns) {
  for (Field& field : fields) field.width = std::max(field.widest, shown_width(field.title));
  if (columns == 0 || width_of(fields) <= columns) return fields.size();
  for (Field& field : fields) field.width = std::max(field.widest, longest_word(field.title));
  const std::size_t all = width_of(fields);
  if (all <= columns) return fields.size();
  const auto widest = std::ranges::max_element(fields, {}, [](const Field& field) { return field.right ? 0 : field.width; });
  std::size_t least = std::max(kNarrowText, longest_word(widest->title));
  for (const std::string& text : widest->texts) least = std::max(least, longest_word(text));
  if (!widest->right && all - widest->width + least <= columns) {
    widest->width -= all - columns;
    return fields.size();
  }
  std::size_t beside = fields.size() - 1;
  while (beside > 1 && width_of(std::span(fields).first(beside)) > columns) --beside;
  return beside;
}

/// The lines of one row of fields beside each other, for the titles from below.
std::string row_text(std::span<const Field> fields, const std::function<const std::string&(const Field&)>& text,
                     const std::function<Style(const Field&)>& style, bool from_below, bool colours) {
  std::vector<std::vector<std::string>> cells;
  std::size_t high = 1;
  for (const Field& field : fields) high = std::max(high, cells.emplace_back(lines_of(text(field), field.width)).size());
  std::string out;
  for (std::size_t line = 0; line < high; ++line) {
    std::string whole;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const std::size_t skipped = from_below ? high - cells[i].size() : 0;
      const bool there = line >= skipped && line - skipped < cells[i].size();
      const std::string field = padded(there ? cells[i][line - skipped] : "", fields[i].width, fields[i].right);
      whole += std::string(i == 0 ? 0 : kBetween, ' ') + (there ? styled(field, style(fields[i]), colours) : field);
    }
    while (!whole.empty() && whole.back() == ' ') whole.pop_back();
    out += whole + '\n';
  }
  return out;
}

/// The fields that did not fit, with their titles, below a row.
std::string below_text(std::span<const Field> fields, std::size_t row, std::size_t columns, bool colours) {
  constexpr std::size_t kIndent = 4;
  std::string out;
  std::size_t at = 0;
  for (const Field& field : fields) {
    if (field.texts[row].empty() || field.texts[row] == "-") continue;
    const std::string part = with_title(field.title, field.texts[row]);
    if (at > 0 && at + kBetween + shown_width(part) <= columns) {
      out.append(kBetween, ' ');
      at += kBetween + shown_width(part);
    } else {
      if (at > 0) out += '\n';
      out.append(kIndent, ' ');
      at = kIndent + shown_width(part);
    }
    out += styled(at > columns ? wrapped(part, columns, kIndent + 2, kIndent) : part, field.styles[row], colours);
  }
  return at > 0 ? out + '\n' : out;
}

}  // namespace

bool colours_on_stdout() { return colours_on(STDOUT_FILENO); }
bool colours_on_stderr() { return colours_on(STDERR_FILENO); }

std::string styled(std::string_view text, Style style, bool colours) {
  if (!colours || style == Style::plain) return std::string(text);
  const char* sequence = "";
  switch (style) {
    case Style::good: sequence = "\x1b[32m"; break;
    case Style::warning: sequence = "\x1b[33m"; break;
    case Style::bad: sequence = "\x1b[31m"; break;
    case Style::faint: sequence = "\x1b[2m"; break;
    case Style::strong: sequence = "\x1b[1m"; break;
    case Style::plain: break;
  }
  return fmt::format("{}{}\x1b[0m", sequence, text);
}

void Table::add_row(std::vector<Cell> cells) {
  cells.resize(columns_.size(), Cell(Json()));
  rows_.push_back(std::move(cells));
}

Json Table::json() const {
  Json list = Json::array();
  for (const auto& row : rows_) {
    Json object = Json::object();
    for (std::size_t i = 0; i < columns_.size(); ++i) object[columns_[i].key] = row[i].value;
    list.push_back(std::move(object));
  }
  return list;
}

std::string Table::csv(bool header) const {
  std::string text;
  for (std::size_t i = 0; header && i < columns_.size(); ++i) text += (i == 0 ? "" : ",") + csv_field(columns_[i].key);
  if (header) text += '\n';
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) text += (i == 0 ? "" : ",") + csv_field(row[i].value);
    text += '\n';
  }
  return text;
}

std::string Table::text(bool colours, std::size_t columns) const {
  std::vector<Field> fields;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].if_any && std::ranges::none_of(rows_, [&](const auto& row) { return says_something(row[i]); })) continue;
    Field& field = fields.emplace_back();
    field.title = columns_[i].title;
    field.right = !rows_.empty();
    for (const auto& row : rows_) {
      field.widest = std::max(field.widest, shown_width(field.texts.emplace_back(shown(row[i]))));
      field.styles.push_back(row[i].style);
      field.right = field.right && (row[i].value.is_number() || row[i].value.is_null());
    }
  }
  if (fields.empty()) return {};
  const std::size_t count = fit(fields, columns);
  const auto beside = std::span(fields).first(count);
  std::string text = row_text(
      beside, [](const Field& field) -> const std::string& { return field.title; },
      [](const Field&) { return Style::strong; }, true, colours);
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    text += row_text(
        beside, [&](const Field& field) -> const std::string& { return field.texts[row]; },
        [&](const Field& field) { return field.styles[row]; }, false, colours);
    text += below_text(std::span(fields).subspan(count), row, columns, colours);
  }
  return text;
}

void Table::print(OutputFormat format, bool again, bool first) const {
  switch (format) {
    case OutputFormat::table: return cli::print(text(colours_on_stdout(), base::terminal_columns(STDOUT_FILENO)));
    case OutputFormat::json: return cli::print(json().dump(again ? 0 : 2) + "\n");
    case OutputFormat::csv: return cli::print(csv(first));
  }
}

Json Properties::json() const {
  Json object = Json::object();
  for (const Entry& entry : entries_) object[entry.key] = entry.cell.value;
  return object;
}

void Properties::print(OutputFormat format) const {
  if (format == OutputFormat::json) return cli::print(json().dump() + "\n");
  if (format == OutputFormat::csv) {
    std::vector<Column> columns;
    std::vector<Cell> row;
    for (const Entry& entry : entries_) {
      columns.push_back({entry.title, entry.key});
      row.push_back(entry.cell);
    }
    Table table(std::move(columns));
    table.add_row(std::move(row));
    return cli::print(table.csv());
  }
  std::size_t widest = 0;
  for (const Entry& entry : entries_) widest = std::max(widest, shown_width(entry.title));
  const bool colours = colours_on_stdout();
  const std::size_t columns = base::terminal_columns(STDOUT_FILENO);
  for (const Entry& entry : entries_) {
    const std::string text = shown(entry.cell);
    // A word that does not fit beside the title, a path or a hash, stands below it.
    const bool below = columns != 0 && widest + kBetween + longest_word(text) > columns;
    const std::size_t indent = below ? 4 : widest + kBetween;
    const std::string fitted = columns == 0 ? text : wrapped(text, columns, indent, indent);
    const std::string title = below ? entry.title + "\n    " : padded(entry.title, widest + kBetween, false);
    cli::print(title + styled(fitted, entry.cell.style, colours) + "\n");
  }
}

void print_csv(const std::vector<Json>& objects, bool nested) {
  if (objects.empty()) return;
  std::vector<Column> columns;
  for (const auto& [key, value] : objects.front().members()) {
    if (nested || (!value.is_array() && !value.is_object())) columns.push_back({key, key});
  }
  Table table(columns);
  for (const Json& object : objects) {
    std::vector<Cell> row;
    for (const Column& column : columns) row.emplace_back(member(object, column.key));
    table.add_row(std::move(row));
  }
  table.print(OutputFormat::csv);
}

const Json& member(const Json& object, std::string_view key) {
  static const Json kNothing;
  const Json* const found = object.find(key);
  return found == nullptr ? kNothing : *found;
}

void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void print_folded(std::string_view text) { print(base::folded(text, base::terminal_columns(STDOUT_FILENO))); }

namespace {

std::unexpected<Error> cannot_write(const std::string& file, int reason) {
  return std::unexpected(Error{"cli.output", fmt::format("cannot write {}: {}", file, std::strerror(reason)), "",
                               "name a file in an existing directory that you may write to, or - for stdout"});
}

}  // namespace

Result<void> check_json_target(const std::string& file) {
  if (file == "-") return {};
  // Remove the file again only if it did not exist before.
  const int made = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  const int fd = made >= 0 ? made : errno == EEXIST ? ::open(file.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK) : -1;
  // ENXIO: a pipe without a reader; writing will wait for the reader.
  if (fd < 0) return errno == ENXIO ? Result<void>{} : cannot_write(file, errno);
  ::close(fd);
  if (made >= 0) ::unlink(file.c_str());
  return {};
}

namespace {

/// On false, errno has the reason.
bool write_and_close(std::FILE* out, std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), out) == text.size();
  const int error = errno;
  const bool closed = std::fclose(out) == 0;
  if (!written) errno = error;
  return written && closed;
}

}  // namespace

Result<void> write_text(const std::string& file, std::string_view text) {
  if (file == "-") {
    print(text);
    (void)std::fflush(stdout);  // complete, even if a signal follows; errors of stdout are checked at the end
    return {};
  }
  // Write to a temporary file and rename it: on a full disk the old file stays. Pipes and links, and files in a directory
  // that accepts no new file, are written directly.
  std::error_code ignored;
  const auto type = std::filesystem::symlink_status(file, ignored).type();
  if (type == std::filesystem::file_type::regular || type == std::filesystem::file_type::not_found) {
    const std::string part = fmt::format("{}.{}.part", file, ::getpid());
    if (std::FILE* out = std::fopen(part.c_str(), "wxe"); out != nullptr) {
      if (write_and_close(out, text) && std::rename(part.c_str(), file.c_str()) == 0) return {};
      const int error = errno;
      (void)::unlink(part.c_str());
      return cannot_write(file, error);
    }
  }
  std::FILE* out = std::fopen(file.c_str(), "we");
  if (out == nullptr || !write_and_close(out, text)) return cannot_write(file, errno);
  return {};
}

Result<void> write_json(const std::string& file, const Json& value) { return write_text(file, value.dump() + "\n"); }

Result<void> show(const Json& value, const std::string& file, OutputFormat format,
                  const std::function<void()>& print_table) {
  if (!file.empty()) RODEO_TRY(write_json(file, value));
  if (file == "-") return {};
  switch (format) {
    case OutputFormat::table: print_table(); break;
    case OutputFormat::json: print(value.dump() + "\n"); break;
    case OutputFormat::csv: print_csv({value}); break;
  }
  return {};
}

}  // namespace rodeo::cli
