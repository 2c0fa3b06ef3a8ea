// Log lines for people, on stderr: the interface to the logging library, and a throttle for frequent messages.
#pragma once

#include <fmt/core.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace rodeo::base {

enum class LogLevel : std::uint8_t { debug, info, warning, error, off };

/// "debug", "info", "warning", "error", "off"; anything else gives `otherwise`.
LogLevel log_level_of(std::string_view name, LogLevel otherwise = LogLevel::info);

/// The lowest level that is written. RODEO_LOG gives the first value; a flag may change it. Any thread.
void set_log_level(LogLevel level);
LogLevel log_level();

/// While true, each line first erases the terminal from the cursor on: a block of lines that is drawn again stands there.
void erase_before_log_lines(bool erase);

/// Writes one line, folded to the width of a terminal. Any thread. Not for data paths: takes a lock and writes to stderr.
void log_line(LogLevel level, std::string_view text);

template <typename... T>
void log_debug(fmt::format_string<T...> text, T&&... values) {
  if (log_level() <= LogLevel::debug) log_line(LogLevel::debug, fmt::format(text, std::forward<T>(values)...));
}
template <typename... T>
void log_info(fmt::format_string<T...> text, T&&... values) {
  if (log_level() <= LogLevel::info) log_line(LogLevel::info, fmt::format(text, std::forward<T>(values)...));
}
template <typename... T>
void log_warning(fmt::format_string<T...> text, T&&... values) {
  if (log_level() <= LogLevel::warning) log_line(LogLevel::warning, fmt::format(text, std::forward<T>(values)...));
}
template <typename... T>
void log_error(fmt::format_string<T...> text, T&&... values) {
  if (log_level() <= LogLevel::error) log_line(LogLevel::error, fmt::format(text, std::forward<T>(values)...));
}

/// Lets one message a second through and counts the suppressed ones. One object per reason; any thread, lock-free.
///
///   static LogThrottle throttle;
///   if (const auto turn = throttle.turn(now)) log_warning("corrupt chunk on {}{}", fid, turn.suffix());
class LogThrottle {
 public:
  struct Turn {
    bool speak = false;
    std::uint64_t folded = 0;  ///< messages suppressed since the last one

    explicit operator bool() const { return speak; }
    /// " (and 41 more like it)", or nothing.
    std::string suffix() const { return folded == 0 ? std::string{} : fmt::format(" (and {} more like it)", folded); }
  };

  explicit LogThrottle(std::chrono::nanoseconds interval = std::chrono::seconds{1}) : interval_ns_(interval.count()) {}

  Turn turn(std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now());

  /// Messages suppressed since the last one, for the end of a run; resets the count.
  std::uint64_t reset_folded() { return folded_.exchange(0, std::memory_order_relaxed); }

 private:
  static constexpr std::int64_t kNever = INT64_MIN;

  const std::int64_t interval_ns_;
  std::atomic<std::int64_t> spoke_ns_{kNever};
  std::atomic<std::uint64_t> folded_{0};
};

}  // namespace rodeo::base
