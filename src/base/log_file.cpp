#include "base/log_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>

namespace rodeo::base {

namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::size_t kLongestMessage = 8192;

std::string_view level_name(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return "debug";
    case LogLevel::info: return "info";
    case LogLevel::warning: return "warning";
    case LogLevel::error:
    case LogLevel::off: break;
  }
  return "error";
}

/// The number of bytes of the UTF-8 character at the begin of `text`; 0 if there is none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto follows = [&](std::size_t i, unsigned least = 0x80, unsigned most = 0xBF) {
    return byte(i) >= least && byte(i) <= most;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF && follows(1)) return 2;
  // No overlong forms, no halves of surrogate pairs, nothing above U+10FFFF (RFC 3629).
  if (first >= 0xE0 && first <= 0xEF && follows(1, first == 0xE0 ? 0xA0 : 0x80, first == 0xED ? 0x9F : 0xBF) && follows(2))
    return 3;
  if (first >= 0xF0 && first <= 0xF4 && follows(1, first == 0xF0 ? 0x90 : 0x80, first == 0xF4 ? 0x8F : 0xBF) && follows(2) &&
      follows(3))
    return 4;
  return 0;
}

/// Appends a text as a JSON string. Bytes that are not UTF-8 become U+FFFD, so every line can be parsed.
void add_text(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const auto c = static_cast<unsigned char>(text.front());
    const std::size_t length = utf8_length(text);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += text.front();
    } else if (c == '\n') {
      out += "\\n";
    } else if (c < 0x20 || c == 0x7F) {
      out += fmt::format("\\u{:04x}", c);
    } else if (length == 0) {
      out += "\xEF\xBF\xBD";
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  out += '"';
}

std::atomic<std::int64_t> g_run{-1};

/// nullptr unless the environment names a file. It lives as long as the process: threads may log until the end.
LogFile* log_file() {
  static const std::unique_ptr<LogFile> instance = []() -> std::unique_ptr<LogFile> {
    const char* path = std::getenv("RODEO_LOG_JSON");
    if (path == nullptr || *path == '\0') return nullptr;
    const char* process = std::getenv("RODEO_LOG_PROCESS");
    return std::make_unique<LogFile>(path, process != nullptr && *process != '\0' ? process : program_invocation_short_name,
                                     LogFile::Limits{});
  }();
  return instance.get();
}

}  // namespace

std::string_view audience_name(Audience audience) {
  switch (audience) {
    case Audience::shift: return "operator";
    case Audience::expert: return "expert";
    case Audience::developer: break;
  }
  return "developer";
}

Audience audience_of(LogLevel level) {
  if (level >= LogLevel::warning) return Audience::shift;
  return level == LogLevel::info ? Audience::expert : Audience::developer;
}

LogFile::LogFile(std::filesystem::path path, std::string process, Limits limits)
    : path_(std::move(path)), process_(std::move(process)), limits_(limits), room_(limits.burst_lines) {}

LogFile::~LogFile() {
  const std::lock_guard lock(mutex_);
  write_folded(last_ns_, last_run_);
  if (file_ >= 0) ::close(file_);
}

std::uint64_t LogFile::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

void LogFile::write(const LogRecord& record, std::uint64_t now_ns, std::optional<std::uint32_t> run) {
  const std::lock_guard lock(mutex_);
  const bool again =
      record.level == last_level_ && record.message == last_message_ && run == last_run_ && record.fields.empty();
  if (again && now_ns - last_ns_ < kSecond) {  // the difference is unsigned: it is large if the clock was set back
    ++folded_;
    return;
  }
  if (!again) write_folded(now_ns, run);
  if (!has_room(now_ns)) {
    ++lost_;
    ++untold_;
    return;
  }
  if (untold_ > 0) {
    const LogRecord told{LogLevel::warning,
                         Audience::expert,
                         "lines were left out here: more lines a second than this log accepts",
                         {{"left_out", std::to_string(untold_)}}};
    untold_ = 0;
    put(told, now_ns, run, 0);
  }
  put(record, now_ns, run, std::exchange(folded_, 0));
  last_level_ = record.level;
  last_audience_ = record.audience;
  last_message_ = record.fields.empty() ? std::string(record.message) : std::string();
  last_ns_ = now_ns;
  last_run_ = run;
}

/// Writes the repeats of the last line's message.
void LogFile::write_folded(std::uint64_t now_ns, std::optional<std::uint32_t> run) {
  if (folded_ == 0) return;
  const std::uint64_t repeats = std::exchange(folded_, 0);
  put({last_level_, last_audience_, last_message_}, now_ns, run, repeats);
}

bool LogFile::has_room(std::uint64_t now_ns) {
  if (now_ns > room_ns_) {
    const double seconds = static_cast<double>(now_ns - room_ns_) / static_cast<double>(kSecond);
    room_ = std::min(limits_.burst_lines, room_ + seconds * limits_.lines_per_second);
  }
  room_ns_ = now_ns;
  if (room_ < 1) return false;
  room_ -= 1;
  return true;
}

/// `repeats`: how often the message came again since the last line with it.
void LogFile::put(const LogRecord& record, std::uint64_t now_ns, std::optional<std::uint32_t> run, std::uint64_t repeats) {
  std::string line = fmt::format(R"({{"time_ns":{},"level":"{}","audience":"{}","process":)", now_ns,
                                 level_name(record.level), audience_name(record.audience));
  add_text(line, process_);
  line += fmt::format(",\"pid\":{}", ::getpid());
  if (run) line += fmt::format(",\"run\":{}", *run);
  line += ",\"message\":";
  add_text(line, record.message.substr(0, kLongestMessage));
  if (!record.fields.empty()) {
    char separator = '{';
    line += ",\"fields\":";
    for (const auto& [name, value] : record.fields) {
      line += separator;
      add_text(line, name);
      line += ':';
      add_text(line, std::string_view(value).substr(0, kLongestMessage));
      separator = ',';
    }
    line += '}';
  }
  if (repeats > 0) line += fmt::format(",\"repeats\":{}", repeats);
  line += "}\n";
  if (!append(line)) ++lost_;
}

bool LogFile::append(const std::string& line) {
  if (file_ >= 0) rotate_if_long();
  if (file_ < 0) file_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  return file_ >= 0 && ::write(file_, line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

/// If several processes find the file too long, one renames it; the others see a new file under the name and open it.
void LogFile::rotate_if_long() {
  struct stat mine{};
  if (::fstat(file_, &mine) == 0 && static_cast<std::uint64_t>(mine.st_size) < limits_.longest_bytes) return;
  if (::flock(file_, LOCK_EX | LOCK_NB) != 0) return;
  struct stat there{};
  if (::stat(path_.c_str(), &there) == 0 && there.st_ino == mine.st_ino && there.st_dev == mine.st_dev)
    static_cast<void>(::rename(path_.c_str(), (path_.string() + ".1").c_str()));
  ::close(std::exchange(file_, -1));
}

void set_log_run(std::optional<std::uint32_t> number) {
  g_run.store(number ? std::int64_t{*number} : -1, std::memory_order_relaxed);
}

void log_to_file(const LogRecord& one) {
  LogFile* const file = log_file();
  if (file == nullptr) return;
  const std::int64_t run = g_run.load(std::memory_order_relaxed);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  file->write(one, static_cast<std::uint64_t>(std::chrono::nanoseconds(now).count()),
              run < 0 ? std::nullopt : std::optional(static_cast<std::uint32_t>(run)));
}

}  // namespace rodeo::base
