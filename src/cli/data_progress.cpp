#include "cli/data_progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/units.h"

namespace rodeo::cli {

ProgressLine::ProgressLine(std::string doing, std::uint64_t total_bytes, unsigned passes)
    : doing_(std::move(doing)), total_(total_bytes), passes_(passes), start_ns_(base::steady_now_ns()) {}

ProgressLine::~ProgressLine() { view_.finish(); }

void ProgressLine::advance(std::uint64_t bytes) {
  const std::uint64_t done = (done_.fetch_add(bytes, std::memory_order_relaxed) + bytes) / passes_;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;  // another thread shows it
  const double seconds = static_cast<double>(base::steady_now_ns() - start_ns_) * 1e-9;
  view_.show(
      seconds,
      [&](process::ViewStyle style) {
        std::vector<std::string> lines;
        const double share = static_cast<double>(done) / static_cast<double>(total_);
        process::add_line(lines, (total_ > 0 ? process::bar(std::min(share, 1.0)) + " " : "") + line(seconds, done), {},
                          style.columns);
        return lines;
      },
      [&] { return line(seconds, done); });
}

void ProgressLine::clear() {
  const std::lock_guard lock(mutex_);
  view_.finish();
}

void ProgressLine::say(std::string also) {
  const std::lock_guard lock(mutex_);
  also_ = std::move(also);
}

std::string ProgressLine::line(double seconds, std::uint64_t done) const {
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  std::string text = fmt::format("{}: {}", doing_, base::format_quantity(static_cast<double>(done), "B"));
  if (total_ > 0) {
    text += fmt::format(" of {} ({} %)", base::format_quantity(static_cast<double>(total_), "B"),
                        static_cast<int>(100.0 * static_cast<double>(std::min(done, total_)) / static_cast<double>(total_)));
  }
  text += fmt::format(", {}", base::format_quantity(rate, "B/s"));
  if (total_ > done && rate > 0) text += ", " + process::clock_text(static_cast<double>(total_ - done) / rate) + " left";
  return also_.empty() ? text : text + ", " + also_;
}

}  // namespace rodeo::cli
