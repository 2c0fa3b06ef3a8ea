#include "cli/wrapped.h"

#include <unistd.h>

#include <algorithm>

#include "base/terminal_text.h"

namespace rodeo::cli {

using base::shown_width;

std::size_t columns_on_stdout() {
  constexpr std::size_t kWidest = 100;
  constexpr std::size_t kNarrowest = 40;
  const std::size_t columns = base::terminal_columns(STDOUT_FILENO);
  return columns == 0 ? kWidest : std::clamp(columns, kNarrowest, kWidest);
}

std::string wrapped(std::string_view text, std::size_t columns, std::size_t indent, std::size_t first,
                    std::string_view joint) {
  std::string out;
  std::size_t at = first;
  bool begun = false;  // the line has text already
  const auto new_line = [&] {
    out.append("\n").append(indent, ' ');
    at = indent;
    begun = false;
  };
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" \n"), text.size());
    std::string_view word = text.substr(0, end);
    const std::size_t limit = columns - std::min(columns, joint.size());
    if (begun && !word.empty() && at + 1 + shown_width(word) > limit) {
      out += joint;
      new_line();
    }
    if (begun) {
      out += ' ';
      ++at;
    }
    // A list of choices may be broken behind a `|`.
    while (at + shown_width(word) > columns && word.find('|') < word.size() - 1) {
      const std::size_t room = columns > at ? columns - at : 1;
      std::size_t bar = word.rfind('|', room - 1);
      if (bar == std::string_view::npos) bar = word.find('|');
      out += word.substr(0, bar + 1);
      word.remove_prefix(bar + 1);
      new_line();
    }
    out += word;
    at += shown_width(word);
    begun = true;
    if (end < text.size() && text[end] == '\n') new_line();
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace rodeo::cli
