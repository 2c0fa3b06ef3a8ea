// The files of one stream in one luminosity block, and the events in them that are not safe yet.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "farm/recorder/settings.h"
#include "formats/event_record.h"
#include "storage/event_file_sequence.h"

namespace rodeo::farm {

/// Returns the number after the largest one of the files with this core name: closed files, files being written, and files
/// that were moved away and remembered.
std::uint32_t next_file_number(const std::filesystem::path& directory, const std::string& core_name);

/// Makes the settings of a sequence of files.
storage::EventFileSequence::Settings sequence_settings(const FileSettings& settings, const std::string& recorder,
                                                       std::uint32_t run_number, const formats::RecordStream& stream,
                                                       std::uint32_t lumi_block);

/// One thread.
class StreamFile {
 public:
  using Waiter = std::uint32_t;  ///< The caller's number of an event.

  /// Opens the first file. Throws SetupError.
  explicit StreamFile(storage::EventFileSequence::Settings settings);

  bool takes_at_once(std::size_t bytes) const { return files_.takes_at_once(bytes); }
  /// False: the event is refused. report_finished() still reports the events that wait.
  bool append(std::span<const std::span<const std::byte>> pieces, std::size_t bytes, Waiter waiter, std::uint64_t now_ns);

  /// Starts a flush if the policy requires one and no flush is under way.
  void flush_if_due(const FileSettings& settings, std::uint64_t now_ns);
  /// Begins to close the files; nothing more is appended.
  void end() { files_.end(); }
  bool over() const { return files_.over() || files_.closed(); }
  void slow_down(std::chrono::nanoseconds each_write) { files_.slow_down(each_write); }

  /// Calls report(waiter, safe) for each event that is safe now. Once the files are closed, also calls it for the events
  /// that will never be safe.
  template <typename Report>
  void report_finished(Report&& report) {
    const bool final = over();
    for (const std::uint64_t safe = files_.safe_events(); reported_ < safe && !waiting_.empty(); ++reported_) {
      report(waiting_.front(), true);
      waiting_.pop_front();
    }
    if (!final) return;
    // Events may have become safe between the two looks.
    if (reported_ < files_.safe_events()) return report_finished(report);
    for (; !waiting_.empty(); waiting_.pop_front()) report(waiting_.front(), false);
  }

  bool idle() const { return waiting_.empty(); }
  std::uint64_t last_append_ns() const { return last_append_ns_; }
  /// Waits for the end of the thread unless over() is true.
  storage::EventFileSequence::Status status() const { return files_.status(); }

 private:
  storage::EventFileSequence files_;
  std::deque<Waiter> waiting_;  // Events that are not settled, in order.
  std::uint64_t reported_ = 0;  // Number of settled events.
  std::uint64_t appended_ = 0;
  std::uint64_t flushed_ = 0;  // Number of events that are safe once the last flush is done.
  std::uint64_t unflushed_bytes_ = 0;
  std::uint64_t oldest_unflushed_ns_ = 0;
  std::uint64_t last_append_ns_ = 0;
};

}  // namespace rodeo::farm
