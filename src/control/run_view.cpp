#include "control/run_view.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "base/units.h"

namespace rodeo::control {
namespace {

using readout::counter_value;
using readout::find_counter;
using readout::Phase;
using readout::ReadoutStatus;

constexpr double kTerminalIntervalSeconds = 1;
constexpr double kPlainIntervalSeconds = 5;
constexpr int kBarCells = 12;

struct Rates {
  double triggers_hz = 0;
  std::optional<double> dead_time;  // nothing where the input does not count what was vetoed
  double chunks_hz = 0;
  double fragments_hz = 0;
  double payload_bytes_s = 0;
  double written_bytes_s = 0;
};

std::uint64_t written_bytes(const ReadoutStatus& status) {
  std::uint64_t sum = 0;
  for (const auto& consumer : status.consumers) sum += counter_value(consumer.counters, "bytes_written");
  return sum;
}

std::uint64_t lost_chunks(const ReadoutStatus& status) {
  std::uint64_t sum = 0;
  for (const auto& rob : status.robs) {
    for (const NamedCounter& reason : rob.builder.lost) sum += reason.value;
  }
  return sum;
}

Rates rates_between(const ReadoutStatus& before, const ReadoutStatus& now) {
  const double seconds = now.seconds - before.seconds;
  if (seconds <= 0) return {};
  const auto rate = [&](std::uint64_t from, std::uint64_t to) {
    return to > from ? static_cast<double>(to - from) / seconds : 0;
  };
  Rates out;
  const std::uint64_t triggers = counter_value(now.input, "triggers", now.events());
  const std::uint64_t triggers_before = counter_value(before.input, "triggers", before.events());
  out.triggers_hz = rate(triggers_before, triggers);
  if (const NamedCounter* const vetoed = find_counter(now.input, "vetoed")) {
    const double vetoed_hz = rate(counter_value(before.input, "vetoed"), vetoed->value);
    out.dead_time = out.triggers_hz + vetoed_hz > 0 ? vetoed_hz / (out.triggers_hz + vetoed_hz) : 0;
  }
  out.chunks_hz = rate(before.chunks_built(), now.chunks_built());
  out.fragments_hz = rate(before.fragments, now.fragments);
  out.payload_bytes_s = rate(before.payload_bytes(), now.payload_bytes());
  out.written_bytes_s = rate(written_bytes(before), written_bytes(now));
  return out;
}

std::string dead_time_text(const Rates& rates) {
  return rates.dead_time ? fmt::format("dead time {:.2f} %", *rates.dead_time * 100) : "dead time is not known here";
}

class Painter {
 public:
  explicit Painter(ViewStyle style) : style_(style) {}
  std::string bold(const std::string& text) const { return paint("1", text); }
  std::string dim(const std::string& text) const { return paint("2", text); }
  std::string good(const std::string& text) const { return paint("32", text); }
  std::string warn(const std::string& text) const { return paint("33", text); }
  std::string bad(const std::string& text) const { return paint("31", text); }

 private:
  std::string paint(const char* code, const std::string& text) const {
    return style_.color ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
  }
  ViewStyle style_;
};

std::string bar(double fill) {
  const int cells = static_cast<int>(std::clamp(std::lround(fill * kBarCells), 0L, long{kBarCells}));
  return fmt::format("[{:#<{}}{:.<{}}] {:>3.0f} %", "", cells, "", kBarCells - cells, std::clamp(fill, 0.0, 1.0) * 100);
}

std::string clock_text(double seconds) {
  const auto whole = static_cast<std::uint64_t>(seconds);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

const char* phase_text(Phase phase) {
  switch (phase) {
    case Phase::prepared: return "prepared";
    case Phase::running: return "running";
    case Phase::draining: return "draining";
    case Phase::stopped: return "ended";
  }
  return "";
}

/// "12 (time_out 10, bcid_mismatch 2)"
std::string with_reasons(std::uint64_t total, const std::vector<NamedCounter>& reasons) {
  std::string out = base::format_count(static_cast<double>(total));
  std::string list;
  for (const NamedCounter& reason : reasons) {
    if (reason.value != 0)
      list += fmt::format("{}{} {}", list.empty() ? "" : ", ", reason.name,
                          base::format_count(static_cast<double>(reason.value)));
  }
  return list.empty() ? out : fmt::format("{} ({})", out, list);
}

/// Cuts to a number of visible characters; colour sequences count nothing.
std::string cut(const std::string& line, int columns) {
  std::string out;
  int visible = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b') {
      const std::size_t end = line.find('m', i);
      out.append(line, i, end - i + 1);
      i = end;
    } else if (visible < columns) {
      out += line[i];
      ++visible;
    }
  }
  return out;
}

std::vector<NamedCounter> summed(const ReadoutStatus& status, std::vector<NamedCounter> FragmentBuilder::Status::* member) {
  std::vector<NamedCounter> out;
  for (const auto& rob : status.robs) {
    for (const NamedCounter& counter : rob.builder.*member) readout::add_counter(out, counter);
  }
  return out;
}

std::string links_text(const ReadoutStatus& now, const Painter& paint) {
  std::uint64_t removed = 0;
  std::string names;
  for (const auto& rob : now.robs) {
    for (const auto& link : rob.builder.links) {
      if (link.state != LinkState::removed) continue;
      if (++removed <= 2) names += fmt::format(" {:#018x}{}", link.fid.value, link.removed_by_policy ? " by policy" : "");
    }
  }
  if (removed == 0) return fmt::format("{} active", now.links());
  return fmt::format("{} active, {}", now.links() - removed,
                     paint.warn(fmt::format("{} removed:{}{}", removed, names, removed > 2 ? " ..." : "")));
}

/// What the report has room for and a glance has not: latencies of single consumers, and what was left unwritten on purpose.
bool for_people(const std::string& counter) {
  return !counter.starts_with("latency_") && !counter.starts_with("unwritten_beyond_") && counter != "past_page_cache";
}

std::string count(std::uint64_t n) { return base::format_count(static_cast<double>(n)); }

}  // namespace

std::vector<std::string> view_lines(const readout::ReadoutSettings& settings, const ReadoutStatus& before,
                                    const ReadoutStatus& now, ViewStyle style) {
  const Painter paint(style);
  const Rates rates = rates_between(before, now);
  const std::uint64_t lost = lost_chunks(now);
  std::vector<std::string> lines;
  lines.push_back(fmt::format("{}  run {}  {} {}   {}", paint.bold("rodeo " + settings.name), settings.run.run_number,
                              phase_text(now.phase), clock_text(now.seconds),
                              paint.dim(now.phase == Phase::running ? "Ctrl-C ends it in order" : "")));
  const std::string dead_time = dead_time_text(rates);
  lines.push_back(fmt::format("  triggers   {:>12}   {}", base::format_quantity(rates.triggers_hz, "Hz"),
                              rates.dead_time.value_or(0) > 0.01 ? paint.warn(dead_time) : dead_time));
  const std::string lost_text = "lost " + with_reasons(lost, summed(now, &FragmentBuilder::Status::lost));
  lines.push_back(fmt::format("  chunks     {:>12}   built {}   {}", base::format_quantity(rates.chunks_hz, "/s"),
                              count(now.chunks_built()), lost > 0 ? paint.bad(lost_text) : lost_text));
  const std::string incomplete_text =
      "incomplete " + with_reasons(now.incomplete(), summed(now, &FragmentBuilder::Status::incomplete_by_reason));
  lines.push_back(fmt::format("  fragments  {:>12}   built {}   {}", base::format_quantity(rates.fragments_hz, "/s"),
                              count(now.fragments), now.incomplete() > 0 ? paint.warn(incomplete_text) : incomplete_text));
  lines.push_back(fmt::format("  payload    {:>12}   written {}", base::format_quantity(rates.payload_bytes_s, "B/s"),
                              base::format_quantity(rates.written_bytes_s, "B/s")));
  lines.push_back(fmt::format("  latency    {:>12}   p99 {:.0f} us   max {:.0f} us",
                              fmt::format("p50 {:.0f} us", now.latency.p50_us), now.latency.p99_us, now.latency.max_us));
  lines.push_back(fmt::format("  links      {}", links_text(now, paint)));
  for (const auto& rob : now.robs) {
    lines.push_back(fmt::format("  {:<15} {}   {} of {} events open", fmt::format("ROB {:#x}", rob.source_id.value),
                                bar(rob.builder.pool_fill), rob.builder.open_events, rob.builder.window_events));
  }
  for (const auto& consumer : now.consumers) {
    std::string counters;
    for (const NamedCounter& counter : consumer.counters) {
      if (counter.value != 0 && for_people(counter.name))
        counters += fmt::format("   {} {}", counter.name, count(counter.value));
    }
    lines.push_back(fmt::format("  {:<15} {}{}", consumer.name, bar(consumer.queue_fill), counters));
  }
  lines.push_back(fmt::format("  limited by: {}",
                              now.limited_by == "nothing" ? paint.good(now.limited_by) : paint.warn(now.limited_by)));
  for (std::string& line : lines) line = cut(line, style.columns);
  return lines;
}

std::string view_line(const ReadoutStatus& before, const ReadoutStatus& now) {
  const Rates rates = rates_between(before, now);
  return fmt::format("{}  triggers {}  chunks {}  payload {}  incomplete {}  lost {}  {}  limited by {}",
                     clock_text(now.seconds), base::format_quantity(rates.triggers_hz, "Hz"),
                     base::format_quantity(rates.chunks_hz, "/s"), base::format_quantity(rates.payload_bytes_s, "B/s"),
                     count(now.incomplete()), count(lost_chunks(now)), dead_time_text(rates), now.limited_by);
}

RunView::RunView(const readout::ReadoutSettings& settings) : settings_(settings) {
  const char* term = std::getenv("TERM");
  terminal_ = ::isatty(STDERR_FILENO) == 1 && term != nullptr && std::string(term) != "dumb";
  const char* no_color = std::getenv("NO_COLOR");
  style_.color = terminal_ && (no_color == nullptr || *no_color == '\0');
  interval_s_ = terminal_ ? kTerminalIntervalSeconds : kPlainIntervalSeconds;
}

void RunView::show(const ReadoutStatus& now) {
  if (now.seconds - shown_s_ < interval_s_) return;
  draw(now);
}

void RunView::draw(const ReadoutStatus& now) {
  if (terminal_) {
    winsize size{};
    style_.columns = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
    std::string text;
    for (const std::string& line : view_lines(settings_, before_, now, style_)) text += line + "\x1b[K\n";
    const int drawn = static_cast<int>(std::ranges::count(text, '\n'));
    erase();
    std::fputs(text.c_str(), stderr);
    drawn_lines_ = drawn;
  } else {
    std::fprintf(stderr, "%s\n", view_line(before_, now).c_str());
  }
  before_ = now;
  shown_s_ = now.seconds;
}

void RunView::erase() {
  if (drawn_lines_ > 0) std::fprintf(stderr, "\x1b[%dF\x1b[J", drawn_lines_);
  drawn_lines_ = 0;
}

void RunView::say(const std::string& line) {
  erase();
  std::fprintf(stderr, "%s\n", line.c_str());
}

void RunView::finish(const ReadoutStatus& now) {
  if (terminal_) draw(now);
  drawn_lines_ = 0;
}

}  // namespace rodeo::control
