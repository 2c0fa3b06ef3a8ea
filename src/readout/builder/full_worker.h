// One worker of the FULL-mode builder: turns each chunk of its groups into a fragment that refers to the input's own memory.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/arena.h"
#include "base/log.h"
#include "base/thread.h"
#include "readout/builder/assembler.h"
#include "readout/builder/global_id.h"
#include "readout/builder/group_tracker.h"
#include "readout/builder/recycle_pool.h"
#include "readout/builder/trigger_list_reader.h"
#include "readout/builder/worker_counters.h"
#include "readout/builder/worker_equipment.h"
#include "rodeo/builder.h"

namespace rodeo::readout {

/// A fragment over one chunk: header words of its own, the chunk where the input has it (or a copy), padding.
struct FullFragment : Fragment {
  FullFragment* next_free = nullptr;
  RecyclePool<FullFragment>* pool = nullptr;
  Page* page = nullptr;       ///< referenced, unless the chunk was copied
  std::byte* copy = nullptr;  ///< memory of its own for a copy; null if the builder keeps none
  FragmentPart storage[3];
  std::byte header[sizeof(ChunkHeader) + 4];
  std::byte padding[4] = {};
  std::vector<std::uint32_t> absent;  ///< both bitmaps, of the links of the largest group
};

class FullWorker final : public FragmentOwner {
 public:
  struct Settings {
    SourceId source_id;  ///< of group 0; group g adds g
    std::uint32_t index = 0;
    std::uint64_t window = 1024;
    std::uint64_t timeout_ns = 10'000'000;
    std::uint32_t step_limit = 64;
    std::size_t fragments = 4096;
    std::size_t copies = 0;      ///< fragments that have memory for a copy
    std::size_t copy_bytes = 0;  ///< largest chunk that is copied
    double copy_above = 0.75;    ///< fill of the input's memory above which chunks are copied
    base::IdlePolicy idle = base::IdlePolicy::sleep;
    int cpu = -1;
  };

  /// Throws SetupError if there is no memory.
  FullWorker(const Settings& settings, std::span<const BuilderLink> links, WorkerEquipment equipment,
             FragmentConsumer& consumer);
  ~FullWorker();

  void run();
  void command(std::size_t link, LinkState state);
  void reclaim(Fragment& fragment) noexcept override;

  std::span<const BuilderLink> links() const { return builder_links_; }
  const FragmentCounters& fragments() const { return fragment_counters_; }
  std::uint64_t lost(LostCounter counter) const { return lost_.read(counter); }
  std::uint64_t counted(WorkerCounter counter) const { return counters_.read(counter); }
  FragmentBuilder::Link link_status(std::size_t link) const;
  std::uint64_t open_events() const { return open_events_.get(); }
  double pool_fill() const { return static_cast<double>(pool_.in_use()) / static_cast<double>(pool_.total()); }
  bool held() const { return held_.load(std::memory_order_relaxed); }
  double cpu_seconds() const { return cpu_.seconds(); }

 private:
  static constexpr std::uint32_t kBatch = 64;

  /// Where a chunk lies and what is known of it; keeps its page while it waits for confirmation.
  struct ChunkAt {
    Page* page = nullptr;
    std::span<const std::byte> bytes;
    std::uint32_t id = 0;
    std::uint16_t bcid = 0;
    std::uint8_t felix_status = 0;
    std::uint8_t rodeo_status = 0;
    LinkIndex link = 0;
  };

  struct Group final : MissingEvents {
    Group(FullWorker& owner, std::uint32_t group_number, const GroupTracker::Settings& settings, const IdFormat& format)
        : worker(owner), number(group_number), tracker(settings, format, *this) {}
    void missing(Sequence sequence) override { worker.build_empty(*this, sequence); }

    FullWorker& worker;
    const std::uint32_t number;
    GroupTracker tracker;
    GlobalIds global_ids;
    std::vector<std::uint32_t> link_ids;  ///< by place
    ChunkAt held;                         ///< far from anything until the group's next chunk; page == nullptr: none
    Sequence gap_at = 0;                  ///< the oldest gap when the clock was last looked at
    Sequence gap_head = 0;                ///< what was newest then
    std::uint64_t gap_since = 0;          ///< on the event clock
    std::uint16_t close_reason = 0;       ///< slot_flag while gaps are given up
  };

  struct LinkPlace {
    Group* group = nullptr;
    std::uint32_t place = 0;  ///< within the group
    bool removed = false;
    bool continuing = false;
    bool holding = false;  ///< the link's chunk in unexpected_
  };

  /// A chunk that its link's next chunk will confirm or contradict.
  struct Unexpected {
    ChunkAt chunk;
    std::uint64_t since = 0;  ///< on the event clock
  };

  void process_run(Page& page, const ChunkRun& run);
  void handle(const ChunkAt& chunk);
  void settle_held(Group& group, bool confirmed);
  void settle_unexpected(LinkIndex link, bool contradicted);
  void settle_unexpected(std::uint64_t before);
  void build(Group& group, Sequence sequence, const ChunkAt& chunk);
  void build_empty(Group& group, Sequence sequence);
  FullFragment& take_fragment(Group& group, Sequence sequence);
  void push(FullFragment& fragment, std::uint32_t reason_flags);
  void lose(LinkIndex link, LostCounter reason);
  bool poll_triggers();
  void tick(bool drained);
  void obey();
  void finish();

  const Settings settings_;
  const std::vector<BuilderLink> builder_links_;
  WorkerEquipment equipment_;
  TriggerListReader list_;
  FragmentConsumer& consumer_;
  const IdFormat format_;
  const bool has_trigger_type_;
  const bool has_bcid_;
  std::vector<std::unique_ptr<Group>> groups_;
  std::vector<LinkPlace> places_;
  std::unique_ptr<LinkCounters[]> link_counters_;
  std::unique_ptr<FullFragment[]> fragments_;
  RecyclePool<FullFragment> pool_;
  base::Arena copy_memory_;

  std::array<std::uint32_t, kBatch> ids_{};
  std::array<std::uint16_t, kBatch> bcids_{};
  std::uint64_t page_time_ns_ = 0;
  std::uint64_t event_clock_ = 0;
  std::uint64_t input_clock_ = 0;
  bool copying_ = false;
  std::vector<Unexpected> unexpected_;  // of each link
  std::uint32_t holding_ = 0;           // links that hold one

  std::mutex command_mutex_;
  std::vector<std::pair<std::size_t, LinkState>> commands_;
  std::atomic<bool> commanded_{false};

  base::LogThrottle plugin_errors_;
  FragmentCounters fragment_counters_;
  LostCounters lost_;
  WorkerCounters counters_;
  base::Gauge<std::uint64_t> open_events_;
  std::atomic<bool> held_{false};
  base::ThreadCpu cpu_;
};

}  // namespace rodeo::readout
