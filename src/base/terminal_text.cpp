#include "base/terminal_text.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace rodeo::base {

std::string without_control_characters(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto letter = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0U;
    if (letter == 0xc2 && next >= 0x80 && next <= 0x9f) {
      out += '?';
      ++i;
    } else if ((letter < ' ' && letter != '\n' && letter != '\t') || letter == 0x7f) {
      out += '?';
    } else {
      out += text[i];
    }
  }
  return out;
}

std::size_t terminal_columns(int descriptor) {
  constexpr std::size_t kUsual = 80, kNarrowest = 20;
  if (::isatty(descriptor) != 1) return 0;
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsual;
  return size.ws_col >= kNarrowest ? size.ws_col : 0;
}

std::size_t shown_width(std::string_view text) {
  std::size_t columns = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      i = std::min(text.find('m', i), text.size() - 1);
    } else if ((text[i] & 0xc0) != 0x80) {
      ++columns;  // the other bytes continue a UTF-8 character
    }
  }
  return columns;
}

namespace {

/// The column in which the continuation of a line begins.
std::size_t indent_of(std::string_view line, std::size_t columns) {
  constexpr std::size_t kLongestLabel = 28;
  const std::size_t first = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t gap = line.find("  ", first);
  const std::size_t text = gap == std::string_view::npos ? gap : line.find_first_not_of(' ', gap);
  if (text == std::string_view::npos) return std::min(first + 2, columns / 2);
  const std::size_t label = shown_width(line.substr(0, text));
  return label <= std::min(kLongestLabel, columns / 2) ? label : std::min(first + 2, columns / 2);
}

void fold_line(std::string& out, std::string_view line, std::size_t columns) {
  const std::size_t indent = indent_of(line, columns);
  std::size_t at = 0;
  while (!line.empty()) {
    // A word, with the blanks before it.
    const std::size_t from = std::min(line.find_first_not_of(' '), line.size());
    const std::size_t end = std::min(line.find(' ', from), line.size());
    const std::string_view word = line.substr(from, end - from);
    if (at > indent && at + from + shown_width(word) > columns) {
      out.append("\n").append(indent, ' ').append(word);
      at = indent + shown_width(word);
    } else {
      out += line.substr(0, end);
      at += from + shown_width(word);
    }
    line.remove_prefix(end);
  }
}

}  // namespace

std::string folded(std::string_view text, std::size_t columns) {
  if (columns == 0) return std::string(text);
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (shown_width(line) <= columns) {
      out += line;
    } else {
      fold_line(out, line, columns);
    }
    if (end < text.size()) out += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

void say_folded(std::string_view text) {
  const std::string said = folded(text, terminal_columns(STDERR_FILENO));
  std::fwrite(said.data(), 1, said.size(), stderr);
}

}  // namespace rodeo::base
