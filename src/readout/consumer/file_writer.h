// FileWriter: writes fragments as full events with the standard header to ATLAS data files (software ROD paper, section
// VI.C).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "formats/event_frame.h"
#include "readout/consumer/event_share.h"
#include "readout/consumer/queued_consumer.h"
#include "readout/run_info.h"
#include "rodeo/parameters.h"
#include "storage/event_file_sequence.h"

namespace rodeo::readout {

struct FileWriterSettings {
  QueueSettings queue = {};
  bool wait_when_full = true;  ///< a full queue delays the run; false: the fragment passes on unwritten
  EventShare::Settings share = {};
  formats::EventFrameSettings frame = {};
  int compression_level = 0;  ///< zlib level of the payload; 0: not compressed
  storage::EventFileSequence::Settings files = {};
};

/// One full event per fragment. A fragment outside the share passes on at once, a written one after it was written, so later
/// consumers may change it. If the disk is full or fails, the writer closes complete files if it can, and describes their
/// end in Status::failure. It then counts all later fragments by the reason, and passes them on.
class FileWriter final : public QueuedConsumer, public RunAware {
 public:
  /// Throws SetupError if the directory cannot be written to or holds this run already.
  explicit FileWriter(FileWriterSettings settings);
  ~FileWriter() override;

  void insert(FragmentPtr fragment) override;
  /// Throws SetupError like the constructor.
  void set_run(const RunInfo& run) override;
  void start() override;
  void stop() override;
  Status status() const override;

  static std::vector<Key> keys();
  static std::unique_ptr<FragmentConsumer> create(const Parameters& parameters, const RunInfo& run);

 private:
  class WritingWorker;
  std::unique_ptr<Worker> make_worker(unsigned index) override;
  storage::EventFileSequence::Outcome append(std::span<const std::span<const std::byte>> pieces, std::size_t bytes);

  // Reasons why a fragment was not written; one counter for each.
  enum class Unwritten : std::uint8_t { fraction, rate, bytes, queue_full, failed, count };
  void leave_out(Unwritten why, FragmentPtr fragment);

  FileWriterSettings settings_;  // like frame_, constant from start() on
  formats::EventFrame frame_;
  EventShare share_;
  std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(Unwritten::count)> unwritten_{};
  std::mutex append_mutex_;  // workers append to the files in turn
  bool warned_of_large_events_ = false;
  std::unique_ptr<storage::EventFileSequence> files_;  // never null
};

}  // namespace rodeo::readout
