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
  bool wait_when_full = true;  ///< a full queue holds back the run; false: the fragment is passed on unwritten
  EventShare::Settings share = {};
  formats::EventFrameSettings frame = {};
  int compression_level = 0;  ///< of the payload, with zlib; 0: not compressed
  storage::EventFileSequence::Settings files = {};
};

/// One full event per fragment. A fragment that is outside the share goes on at once; one that is written goes on after
/// that, so that a consumer behind may change it. When the disk is full or fails, files are closed whole where they can be,
/// Status::failure says how, and what follows is counted by what failed and passed on.
class FileWriter final : public QueuedConsumer, public RunAware {
 public:
  /// Throws SetupError if the directory cannot be written to or holds this run already.
  explicit FileWriter(FileWriterSettings settings);
  ~FileWriter() override;

  void insert(FragmentPtr fragment) override;
  /// As the constructor.
  void take_run(const RunInfo& run) override;
  void start() override;
  void stop() override;
  Status status() const override;

  static std::vector<Key> keys();
  static std::unique_ptr<FragmentConsumer> create(const Parameters& parameters, const RunInfo& run);

 private:
  class WritingWorker;
  std::unique_ptr<Worker> make_worker(unsigned index) override;
  storage::EventFileSequence::Outcome append(std::span<const std::span<const std::byte>> pieces, std::size_t bytes);

  // Why a fragment was not written; one cell for each.
  enum class Unwritten : std::uint8_t { fraction, rate, bytes, queue_full, failed, count };
  void leave_out(Unwritten why, FragmentPtr fragment);

  FileWriterSettings settings_;  // constant from start() on, as is the frame
  formats::EventFrame frame_;
  EventShare share_;
  std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(Unwritten::count)> unwritten_{};
  std::mutex append_mutex_;  // workers take turns at the files
  bool told_of_large_events_ = false;
  std::unique_ptr<storage::EventFileSequence> files_;  // never none
};

}  // namespace rodeo::readout
