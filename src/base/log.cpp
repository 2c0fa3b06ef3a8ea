#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/log_file.h"
#include "base/terminal_text.h"

namespace rodeo::base {

namespace {

spdlog::level::level_enum level_for_library(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return spdlog::level::debug;
    case LogLevel::info: return spdlog::level::info;
    case LogLevel::warning: return spdlog::level::warn;
    case LogLevel::error: return spdlog::level::err;
    case LogLevel::off: break;
  }
  return spdlog::level::off;
}

LogLevel level_of_environment() {
  const char* name = std::getenv("RODEO_LOG");
  return name == nullptr ? LogLevel::info : log_level_of(name);
}

std::atomic<LogLevel>& current_level() {
  static std::atomic<LogLevel> level{level_of_environment()};
  return level;
}

/// Uses colours only on a terminal, and only if NO_COLOR is not set (no-color.org).
spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    const char* no_color = std::getenv("NO_COLOR");
    const bool plain = no_color != nullptr && *no_color != '\0';
    auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>(plain ? spdlog::color_mode::never
                                                                            : spdlog::color_mode::automatic);
    auto made = std::make_shared<spdlog::logger>("rodeo", std::move(sink));
    made->set_level(spdlog::level::trace);
    made->set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %v");
    made->flush_on(spdlog::level::trace);
    return made;
  }();
  return *instance;
}

std::atomic<bool> erases{false};

/// The text, folded for the place behind the time and a level of this length.
std::string folded_behind_time(const std::string& text, std::size_t level) {
  constexpr std::size_t kTime = std::string_view("2026-01-01 00:00:00.000 ").size();
  const std::string before(kTime + level, '-');  // one word
  return folded(before + ' ' + text, terminal_columns(STDERR_FILENO)).substr(before.size() + 1);
}

}  // namespace

LogLevel log_level_of(std::string_view name, LogLevel otherwise) {
  if (name == "debug") return LogLevel::debug;
  if (name == "info") return LogLevel::info;
  if (name == "warning" || name == "warn") return LogLevel::warning;
  if (name == "error") return LogLevel::error;
  if (name == "off") return LogLevel::off;
  return otherwise;
}

void erase_before_log_lines(bool erase) { erases.store(erase, std::memory_order_relaxed); }

void set_log_level(LogLevel level) { current_level().store(level, std::memory_order_relaxed); }

LogLevel log_level() { return current_level().load(std::memory_order_relaxed); }

void log_line(LogLevel level, std::string_view text) {
  if (level < log_level() || level == LogLevel::off) return;
  const std::string line = without_control_characters(text);  // the text of another process may be in the line
  const std::string shown = folded_behind_time(line, spdlog::level::to_string_view(level_for_library(level)).size());
  if (erases.load(std::memory_order_relaxed)) std::fputs("\r\x1b[J", stderr);
  logger().log(level_for_library(level), spdlog::string_view_t(shown.data(), shown.size()));
  log_to_file({level, audience_of(level), line});
}

LogThrottle::Turn LogThrottle::turn(std::chrono::steady_clock::time_point now) {
  const std::int64_t now_ns = now.time_since_epoch().count();
  std::int64_t spoke = spoke_ns_.load(std::memory_order_relaxed);
  const bool due = spoke == kNever || now_ns - spoke >= interval_ns_;
  // If several threads find the interval over, the one whose exchange succeeds writes.
  if (!due || !spoke_ns_.compare_exchange_strong(spoke, now_ns, std::memory_order_relaxed)) {
    folded_.fetch_add(1, std::memory_order_relaxed);
    return {};
  }
  return {true, folded_.exchange(0, std::memory_order_relaxed)};
}

}  // namespace rodeo::base
