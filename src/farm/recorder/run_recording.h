// Records events: files by stream, one copy of each id, answers when events are safe. It uses no network.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/counters.h"
#include "base/error.h"
#include "farm/recorder/recorded_events.h"
#include "farm/recorder/settings.h"
#include "farm/recorder/sparse_id_set.h"
#include "farm/recorder/stream_file.h"
#include "formats/event_record.h"
#include "rodeo/consumer.h"

namespace rodeo::farm {

enum class RecorderCounter : std::uint8_t {
  events_recorded,
  event_bytes,
  had_already,
  read_back,
  malformed,
  other_run,
  refused_disk_full,
  refused_write_failed,
  taken_over,
  copies_lost,
  waits_for_disk,
  count
};
inline constexpr std::array<base::CounterInfo, static_cast<std::size_t>(RecorderCounter::count)> kRecorderCounters{{
    {"events_recorded", "events", "Events that are safe on disk and acknowledged; one for each id."},
    {"event_bytes", "bytes", "Bytes of these events."},
    {"had_already", "events", "Second copies of an id: acknowledged, not written."},
    {"read_back", "events", "Ids that were found in files of this run when the recorder was started."},
    {"malformed", "requests", "Requests that cannot be read, or hold no event."},
    {"other_run", "events", "Events of another run than the recorder's: refused."},
    {"refused_disk_full", "events", "Events refused because the disk is full."},
    {"refused_write_failed", "events", "Events refused because the disk failed."},
    {"taken_over", "events", "Events refused because another node has them now; they arrived late from their former node."},
    {"copies_lost", "events",
     "Events that one of their streams has and another lacks: the write failed, or they never came again."},
    {"waits_for_disk", "waits", "Times that an event had to wait before it was taken, because the disk was busy."},
}};

/// One thread calls all functions except counters(). Opening a file blocks, and so does reading back.
class RunRecording {
 public:
  struct Ticket {
    std::uint64_t client = 0;
    std::uint64_t number = 0;
  };
  struct Answer {
    Ticket ticket;
    formats::RecordStatus status = formats::RecordStatus::recorded;
  };

  /// Recovers files that a killed recorder left open, then reads back the ids in the files of this run. File names contain
  /// `name`, the recorder's. Reports to `say`. Throws SetupError.
  RunRecording(FileSettings keys, std::string name, std::uint32_t run_number, const std::function<void(std::string)>& say);
  ~RunRecording();

  /// Accepts or refuses one request; poll() returns the answer. False: the disk is busy, offer the request again. Copies the
  /// pieces.
  bool offer(Ticket ticket, std::span<const std::span<const std::byte>> pieces, std::size_t bytes, std::uint64_t now_ns);

  /// Call it when another node has the event: a copy from its former node is refused from now on. A restart of the recorder
  /// forgets this.
  void take_over(std::uint64_t id) { taken_over_.add(id); }

  /// True if the event is accepted and not safe yet.
  bool is_under_way(std::uint64_t id) const { return under_way_.contains(id); }
  bool has(std::uint64_t id) const { return ids_.stream_of(id) != nullptr; }
  /// Returns a stream that has the event; a debug stream only if there is no other. nullptr: the event is not recorded.
  const formats::HaveAnswer::Stream* stream_of(std::uint64_t id) const { return ids_.stream_of(id); }

  /// Flushes files, collects closed files, and appends answers.
  void poll(std::uint64_t now_ns, std::vector<Answer>& answers);

  /// Begins to close all files. Call poll() until ended().
  void end();
  bool ended() const { return ending_ && files_.empty() && ending_files_.empty(); }

  /// For tests of a slow disk: from now on each write takes that much longer.
  void slow_down(std::chrono::nanoseconds each_write);

  /// Returns the files that were closed since the last call.
  std::vector<FragmentConsumer::File> take_closed();
  /// Returns the messages for people since the last call.
  std::vector<std::string> take_messages() { return std::exchange(messages_, {}); }
  /// The reason why no event is accepted at the moment; empty: events are accepted.
  const std::string& trouble() const { return trouble_; }
  std::size_t open_files() const { return files_.size(); }
  std::size_t events_waiting() const { return events_.size() - free_events_.size(); }
  std::uint64_t ids() const { return ids_.size(); }
  std::uint32_t run_number() const { return run_number_; }

  const base::CounterBlock<RecorderCounter>& counters() const { return counters_; }

 private:
  /// An event that waits for the disk.
  struct Event {
    std::uint64_t id = 0;
    std::uint64_t bytes = 0;
    std::uint32_t copies = 0;  // Copies in files; they may become safe or lost.
    std::uint32_t safe = 0;    // Copies that are safe.
    std::uint32_t lost = 0;    // Copies that will never be safe.
    RecordedEvents::StreamNumber stream = 0;
    std::vector<Ticket> tickets;
  };
  using FileKey = std::tuple<std::string, std::string, std::uint32_t>;  // Type, name, luminosity block.

  void refuse(Ticket ticket, formats::RecordStatus status);
  /// Answers a node whose copy is not needed; the status depends on the stream of the existing copy.
  void answer_had_already(Ticket ticket, const RecordedEvents::Stream& stream);
  bool has_another_decision(std::uint64_t id, std::vector<formats::RecordStream>& streams);
  /// nullptr: there is no file, and none can be opened now.
  StreamFile* file_of(const formats::RecordStream& stream, std::uint32_t lumi_block, std::uint64_t now_ns);
  void fail(const Error& error, std::uint64_t now_ns);
  void write_copies(Ticket ticket, const formats::RecordHead& head, std::uint32_t lumi_block, std::size_t bytes,
                    std::uint64_t now_ns);
  void on_copy_finished(StreamFile::Waiter waiter, bool safe);
  void collect_results(StreamFile& file, std::uint64_t now_ns);
  void end_past_files(std::uint64_t now_ns);
  formats::RecordStatus refusal_status() const;

  const FileSettings settings_;
  const std::string name_;
  const std::uint32_t run_number_;
  RecordedEvents ids_;
  SparseIdSet taken_over_;
  std::map<FileKey, std::unique_ptr<StreamFile>> files_;
  std::vector<std::unique_ptr<StreamFile>> ending_files_;
  std::vector<Event> events_;  // Events that wait for the disk, by their number.
  std::vector<StreamFile::Waiter> free_events_;
  std::unordered_map<std::uint64_t, StreamFile::Waiter> under_way_;
  std::vector<Answer> answers_;
  std::vector<std::byte> front_;
  std::vector<std::span<const std::byte>> event_pieces_;
  std::vector<FragmentConsumer::File> closed_;
  std::vector<std::string> messages_;
  std::string trouble_;
  std::string trouble_code_;
  std::uint64_t trouble_until_ns_ = 0;
  std::chrono::nanoseconds delay_{0};
  std::uint32_t newest_lumi_block_ = 0;
  bool ending_ = false;
  base::CounterBlock<RecorderCounter> counters_;
};

}  // namespace rodeo::farm
