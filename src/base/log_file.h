// The same talk for programs: lines of JSON in a file that RODEO_LOG_JSON names, beside the lines for people (docs/protocols/logs.md).
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

/// Whom a line concerns: who runs the shift, who knows the system, who writes its code.
enum class Audience : std::uint8_t { shift, expert, developer };

/// "operator", "expert", "developer".
std::string_view audience_name(Audience audience);

/// Warnings and errors are the operator's, information the expert's, the rest the developer's.
Audience audience_of(LogLevel level);

/// What a line says besides its text, by name: {"code", "card.gone"}.
using LogFields = std::vector<std::pair<std::string_view, std::string>>;

struct LogRecord {
  LogLevel level = LogLevel::info;
  Audience audience = Audience::expert;
  std::string_view message;
  LogFields fields = {};
};

/// A file that records are appended to, a line of JSON each. Any thread; a lock and a write to the page cache, hence never on a data path.
/// What it may take is bounded: the same message again within a second is counted, and told as `repeats`; more lines a second than `limits` allow are left
/// out, counted, and told with the next one; a file that has become too long is renamed to PATH.1, which takes the place of the one before.
/// Several processes may append to one file.
class LogFile {
 public:
  struct Limits {
    std::uint64_t longest_bytes = 16U << 20U;
    double lines_per_second = 2000;
    double burst_lines = 4000;
  };

  /// Opens, or makes, the file. One that cannot be opened is tried again with every line; nobody waits for it, and `lost()` counts.
  LogFile(std::filesystem::path path, std::string process, Limits limits);
  /// Writes what is still folded away.
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;
  LogFile(LogFile&&) = delete;
  LogFile& operator=(LogFile&&) = delete;

  /// `now_ns`: UTC. `run`: the number that the process has at this moment, if any.
  void write(const LogRecord& record, std::uint64_t now_ns, std::optional<std::uint32_t> run);

  /// Lines that are in no file: over the limit, or because the file could not be written.
  std::uint64_t lost() const;

 private:
  void put(const LogRecord& record, std::uint64_t now_ns, std::optional<std::uint32_t> run, std::uint64_t repeats);
  void put_folded(std::uint64_t now_ns, std::optional<std::uint32_t> run);
  bool has_room(std::uint64_t now_ns);
  bool append(const std::string& line);
  void keep_short();

  const std::filesystem::path path_;
  const std::string process_;
  const Limits limits_;
  mutable std::mutex mutex_;
  int file_ = -1;
  double room_;
  std::uint64_t room_ns_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t untold_ = 0;  // of these, since a line could be written
  LogLevel last_level_ = LogLevel::off;
  Audience last_audience_ = Audience::expert;
  std::string last_message_;
  std::uint64_t last_ns_ = 0;
  std::optional<std::uint32_t> last_run_;
  std::uint64_t folded_ = 0;
};

/// The run that this process takes part in from now on; nothing: none. Any thread.
void set_log_run(std::optional<std::uint32_t> number);

/// To the file alone, for what people are told otherwise. Does nothing where RODEO_LOG_JSON is not set. Any thread.
void log_to_file(const LogRecord& record);

}  // namespace rodeo::base
