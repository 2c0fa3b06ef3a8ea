// A sequence of event files on disk: events are gathered in a few large buffers, which a thread of its own writes, closes
// and seals (docs/formats/eventstorage-file.md). A full disk leaves every file whole.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/arena.h"
#include "base/thread.h"
#include "formats/file_marks.h"
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
    std::string when_full = {};  ///< what Status::failure says of a full disk besides: what became of the file, what to do
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
  /// Appends one event, given in pieces of `bytes` together; blocks while all buffers wait for the disk. Refused, with the
  /// sequence closed, once the disk is full or fails: see Status::failure.
  Outcome append(std::span<const std::span<const std::byte>> pieces, std::size_t bytes);

  /// Closes the last file and ends the thread. Every event taken is on disk then, or counted as lost. Again is harmless.
  void close();

  struct Status {
    std::vector<FragmentConsumer::File> files;
    std::uint64_t events = 0;         ///< taken
    std::uint64_t events_lost = 0;    ///< taken, but the disk failed before they were written
    std::uint64_t bytes_written = 0;  ///< to disk so far, records included
    std::uint64_t waits = 0;          ///< times that append() had to wait for the disk
    bool direct = false;              ///< past the page cache
    double cpu_seconds = 0;           ///< of the thread
    std::string failure;              ///< why nothing more is taken
  };
  Status status() const;

 private:
  struct Buffer;
  struct OpenFile;
  struct Job;

  Result<void> open_file();
  void close_file(bool last);
  void put(std::span<const std::byte> bytes);
  Buffer* take_buffer();
  void hand_over(Job job);
  void give_up(const std::string& why);
  std::string path_of(const std::string& name) const { return (settings_.directory / name).string(); }

  void run();
  void write(Job& job);
  void seal(OpenFile& file, std::uint64_t size);
  void salvage(OpenFile& file, const Buffer& failed, std::uint64_t durable_bytes, bool last);
  void closed(const OpenFile& file, const formats::FileDigest& digest, std::uint64_t events);

  const Settings settings_;
  const std::size_t buffer_bytes_;
  EventFileEncoder encoder_;
  base::Arena arena_;
  std::vector<std::unique_ptr<Buffer>> buffers_;

  // Of the thread that appends
  std::shared_ptr<OpenFile> file_;
  Buffer* filling_ = nullptr;
  std::uint64_t event_bytes_ = 0;
  bool ended_ = false;

  // Between the two
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Buffer*> free_;
  std::vector<Job> jobs_;  // in order; as many as there are buffers at most, since each job holds one
  bool ending_ = false;
  std::vector<FragmentConsumer::File> files_;
  std::string failure_;
  std::atomic<bool> failed_{false};
  std::atomic<std::uint64_t> events_{0};
  std::atomic<std::uint64_t> events_kept_{0};
  std::atomic<std::uint64_t> bytes_written_{0};
  std::atomic<std::uint64_t> waits_{0};
  std::atomic<bool> direct_{false};
  std::atomic<bool> done_{false};

  // Of the writing thread
  bool disk_failed_ = false;
  base::ThreadCpu cpu_;
  std::thread thread_;
};

}  // namespace rodeo::storage
