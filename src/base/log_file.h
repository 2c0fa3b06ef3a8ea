// The log for programs: JSON lines in the file that RODEO_LOG_JSON names, in addition to the lines for people
// (docs/reference/protocols/logs.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"

namespace rodeo::base {

/// The audience of a line: the shift operator, the system expert, the developer.
enum class Audience : std::uint8_t { shift, expert, developer };

/// "operator", "expert", "developer".
std::string_view audience_name(Audience audience);

/// Warnings and errors are for the operator, information is for the expert, the rest for the developer.
Audience audience_of(LogLevel level);

/// Named fields of a line besides its text: {"code", "card.gone"}.
using LogFields = std::vector<std::pair<std::string_view, std::string>>;

struct LogRecord {
  LogLevel level = LogLevel::info;
  Audience audience = Audience::expert;
  std::string_view message;
  LogFields fields = {};
};

/// A file to which records are appended, one JSON line each. Any thread. Not for data paths: takes a lock and writes to the
/// page cache. Its growth is bounded. A message repeated within a second is counted and reported as `repeats`. Lines above
/// the rate in `limits` are left out and counted; the next line reports them. A file that is too long is renamed to PATH.1,
/// replacing the previous PATH.1. Several processes may append to one file.
class LogFile {
 public:
  struct Limits {
    std::uint64_t longest_bytes = 16U << 20U;
    double lines_per_second = 2000;
    double burst_lines = 4000;
  };

  /// Opens or makes the file. If that fails, every line tries again without waiting, and `lost()` counts the lines.
  LogFile(std::filesystem::path path, std::string process, Limits limits);
  /// Writes repeats that are counted but not yet written.
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;
  LogFile(LogFile&&) = delete;
  LogFile& operator=(LogFile&&) = delete;

  /// `now_ns`: UTC. `run`: the number that the process has at this moment, if any.
  void write(const LogRecord& record, std::uint64_t now_ns, std::optional<std::uint32_t> run);

  /// Lines not in the file: over the limit, or because writing failed.
  std::uint64_t lost() const;

 private:
  void put(const LogRecord& record, std::uint64_t now_ns, std::optional<std::uint32_t> run, std::uint64_t repeats);
  void write_folded(std::uint64_t now_ns, std::optional<std::uint32_t> run);
  bool has_room(std::uint64_t now_ns);
  bool append(const std::string& line);
  void rotate_if_long();

  const std::filesystem::path path_;
  const std::string process_;
  const Limits limits_;
  mutable std::mutex mutex_;
  int file_ = -1;
  double room_;
  std::uint64_t room_ns_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t untold_ = 0;  // lost lines not yet reported
  LogLevel last_level_ = LogLevel::off;
  Audience last_audience_ = Audience::expert;
  std::string last_message_;
  std::uint64_t last_ns_ = 0;
  std::optional<std::uint32_t> last_run_;
  std::uint64_t folded_ = 0;
};

/// Sets the run that this process takes part in; nothing: none. Any thread.
void set_log_run(std::optional<std::uint32_t> number);

/// Writes to the file only, for messages that reach people in another way. Does nothing if RODEO_LOG_JSON is not set. Any
/// thread.
void log_to_file(const LogRecord& record);

}  // namespace rodeo::base
