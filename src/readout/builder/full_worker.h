// One worker of the FULL-mode builder: turns each chunk of its groups into a fragment that refers to the input's own memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/arena.h"
#include "readout/builder/builder_worker.h"
#include "readout/builder/finished_fragment.h"
#include "readout/builder/full_group.h"
#include "readout/builder/recycle_pool.h"
#include "readout/builder/trigger_list.h"
#include "readout/known_events.h"
#include "readout/sequence/sequencer.h"

namespace rodeo::readout {

/// A fragment of one chunk: its own header words, the chunk in the input's memory (or a copy), padding.
struct FullFragment : Fragment {
  FullFragment* next_free = nullptr;
  RecyclePool<FullFragment>* pool = nullptr;
  Page* page = nullptr;       ///< page of the chunk, with a reference; null if the chunk was copied
  std::byte* copy = nullptr;  ///< memory of this fragment for a copy; null: it has none
  FragmentPart storage[3];
  std::byte header[chunk_header_bytes(kLongChunkBytes)];
  std::byte padding[4] = {};
  std::vector<std::uint32_t> absent;  ///< both bitmaps, for the links of the largest group
};

class FullWorker final : public BuilderWorker, public FragmentOwner {
 public:
  struct FullSettings {
    SourceId source_id;  ///< source id of group 0; group g adds g
    std::size_t fragments = 4096;
    std::size_t copies = 0;      ///< number of fragments that have memory for a copy
    std::size_t copy_bytes = 0;  ///< largest chunk that is copied
    double copy_above = 0.75;    ///< fill of the input's memory above which chunks are copied
  };

  /// `sequencing`: settings of every group. `list`: has a reader with this worker's index; null if there is no list. Throws
  /// SetupError if there is not enough memory.
  FullWorker(const Settings& settings, const FullSettings& full, const Sequencer::Settings& sequencing,
             std::span<const BuilderLink> links, WorkerEquipment equipment, TriggerList* list, FragmentConsumer& consumer);

  /// Adds the worker's groups to the readers of the process. Call it before run().
  void share(ReaderTracks& tracks);

  void reclaim(Fragment& fragment) noexcept override;

  const FragmentCounters& fragments() const { return fragment_counters_; }
  double pool_fill() const override { return static_cast<double>(pool_.in_use()) / static_cast<double>(pool_.total()); }

  /// The events of one group; any thread.
  struct GroupEvents {
    KnownEvents known;
    std::uint64_t skipped = 0;  ///< known events in no fragment
    bool has_links = false;     ///< true if some of its links are not removed
  };
  std::vector<GroupEvents> group_events() const;

 private:
  using Group = FullGroup;
  struct LinkPlace {
    Group* group = nullptr;
    std::size_t place = 0;  ///< position within the group
  };

  void begin_thread() override { pool_.own(); }
  bool keeps_input() const override;
  bool release_pages() override;
  void release_all_pages() override;
  void process_page(Page& page) override;
  void poll_list() override;
  void check_events(bool drained) override;
  void set_removed(std::size_t link, bool removed) override;
  void finish() override;

  std::size_t kept_pages() const;
  void process_run(Page& page, const ChunkRun& run);
  void handle_chunk(const ChunkView& chunk);
  void apply_decisions(std::size_t link);
  void rejudge(Group& group);
  void deliver(Group& group, Sequence sequence, const ChunkView& chunk, std::uint32_t flags);
  void close_gaps(Group& group, Sequence bound, std::uint32_t reason);
  void open_listed(Group& group);
  void build(Group& group, Sequence sequence, const ChunkView& chunk, std::uint32_t flags);
  void build_empty(Group& group, Sequence sequence, std::uint32_t flags);
  FullFragment& make_fragment(Group& group, Sequence sequence);
  void refer_to(FullFragment& fragment, const ChunkView& chunk, std::uint8_t rodeo_status);
  void push(Group& group, FullFragment& fragment, std::uint32_t flags);

  const FullSettings full_;
  TriggerList* const list_;  // null: there is no list
  FragmentConsumer& consumer_;
  const bool has_bcid_;
  std::vector<std::unique_ptr<Group>> groups_;
  std::vector<LinkPlace> places_;
  std::unique_ptr<FullFragment[]> fragments_;
  RecyclePool<FullFragment> pool_;
  base::Arena copy_memory_;
  bool copying_ = false;
  std::uint64_t last_page_at_ = 0;      // event clock when the last page arrived
  std::uint64_t list_progress_at_ = 0;  // event clock when the last entries of the list arrived
  FragmentCounters fragment_counters_;
};

}  // namespace rodeo::readout
