// A sequence of event files on disk. Events are collected in a few large buffers; a thread of the sequence writes, closes
// and seals the files (docs/reference/formats/eventstorage-file.md). After a full disk every file is complete.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/arena.h"
#include "base/thread.h"
#include "formats/file_marks.h"
#include "formats/header_checks.h"
#include "rodeo/consumer.h"
#include "storage/direct_file.h"
#include "storage/event_file_encoder.h"

namespace rodeo::storage {

/// append() by one thread at a time; status() by any thread.
class EventFileSequence {
 public:
  struct Settings {
    std::filesystem::path directory;
    EventFileSettings files = {};
    DirectFile::Settings disk = {};
    std::size_t buffer_bytes = 4 << 20;  ///< rounded up to DirectFile::kAlign
    unsigned buffers = 4;
    std::string thread_name = "file-io";
    std::string when_full = {};  ///< what Status::failure recommends when the disk is full
    /// Number of the first file. If not 1, files of the sequence with smaller numbers may exist.
    std::uint32_t first_file_number = 1;
    /// If the disk fails and a file stays open, events that are not safe are cut off: they were refused, and their sender
    /// has stored them elsewhere.
    bool keep_only_safe = false;
  };

  /// Creates the directory if it is missing, and checks that it is writable and has no file of this sequence;
  /// allocates the buffers. Throws SetupError.
  explicit EventFileSequence(Settings settings);
  ~EventFileSequence();
  EventFileSequence(const EventFileSequence&) = delete;
  EventFileSequence& operator=(const EventFileSequence&) = delete;

  /// Opens the first file and starts the thread. Throws SetupError.
  void start();

  enum class Outcome : std::uint8_t { taken, refused };
  /// Appends one event; its pieces have `bytes` in all. Blocks while all buffers wait for the disk. Refuses once the disk
  /// is full or fails; the last file is then closed or given up: Status::failure says which.
  Outcome append(std::span<const std::span<const std::byte>> pieces, std::size_t bytes);

  /// True if append() of an event of this size would not wait for the disk, provided the disk has room. For the appending
  /// thread.
  bool takes_at_once(std::size_t bytes) const;

  /// Requests that all events accepted up to now become safe: written and flushed to the disk, also a partly filled buffer.
  /// Does not wait. False: all buffers wait for the disk; call it again later. For the appending thread.
  bool flush();

  /// The number of events, in the order taken, that are on the disk even if this process or host fails. It never decreases.
  /// After a failure it is final: further events are lost. Any thread.
  std::uint64_t safe_events() const { return safe_events_.load(std::memory_order_acquire); }

  /// True if the disk has failed or is full: no more events are accepted, and safe_events() is final. Any thread.
  bool over() const { return over_.load(std::memory_order_acquire); }

  /// For tests of a slow disk: delays each write by this time. Any thread.
  void slow_down(std::chrono::nanoseconds each_write) { delay_ns_.store(each_write.count(), std::memory_order_relaxed); }

  /// Requests the end without waiting. Once closed() is true, close() returns at once.
  void end();
  /// True when all files are closed. Any thread.
  bool closed() const { return done_.load(std::memory_order_acquire); }

  /// Closes the last file and ends the thread. Then every accepted event is on disk or counted as lost. Repeated calls are
  /// harmless.
  void close();

  /// The files that were made, with their names during writing. After close(), a file that Status::files does not list (as
  /// .data) was given up: it still exists under this name, or was removed. For the appending thread.
  const std::vector<std::string>& made() const { return made_; }

  struct Status {
    std::vector<FragmentConsumer::File> files;
    std::uint64_t events = 0;         ///< accepted by append()
    std::uint64_t events_lost = 0;    ///< accepted, but the disk failed before they were written
    std::uint64_t bytes_written = 0;  ///< bytes on disk up to now, records included
    std::uint64_t waits = 0;          ///< number of times that append() had to wait for the disk
    bool direct = false;              ///< O_DIRECT is used
    double cpu_seconds = 0;           ///< CPU time of the writing thread
    std::string failure;              ///< the reason for the end, the fate of the last file, and what to do
    std::string cause;                ///< the reason alone, without the file
    std::string code;                 ///< error code of the failure
  };
  Status status() const;

 private:
  struct Buffer;
  struct OpenFile;
  struct Job;

  Result<void> open_file(std::size_t first_event_bytes);
  void close_file(bool last, std::optional<Error> why = {});
  void end(std::optional<Error> why);
  void finish(std::optional<Error> why);
  Error disk_full(const DirectFile& file) const;
  void put(std::span<const std::byte> bytes);
  void put_header_checks();
  Buffer* acquire_buffer();
  void hand_over(Job job);
  void make_safe(OpenFile& file);
  std::string path_of(const std::string& name) const { return (settings_.directory / name).string(); }

  void run();
  void write(Job& job);
  // Returns what happened to the file. Error: the disk failed; `next` says what happened to the file.
  Result<std::string> seal(OpenFile& file, const formats::FileDigest& digest, std::uint64_t events);
  Result<std::string> salvage(OpenFile& file, const Buffer& failed, std::uint64_t written_bytes);
  void fail(const Job& job, std::optional<Error> why, const Result<std::string>& outcome);

  const Settings settings_;
  const std::size_t buffer_bytes_;
  EventFileEncoder encoder_;
  base::Arena arena_;
  std::vector<std::unique_ptr<Buffer>> buffers_;

  // Used by the appending thread:
  std::vector<std::string> made_;
  std::shared_ptr<OpenFile> file_;
  Buffer* filling_ = nullptr;
  // Checks of events that are in no record yet. While the list has checks, the separator of the last event is still in the
  // buffer being filled.
  formats::HeaderCheckList checks_;
  std::byte* last_separator_ = nullptr;
  bool with_checks_ = true;
  std::uint64_t event_bytes_ = 0;
  bool ended_ = false;
  bool unflushed_ = false;  // there are bytes after the last flush

  // Shared by both threads:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Buffer*> free_;
  std::vector<Job> jobs_;  // the jobs in order; each has a buffer, except possibly one that closes a file
  bool ending_ = false;
  std::vector<FragmentConsumer::File> files_;
  std::string failure_;
  std::string cause_;
  std::string code_;
  std::atomic<bool> failed_{false};
  std::atomic<std::uint64_t> events_{0};
  std::atomic<std::uint64_t> events_kept_{0};
  std::atomic<std::uint64_t> bytes_written_{0};
  std::atomic<std::uint64_t> waits_{0};
  std::atomic<bool> direct_{false};
  std::atomic<bool> done_{false};
  std::atomic<std::uint64_t> safe_events_{0};
  std::atomic<bool> over_{false};
  std::atomic<std::int64_t> delay_ns_{0};

  // Used by the writing thread:
  std::shared_ptr<OpenFile> failed_file_;  // the file that was open when the disk failed; null: no failure
  base::ThreadCpu cpu_;
  std::thread thread_;
};

}  // namespace rodeo::storage
