#include "cli/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/terminal_text.h"

namespace rodeo::cli {

using base::without_control_characters;

namespace {

bool colours_on(int descriptor) {
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') return false;
  const char* terminal = std::getenv("TERM");
  return isatty(descriptor) == 1 && (terminal == nullptr || std::strcmp(terminal, "dumb") != 0);
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
  const std::string blanks(to > width(text) ? to - width(text) : 0, ' ');
  return right ? blanks + text : text + blanks;
}

}  // namespace

std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

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

std::string Table::text(bool colours) const {
  std::vector<std::size_t> widths;
  std::vector<bool> right;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t widest = width(columns_[i].title);
    bool numbers = !rows_.empty();
    for (const auto& row : rows_) {
      widest = std::max(widest, width(shown(row[i])));
      numbers = numbers && (row[i].value.is_number() || row[i].value.is_null());
    }
    widths.push_back(widest);
    right.push_back(numbers);
  }
  std::string text;
  const auto add_line = [&](const auto& cell_text, const auto& cell_style) {
    std::string line;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string field = padded(cell_text(i), widths[i], right[i]);
      line += (i == 0 ? "" : "  ") + styled(field, cell_style(i), colours);
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    text += line + '\n';
  };
  add_line([&](std::size_t i) { return columns_[i].title; }, [](std::size_t) { return Style::strong; });
  for (const auto& row : rows_) {
    add_line([&](std::size_t i) { return shown(row[i]); }, [&](std::size_t i) { return row[i].style; });
  }
  return text;
}

void Table::print(OutputFormat format, bool again, bool first) const {
  switch (format) {
    case OutputFormat::table: return cli::print(text(colours_on_stdout()));
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
  for (const Entry& entry : entries_) widest = std::max(widest, width(entry.title));
  const bool colours = colours_on_stdout();
  for (const Entry& entry : entries_) {
    cli::print(
        fmt::format("{}  {}\n", padded(entry.title, widest, false), styled(shown(entry.cell), entry.cell.style, colours)));
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
