#include "process/live_view.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/log.h"
#include "base/terminal_text.h"

namespace rodeo::process {

using base::shown_width;

namespace {

constexpr double kTerminalIntervalSeconds = 1;
constexpr double kPlainIntervalSeconds = 5;
constexpr int kBarCells = 12;

/// Cuts a line to a number of visible characters. Colour sequences have no width.
std::string cut(const std::string& line, int columns) {
  std::string out;
  int visible = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b') {
      const std::size_t end = std::min(line.find('m', i), line.size() - 1);
      out.append(line, i, end - i + 1);
      i = end;
    } else if ((line[i] & 0xc0) == 0x80) {
      if (visible <= columns) out += line[i];  // continues the last character
    } else if (visible++ < columns) {
      out += line[i];
    }
  }
  return out;
}

}  // namespace

std::string Painter::paint(const char* code, const std::string& text) const {
  return style_.color ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
}

std::string bar(double fill) {
  const int cells = static_cast<int>(std::clamp(std::lround(fill * kBarCells), 0L, long{kBarCells}));
  return fmt::format("[{:#<{}}{:.<{}}] {:>3.0f} %", "", cells, "", kBarCells - cells, std::clamp(fill, 0.0, 1.0) * 100);
}

std::string clock_text(double seconds) {
  const auto whole = static_cast<std::uint64_t>(seconds);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

void add_line(std::vector<std::string>& lines, std::string line, const std::vector<std::string>& parts, int columns) {
  constexpr int kIndent = 13;
  for (const std::string& part : parts) {
    if (shown_width(line) + shown_width(part) > static_cast<std::size_t>(columns)) {
      lines.push_back(cut(std::exchange(line, std::string(kIndent, ' ')), columns));
      line += part.substr(std::min(part.find_first_not_of(' '), part.size()));
    } else {
      line += part;
    }
  }
  lines.push_back(cut(line, columns));
}

LiveView::LiveView() {
  const char* term = std::getenv("TERM");
  terminal_ = ::isatty(STDERR_FILENO) == 1 && term != nullptr && std::string(term) != "dumb";
  const char* no_color = std::getenv("NO_COLOR");
  style_.color = terminal_ && (no_color == nullptr || *no_color == '\0');
  interval_s_ = terminal_ ? kTerminalIntervalSeconds : kPlainIntervalSeconds;
}

bool LiveView::show(double seconds, const std::function<std::vector<std::string>(ViewStyle)>& block,
                    const std::function<std::string()>& line) {
  if (seconds - shown_s_ < interval_s_) return false;
  shown_s_ = seconds;
  if (!terminal_) {
    std::fprintf(stderr, "%s\n", line().c_str());
    return true;
  }
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0;
  style_.columns = static_cast<int>(base::terminal_columns(STDERR_FILENO));
  std::vector<std::string> lines = block(style_);
  // Lines that scrolled out of sight cannot be drawn over.
  if (known && size.ws_row > 3 && lines.size() + 2 > size.ws_row) {
    lines.resize(size.ws_row - 3U);
    lines.emplace_back("  ...");
  }
  erase();
  // The cursor returns to an empty line above the block. Output of others goes there, and the block stays below it.
  std::string text;
  for (const std::string& one : lines) text += "\n" + one;
  std::fprintf(stderr, "%s\x1b[%zuF", text.c_str(), lines.size());
  base::erase_before_log_lines(true);
  drawn_ = true;
  return true;
}

void LiveView::erase() {
  if (drawn_) std::fputs("\r\x1b[J", stderr);
  base::erase_before_log_lines(false);
  drawn_ = false;
}

void LiveView::say(const std::string& line) {
  erase();
  std::fprintf(stderr, "%s\n", base::folded(line, base::terminal_columns(STDERR_FILENO)).c_str());
}

}  // namespace rodeo::process
