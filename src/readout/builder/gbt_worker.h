// One worker of the GBT builder: reads its links' runs and spreads their chunks over the slices of open events, in one thread and
// without a word to its peers until a slice is ready (software ROD paper, section VIII, stage 1).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/thread.h"
#include "readout/builder/event_window.h"
#include "readout/builder/link_tracker.h"
#include "readout/builder/source_balance.h"
#include "readout/builder/trigger_list_reader.h"
#include "readout/builder/worker_counters.h"
#include "readout/builder/worker_equipment.h"
#include "rodeo/builder.h"

namespace rodeo::readout {

class GbtWorker final : private EventWindowHost {
 public:
  struct Settings {
    std::uint32_t index = 0;
    std::uint64_t window = 16384;  ///< open events; a power of two
    std::uint64_t timeout_ns = 10'000'000;
    base::IdlePolicy idle = base::IdlePolicy::sleep;
    int cpu = -1;                         ///< pinned to it unless negative
    std::uint32_t step_limit = 8;         ///< events that a link may skip and be believed at once
    std::size_t held_chunk_bytes = 4096;  ///< largest chunk that can be held until its id is confirmed
    std::string thread_name = "rodeo-gbt";
  };

  GbtWorker(const Settings& settings, std::span<const BuilderLink> links, WorkerEquipment equipment,
            std::unique_ptr<SliceStore> store, EpochMap& epochs, Assembler& assembler, std::span<WorkerProgress> progress);

  /// The thread's function: until the stream has ended and everything is published.
  void run();

  /// Removes a link or takes it back, between two pages. Any thread.
  void command(std::size_t link, LinkState state);

  std::span<const BuilderLink> links() const { return builder_links_; }

  // Read by any thread.
  std::uint64_t lost(LostCounter counter) const { return lost_.read(counter); }
  std::uint64_t counted(WorkerCounter counter) const { return counters_.read(counter); }
  FragmentBuilder::Link link_status(std::size_t link) const;
  std::uint64_t open_events() const { return open_events_.get(); }
  double pool_fill() const;
  bool held() const { return window_.held().load(std::memory_order_relaxed); }
  double cpu_seconds() const { return cpu_.seconds(); }
  std::string memory() const { return window_.store().arena().description(); }

 private:
  static constexpr std::uint32_t kBatch = 64;

  enum Flow { kMore, kDrained, kEnded };
  Flow poll_data();
  bool poll_triggers();
  bool go_on();
  void take(std::uint32_t source, SourceBalance::Place at, bool forced);
  void begin_page();
  bool short_of_buffers() const;
  void process_run(const ChunkRun& run);
  bool single_as_expected(TrackedLink& link, const ChunkRun& run);
  void regular(TrackedLink& link, const ChunkRun& run, std::uint32_t first, std::uint32_t n, const std::uint16_t* bcids);
  void single(TrackedLink& link, const ChunkRun& run, std::uint32_t chunk, std::uint32_t id, std::uint16_t bcid,
              bool corrupt, bool has_following, std::uint32_t following);
  void apply(TrackedLink& link, const LinkTracker& tracker, const TrackerDecision& decision,
             std::span<const std::byte> chunk, std::uint32_t id, std::uint16_t bcid, std::uint8_t felix_status,
             bool corrupt);
  void deliver(TrackedLink& link, std::span<const std::byte> chunk, std::uint16_t bcid, std::uint8_t felix_status,
               bool corrupt, std::uint16_t flags = 0);
  bool untold_restart(const TrackedLink& link, std::uint32_t id) const;
  void warn_of_restart();
  void hold(TrackedLink& link, std::size_t position, std::span<const std::byte> chunk, std::uint32_t id, std::uint16_t bcid,
            std::uint8_t felix_status, bool corrupt);
  void settle_held(TrackedLink& link, std::size_t position, bool has_following, std::uint32_t following);
  void lose(TrackedLink& link, LostCounter reason, std::uint64_t n = 1);
  void begin_window();
  TrackerDecision decide(const TrackedLink& link, const LinkTracker& tracker, std::uint32_t id, bool has_following,
                         std::uint32_t following);
  Window window_for(const TrackedLink& link) const;
  bool majority_ahead() const;
  bool peers_are_beyond(Sequence full) const;
  std::uint32_t links_near() const;
  bool nobody_follows(const TrackedLink& link) const;
  void set_ahead(TrackedLink& link, bool ahead);
  void limit_epochs(const Epoch& from, const Epoch& epoch, Sequence end);
  void learn_of_epochs();
  bool may_read_triggers() const;

  void tick(bool drained);
  Sequence reached_by_others();
  bool ahead_of_busy_peer() const;
  void follow_peers();
  void finish();

  void obey();
  void remove(std::size_t position);
  void take_back(std::size_t position);
  std::size_t position_of(const TrackedLink& link) const { return static_cast<std::size_t>(&link - links_.data()); }

  std::uint16_t name(Sequence sequence, std::span<const std::byte> chunk, OpenEvent& event) override;

  const Settings settings_;
  const std::vector<BuilderLink> builder_links_;
  WorkerEquipment equipment_;
  TriggerListReader list_;
  EpochMap& epochs_;
  Assembler& assembler_;
  const std::span<WorkerProgress> progress_;
  std::vector<TrackedLink> links_;  // the builder's, then the trigger's list if there is one
  std::unique_ptr<LinkCounters[]> link_counters_;
  LinkTracker tracker_;
  LinkTracker trigger_tracker_;
  EventWindow window_;
  SourceBalance balance_;

  std::array<std::uint32_t, kBatch> ids_{};
  std::array<std::uint16_t, kBatch> bcids_{};
  const bool has_trigger_type_;
  const bool untold_resets_;  // narrow ids and no trigger list: a reset cannot be told from a jump
  AppendKernel kernel_ = nullptr;
  std::uint32_t kernel_size_ = 0;

  struct Held {  // one chunk per link, kept until the next tells whether its id is true
    std::uint32_t size = 0;
    std::uint16_t bcid = 0;
    std::uint8_t felix_status = 0;
    bool corrupt = false;
  };
  std::vector<Held> held_;
  std::vector<std::byte> held_bytes_;

  std::array<std::pair<std::uint64_t, Sequence>, 8> ended_epochs_{};  // reset count, first number beyond
  std::size_t ended_epoch_count_ = 0;
  std::size_t epochs_known_ = 0;
  std::array<Sequence, 3> list_epochs_{};  // the last that the trigger's list came to: first number of each
  std::size_t list_epoch_count_ = 0;

  std::uint32_t active_links_ = 0;
  const TrackedLink* current_link_ = nullptr;  // whose chunk is being appended, for name()
  std::uint64_t page_time_ns_ = 0;
  std::uint64_t event_clock_ = 0;
  std::uint64_t input_clock_ = 0;

  std::mutex command_mutex_;
  std::vector<std::pair<std::size_t, LinkState>> commands_;
  std::atomic<bool> commanded_{false};

  base::LogThrottle plugin_errors_;
  base::LogThrottle restarts_;
  base::LogThrottle strays_;
  LostCounters lost_;
  WorkerCounters counters_;
  base::Gauge<std::uint64_t> open_events_;
  base::ThreadCpu cpu_;
};

}  // namespace rodeo::readout
