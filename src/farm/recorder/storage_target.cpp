#include "farm/recorder/storage_target.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>

#include "base/child_process.h"
#include "base/clock.h"
#include "base/fd_socket.h"
#include "base/mapped_file.h"
#include "base/sentence.h"
#include "base/sha256.h"
#include "base/thread.h"
#include "storage/file_seal.h"

namespace rodeo::farm {
namespace {

namespace fs = std::filesystem;

Error system_error(const std::string& what, const fs::path& file) {
  return {"file.write", fmt::format("{}: {}", what, std::strerror(errno)), file.string()};
}

// Drops cached pages, so that the next read shows what is on the disk.
void drop_cached_pages(int descriptor) { ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED); }

Result<void> copy_bytes(const fs::path& from, const fs::path& to) {
  const base::UniqueFd in(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
  if (!in) return std::unexpected(system_error("cannot open", from));
  const base::UniqueFd out(::open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!out) return std::unexpected(system_error("cannot make the file", to));
  std::vector<std::byte> piece(4 << 20);
  for (;;) {
    const ssize_t n = ::read(in.get(), piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return std::unexpected(system_error("cannot read", from));
    if (n == 0) break;
    for (ssize_t done = 0; done < n;) {
      const ssize_t written = ::write(out.get(), piece.data() + done, static_cast<std::size_t>(n - done));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return std::unexpected(system_error("cannot write", to));
      done += written;
    }
  }
  if (::fsync(out.get()) != 0) return std::unexpected(system_error("cannot flush", to));
  drop_cached_pages(out.get());
  return {};
}

Error checksum_error(const fs::path& copy, const std::string& here, const std::string& there) {
  return {"farm.target_differs",
          fmt::format("the copy has SHA-256 {}, and the file has {}", there.empty() ? "none" : there, here), copy.string(),
          "check the copy, and remove it if it is not from this run; the file stays here until its copy is equal"};
}

std::vector<std::string> command_for(const std::vector<std::string>& command, const fs::path& file) {
  std::vector<std::string> out = command;
  const auto replace = [](std::string& text, std::string_view what, const std::string& by) {
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
      text.replace(at, what.size(), by);
  };
  for (std::string& word : out) {
    replace(word, "{file}", file.string());
    replace(word, "{name}", file.filename().string());
  }
  return out;
}

/// Returns the output of a program. Error farm.target_failed.
Result<std::string> output_of(const std::vector<std::string>& command, std::chrono::nanoseconds timeout) {
  auto [from, to] = RODEO_TRY(base::make_pipe());
  ::fcntl(from.get(), F_SETFL, O_NONBLOCK);
  const base::UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  auto child = RODEO_TRY(base::ChildProcess::start({.command = command, .in = nothing.get(), .out = to.get()}));
  to = {};
  std::string text;
  const auto read_some = [&] {
    char piece[4096];
    for (ssize_t n = 0; (n = ::read(from.get(), piece, sizeof piece)) > 0;)
      if (text.size() < 65536) text.append(piece, static_cast<std::size_t>(n));
  };
  const std::uint64_t deadline = base::steady_now_ns() + static_cast<std::uint64_t>(timeout.count());
  std::optional<int> status;
  while (!(status = child.wait(std::chrono::milliseconds{20}))) {
    read_some();
    if (base::steady_now_ns() < deadline) continue;
    return std::unexpected(Error{"farm.target_failed", fmt::format("`{}` did not end in time", fmt::join(command, " "))});
  }
  read_some();
  if (*status == 0) return text;
  return std::unexpected(Error{"farm.target_failed",
                               fmt::format("`{}` ended with status {}", fmt::join(command, " "), *status), "",
                               "run it by hand; the file is tried again"});
}

}  // namespace

Result<std::string> sha256_of_file(const fs::path& file) {
  const auto mapped = RODEO_TRY(base::MappedFile::open(file.string()));
  std::string digest = base::sha256_hex(mapped.bytes());
  RODEO_TRY(mapped.check());
  return digest;
}

Result<void> copy_to_directory(const fs::path& file, const fs::path& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  const fs::path copy = directory / file.filename();
  const std::string here = RODEO_TRY(sha256_of_file(file));
  if (fs::exists(copy, error)) {
    const std::string there = RODEO_TRY(sha256_of_file(copy));
    if (there == here) return {};
    return std::unexpected(checksum_error(copy, here, there));
  }
  const fs::path part = directory / ("." + file.filename().string() + ".part");
  RODEO_TRY(copy_bytes(file, part));
  const std::string there = RODEO_TRY(sha256_of_file(part));
  if (there != here) return std::unexpected(checksum_error(part, here, there));
  RODEO_TRY(storage::rename_new(part.string(), copy.string()));
  return storage::flush_directory_of(copy.string());
}

Result<void> copy_by_command(const fs::path& file, const TargetSettings& settings) {
  const std::string here = RODEO_TRY(sha256_of_file(file));
  RODEO_TRY(output_of(command_for(settings.copy_command, file), settings.timeout));
  const std::string printed = RODEO_TRY(output_of(command_for(settings.checksum_command, file), settings.timeout));
  const std::string there = printed.substr(0, printed.find_first_of(" \t\r\n"));
  if (there != here) return std::unexpected(checksum_error(file.filename(), here, there));
  return {};
}

StorageTarget::StorageTarget(TargetSettings settings, RunFiles files)
    : settings_(std::move(settings)), files_(std::move(files)), thread_([this] { run(); }) {}

StorageTarget::~StorageTarget() {
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void StorageTarget::check_files() {
  {
    const std::lock_guard lock(mutex_);
    check_ = true;
  }
  changed_.notify_all();
}

void StorageTarget::end() {
  {
    const std::lock_guard lock(mutex_);
    if (!ending_) ending_since_ns_ = base::steady_now_ns();
    ending_ = check_ = true;
  }
  changed_.notify_all();
}

void StorageTarget::give_up() {
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  changed_.notify_all();
}

bool StorageTarget::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

StorageTarget::Status StorageTarget::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

Result<void> StorageTarget::store(const fs::path& file) {
  if (settings_.directory.empty()) {
    RODEO_TRY(copy_by_command(file, settings_));
  } else {
    RODEO_TRY(copy_to_directory(file, settings_.directory));
  }
  if (!settings_.remove) return {};
  // The run may go on, and then needs the ids of the file.
  RODEO_TRY(remember_ids(file));
  std::error_code error;
  fs::remove(file, error);
  if (error) return std::unexpected(Error{"file.write", "cannot remove: " + error.message(), file.string()});
  return storage::flush_directory_of(file.string());
}

void StorageTarget::run() {
  base::set_thread_name("storage-target");
  std::unique_lock lock(mutex_);
  bool again = false;  // Something failed; the thread tries again after a while.
  for (;;) {
    const auto wake = [this] { return check_ || leaving_; };
    if (again) {
      changed_.wait_for(lock, settings_.retry_interval, wake);
    } else {
      changed_.wait(lock, wake);
    }
    if (leaving_) break;
    check_ = again = false;
    const bool last = ending_;
    lock.unlock();
    auto files = files_of_run(files_, ".data");
    if (files)
      std::erase_if(*files, [&](const fs::path& file) { return std::ranges::find(stored_, file) != stored_.end(); });
    lock.lock();
    if (files) {
      status_.files_left = files->size();
      if (files->empty()) status_.trouble.clear();
    } else {
      status_.trouble = base::in_a_line(files.error());
      again = true;
    }
    for (const fs::path& file : files.value_or(std::vector<fs::path>{})) {
      lock.unlock();
      std::error_code gone;
      const std::uint64_t bytes = fs::file_size(file, gone);
      const Result<void> stored = store(file);
      if (stored && !settings_.remove) stored_.push_back(file);
      lock.lock();
      if (leaving_) break;
      if (stored) {
        ++status_.stored_files;
        status_.stored_bytes += gone ? 0 : bytes;
        --status_.files_left;
        status_.trouble.clear();
      } else {
        ++status_.failures;
        status_.trouble = base::in_a_line(stored.error());
        again = true;
      }
    }
    const bool waited =
        last && base::steady_now_ns() - ending_since_ns_ >= static_cast<std::uint64_t>(settings_.linger.count());
    if (last && ((files && status_.files_left == 0) || waited)) break;
  }
  ended_ = true;
}

}  // namespace rodeo::farm
