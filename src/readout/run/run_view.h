// What a person sees of a run: a block of lines redrawn once a second on a terminal, a line every few seconds elsewhere.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "readout/readout_status.h"
#include "readout/settings.h"

namespace rodeo::readout {

/// How lines are dressed.
struct ViewStyle {
  bool color = false;
  int columns = 80;
};

/// The block for a terminal: rates between two looks, totals, fill levels, what limits the run. No line is wider than the
/// terminal: what does not fit goes on in the next, and no number is cut.
std::vector<std::string> view_lines(const ReadoutSettings& settings, const ReadoutStatus& before, const ReadoutStatus& now,
                                    ViewStyle style);

/// The same in one line, for logs.
std::string view_line(const ReadoutStatus& before, const ReadoutStatus& now);

/// Shows a run on stderr. One thread.
class RunView {
 public:
  explicit RunView(const ReadoutSettings& settings);

  /// Draws if it is time to.
  void show(const ReadoutStatus& now);

  /// Says something that stays on the screen, above the block.
  void say(const std::string& line);

  /// Takes the block off the screen: the report says how the run ended.
  void finish();

 private:
  void erase();
  void draw(const ReadoutStatus& now);

  const ReadoutSettings& settings_;
  bool terminal_ = false;
  ViewStyle style_;
  double interval_s_ = 1;
  double shown_s_ = 0;
  bool drawn_ = false;
  ReadoutStatus before_;
};

}  // namespace rodeo::readout
