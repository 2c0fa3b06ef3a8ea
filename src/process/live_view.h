// The progress of a run on stderr: on a terminal a block of lines, redrawn once a second; elsewhere a line every few
// seconds.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace rodeo::process {

/// Colours and width of the lines.
struct ViewStyle {
  bool color = false;
  int columns = 80;
};

class Painter {
 public:
  explicit Painter(ViewStyle style) : style_(style) {}
  std::string bold(const std::string& text) const { return paint("1", text); }
  std::string dim(const std::string& text) const { return paint("2", text); }
  std::string good(const std::string& text) const { return paint("32", text); }
  std::string warn(const std::string& text) const { return paint("33", text); }
  std::string bad(const std::string& text) const { return paint("31", text); }

 private:
  std::string paint(const char* code, const std::string& text) const;
  ViewStyle style_;
};

/// "[######......]  50 %". `fill` is from 0 to 1.
std::string bar(double fill);

/// "1:02:03"
std::string clock_text(double seconds);

/// Adds a line with as many parts as fit into `columns`. The other parts follow on further lines. Each part begins with
/// blanks that separate it.
void add_line(std::vector<std::string>& lines, std::string line, const std::vector<std::string>& parts, int columns);

/// Shows a run on stderr. One thread.
class LiveView {
 public:
  LiveView();

  /// Draws if the interval has passed: the block on a terminal, else the line. `seconds`: time of the run. True if drawn.
  bool show(double seconds, const std::function<std::vector<std::string>(ViewStyle)>& block,
            const std::function<std::string()>& line);

  /// Prints a line that stays on the screen, above the block.
  void say(const std::string& line);

  /// Removes the block from the screen: the report follows.
  void finish() { erase(); }

 private:
  void erase();

  bool terminal_ = false;
  ViewStyle style_;
  double interval_s_ = 1;
  double shown_s_ = 0;
  bool drawn_ = false;
};

}  // namespace rodeo::process
