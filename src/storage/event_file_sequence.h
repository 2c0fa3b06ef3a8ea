// A sequence of event files on disk: events are gathered in a few large buffers, which a thread of its own writes, closes
// and seals (docs/formats/eventstorage-file.md). A full disk leaves every file whole.
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

/// append() by one thread at a time; status() by any.
class EventFileSequence {
 public:
  struct Settings {
    std::filesystem::path directory;
    EventFileSettings files = {};
    DirectFile::Settings disk = {};
    std::size_t buffer_bytes = 4 << 20;  ///< rounded up to DirectFile::kAlign
    unsigned buffers = 4;
    std::string thread_name = "file-io";
    std::string when_full = {};  ///< what Status::failure says of a full disk besides: what to do
    /// Of its first file. Another than 1: files of the sequence with smaller numbers may be there.
    std::uint32_t first_file_number = 1;
    /// What is not safe when the disk fails is cut off a file that stays open: whoever was told that it is refused has put it somewhere else.
    bool keep_only_safe = false;
  };

  /// Makes the directory if it is not there and checks that it can be written to and holds no file of this sequence yet;
  /// takes the buffers. Throws SetupError.
  explicit EventFileSequence(Settings settings);
  ~EventFileSequence();
  EventFileSequence(const EventFileSequence&) = delete;
  EventFileSequence& operator=(const EventFileSequence&) = delete;

  /// Opens the first file and starts the thread. Throws SetupError.
  void start();

  enum class Outcome : std::uint8_t { taken, refused };
  /// Appends one event, given in pieces of `bytes` together; blocks while all buffers wait for the disk. Refused once the disk
  /// is full or fails, with the last file closed or given up: Status::failure says which.
  Outcome append(std::span<const std::span<const std::byte>> pieces, std::size_t bytes);

  /// Whether append() of so many bytes would go through without waiting for the disk, room on it aside. Of the thread that appends.
  bool takes_at_once(std::size_t bytes) const;

  /// Asks for all that was taken so far to be made safe: written and flushed to the disk, wherever in a buffer it ends. Does not wait; false: all
  /// buffers wait for the disk, ask again later. Of the thread that appends.
  bool flush();

  /// So many events, of those taken and in their order, are on the disk whatever happens to this process or this host. After a failure it is final:
  /// what is beyond is lost; never less than it was. Any thread.
  std::uint64_t safe_events() const { return safe_events_.load(std::memory_order_acquire); }

  /// Whether the disk has failed or is full: nothing more is taken, safe_events() is final. Any thread.
  bool over() const { return over_.load(std::memory_order_acquire); }

  /// For tests of what a slow disk does: each write takes so much longer. Any thread.
  void slow_down(std::chrono::nanoseconds each_write) { delay_ns_.store(each_write.count(), std::memory_order_relaxed); }

  /// The first half of close(): asks for it, and does not wait. closed() says when close() will return at once.
  void end();
  /// Any thread.
  bool closed() const { return done_.load(std::memory_order_acquire); }

  /// Closes the last file and ends the thread. Every event taken is on disk then, or counted as lost. Again is harmless.
  void close();

  /// The files that it has made, as they were called while they were written. After close(), one that Status::files does not name (as .data) was given up:
  /// it lies there still, or nowhere. Of the thread that appends.
  const std::vector<std::string>& made() const { return made_; }

  struct Status {
    std::vector<FragmentConsumer::File> files;
    std::uint64_t events = 0;         ///< taken
    std::uint64_t events_lost = 0;    ///< taken, but the disk failed before they were written
    std::uint64_t bytes_written = 0;  ///< to disk so far, records included
    std::uint64_t waits = 0;          ///< times that append() had to wait for the disk
    bool direct = false;              ///< past the page cache
    double cpu_seconds = 0;           ///< of the thread
    std::string failure;              ///< why nothing more is taken, what became of the last file, what to do
    std::string cause;                ///< of the failure, without the file
    std::string code;                 ///< of the failure
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
  Buffer* take_buffer();
  void hand_over(Job job);
  void make_safe(OpenFile& file);
  std::string path_of(const std::string& name) const { return (settings_.directory / name).string(); }

  void run();
  void write(Job& job);
  // What became of the file; an error: the disk failed, and `next` says what became of the file.
  Result<std::string> seal(OpenFile& file, const formats::FileDigest& digest, std::uint64_t events);
  Result<std::string> salvage(OpenFile& file, const Buffer& failed, std::uint64_t written_bytes);
  void fail(const Job& job, std::optional<Error> why, const Result<std::string>& outcome);

  const Settings settings_;
  const std::size_t buffer_bytes_;
  EventFileEncoder encoder_;
  base::Arena arena_;
  std::vector<std::unique_ptr<Buffer>> buffers_;

  // Of the thread that appends
  std::vector<std::string> made_;
  std::shared_ptr<OpenFile> file_;
  Buffer* filling_ = nullptr;
  // Of events whose record is not written yet. While there are some, the separator of the last one is still in the buffer that is filled.
  formats::HeaderCheckList checks_;
  std::byte* last_separator_ = nullptr;
  bool with_checks_ = true;
  std::uint64_t event_bytes_ = 0;
  bool ended_ = false;
  bool unflushed_ = false;  // something was put since the last flush

  // Between the two
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Buffer*> free_;
  std::vector<Job> jobs_;  // in order; each holds a buffer, but one that closes a file may hold none
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

  // Of the writing thread
  std::shared_ptr<OpenFile> failed_file_;  // the one that the disk failed at; null: none did
  base::ThreadCpu cpu_;
  std::thread thread_;
};

}  // namespace rodeo::storage
