// The common part of both builders' workers: the thread's loop (read, hold back, obey commands, look at the clock, drain)
// and its counters.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/thread.h"
#include "input/chunk_limit.h"
#include "readout/builder/chunk_bytes.h"
#include "readout/builder/link_place.h"
#include "readout/builder/waiting_chunks.h"
#include "readout/builder/waits_for.h"
#include "readout/builder/worker_counters.h"
#include "readout/builder/worker_equipment.h"
#include "readout/sequence/sequencer.h"
#include "rodeo/builder.h"

namespace rodeo::readout {

class BuilderWorker {
 public:
  struct Settings {
    std::uint32_t index = 0;
    std::uint64_t timeout_ns = 10'000'000;
    base::IdlePolicy idle = base::IdlePolicy::sleep;
    int cpu = -1;  ///< the thread is pinned to this CPU unless negative
    std::string thread_name = "rodeo-worker";
    std::size_t waiting_chunks = 1024;  ///< chunks of a link whose event is not known yet
    std::size_t waiting_bytes = 0;      ///< memory for copies of waiting chunks; 0: their pages are kept
  };

  virtual ~BuilderWorker() = default;

  /// The thread's function. Returns when the stream has ended and everything is published.
  void run();

  /// Removes or restores a link, between two pages. Any thread.
  void command(std::size_t link, LinkState state);
  /// Ends run(): the worker does not wait any more, and counts the rest of the input as given up. Any thread.
  void give_up() { give_up_requested_.store(true, std::memory_order_release); }

  // Read by any thread.
  std::span<const BuilderLink> links() const { return builder_links_; }
  std::uint64_t lost(LostCounter counter) const { return lost_.read(counter); }
  ChunkBytes chunk_bytes() const;
  std::uint64_t counted(WorkerCounter counter) const { return counters_.read(counter); }
  virtual FragmentBuilder::Link link_status(std::size_t link) const;
  KnownPlace link_place(std::size_t link) const;
  std::uint64_t open_events() const { return open_events_.get(); }
  virtual double pool_fill() const = 0;
  bool held() const { return held_.load(std::memory_order_relaxed); }
  /// What this worker waits for now, and the number of chunks that it has read, lost or found missing.
  FragmentBuilder::Worker worker_status() const;
  double cpu_seconds() const { return cpu_.seconds(); }

 protected:
  static constexpr std::uint32_t kBatch = 64;

  BuilderWorker(Settings settings, std::span<const BuilderLink> links, WorkerEquipment equipment);

  /// Called in the worker's thread, before any other function.
  virtual void begin_thread() = 0;
  /// True while this worker should not read further.
  virtual bool holds_back() { return false; }
  /// Continues with parked data; true if it made progress.
  virtual bool resume_parked() { return false; }
  /// True if waiting chunks keep more pages of the input than consumers do. Without free pages, no data arrive before time
  /// has decided on these chunks.
  virtual bool keeps_input() const { return false; }
  /// Called when the input waits for pages. True if this worker has released some that it kept.
  virtual bool release_pages() { return false; }
  /// Builds from a page and drops it.
  virtual void process_page(Page& page) = 0;
  /// Reads the trigger's own list while there is room for its entries.
  virtual void poll_list() = 0;
  /// Called after each page, and while there is no page: closes events that are complete or overdue.
  virtual void check_events(bool drained) = 0;
  virtual void set_removed(std::size_t link, bool removed) = 0;
  /// Called after give_up(): returns the pages of the input that this worker keeps.
  virtual void release_all_pages() = 0;
  /// Called when the stream has ended.
  virtual void finish() = 0;

  void count_lost(std::size_t link, LostCounter reason, std::uint64_t chunks, std::uint64_t bytes);
  void count_lost(const ChunkView& chunk, LostCounter reason) { count_lost(chunk.link, reason, 1, chunk.size); }
  /// Counts a chunk that was refused, by its verdict.
  void count_lost(const ChunkView& chunk, Verdict verdict);
  /// Counts the chunks of a run that the input has handed over; returns their bytes.
  std::uint64_t count_received(const ChunkRun& run);
  /// Counts and logs the sequencer's findings about a link's place.
  void on_place_change(std::size_t link, const PlaceChange& change);
  /// Asks the extractor for a chunk's trigger type; false, and a warning, if it throws.
  bool trigger_type(std::size_t link, std::span<const std::byte> chunk, std::uint8_t& type);
  /// Appends a chunk to the waiting chunks of its link.
  void add_waiting(const ChunkView& chunk);
  /// Adds one of this worker's readers to the readers of the process. They show each other the places of links after a
  /// silence. Call it before run().
  ReaderTrack& add_track(ReaderTracks& tracks, std::uint64_t spacing);
  /// For a page of a file that comes after a silence. Waits until all readers have read the file up to here, or none has
  /// made progress for 0.2 s.
  void wait_for_others();
  /// For a file: the clock up to which, before the current page, the input had no data for this worker.
  std::optional<std::uint64_t> quiet_until() const {
    return equipment_.player == nullptr ? std::nullopt : std::optional(equipment_.player->quiet_until());
  }
  /// True if the last look at the input found no data.
  bool drained() const { return drained_; }
  /// True if give_up() was called.
  bool gives_up() const { return give_up_requested_.load(std::memory_order_acquire); }
  /// Sets what this worker waits for.
  void set_waits_for(WaitsFor what) { waits_for_.store(what, std::memory_order_relaxed); }

  const Settings settings_;
  const std::vector<BuilderLink> builder_links_;
  WorkerEquipment equipment_;
  const IdFormat format_;
  const bool has_trigger_type_;
  std::unique_ptr<LinkCounters[]> link_counters_;
  WaitingChunks waiting_;
  std::vector<Decision> decisions_;

  std::array<std::uint32_t, kBatch> ids_{};
  std::array<std::uint16_t, kBatch> bcids_{};
  std::uint64_t page_time_ns_ = 0;
  std::uint64_t event_clock_ = 0;

  base::LogThrottle plugin_errors_;
  base::LogThrottle place_log_;
  LostCounters lost_;
  LostCounters lost_bytes_;
  WorkerCounters counters_;
  base::Gauge<std::uint64_t> open_events_;
  std::atomic<bool> held_{false};  // true while the worker waits for consumers, or for a slower peer
  bool given_up_ = false;          // chunks are only counted

 private:
  enum class Flow { more, drained, full, ended };
  Flow poll_data();
  void tick(Flow flow);
  std::uint64_t input_time();
  std::uint64_t time_while_full();
  void discard_input();
  void apply_commands();

  const ReaderTracks* tracks_ = nullptr;  // the readers of the process; null: no others
  std::vector<ReaderTrack*> own_tracks_;
  bool drained_ = false;
  std::uint64_t input_clock_ = 0;
  std::uint64_t full_at_ns_ = 0;  // steady time of the last look at an input that is full of waiting chunks; 0: it is not
  std::atomic<WaitsFor> waits_for_{WaitsFor::nothing};
  std::atomic<bool> give_up_requested_{false};
  std::mutex command_mutex_;
  std::vector<std::pair<std::size_t, LinkState>> commands_;
  std::atomic<bool> has_commands_{false};
  base::ThreadCpu cpu_;
};

}  // namespace rodeo::readout
