// What a person sees of a run on stderr: a block of lines redrawn once a second on a terminal, a line every few seconds elsewhere.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace rodeo::process {

/// How lines are dressed.
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

/// "[######......]  50 %", of a fill from 0 to 1.
std::string bar(double fill);

/// "1:02:03"
std::string clock_text(double seconds);

/// A line with as many of its parts as fit into the columns; the others go on in lines below it. Parts begin with the blanks that keep them apart.
void add_line(std::vector<std::string>& lines, std::string line, const std::vector<std::string>& parts, int columns);

/// Shows a run on stderr. One thread.
class LiveView {
 public:
  LiveView();

  /// Draws if it is time to, `seconds` into the run: the block on a terminal, else the line. True if it has drawn.
  bool show(double seconds, const std::function<std::vector<std::string>(ViewStyle)>& block,
            const std::function<std::string()>& line);

  /// Says something that stays on the screen, above the block.
  void say(const std::string& line);

  /// Takes the block off the screen: the report says how the run ended.
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
