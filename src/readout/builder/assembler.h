// Assembly: puts the slices that the workers made of one event together as a scatter list, without copying, and pushes the fragment
// to the first consumer (software ROD paper, section VIII, stage 2).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/counters.h"
#include "readout/builder/epoch_map.h"
#include "readout/builder/event_slot.h"
#include "readout/builder/recycle_pool.h"
#include "readout/builder/slice_store.h"
#include "rodeo/consumer.h"
#include "rodeo/fragment.h"

namespace rodeo::readout {

/// Links that gave one worker nothing for one event; looked at only where there are any.
struct MissingList {
  std::uint32_t listed = 0;
  std::uint32_t link_ids[Fragment::kMissingListed] = {};
};

/// What one worker has made of one event. Half a cache line, since each is written by one core and read by another.
struct WorkerPart {
  Slice* slice = nullptr;  ///< owned by the fragment from here on; null if no link of the worker delivered
  std::uint64_t handed_over_ns = 0;
  L1Id l1id;
  std::uint16_t chunks = 0;
  std::uint16_t missing = 0;
  std::uint16_t bcid = 0;
  std::uint16_t bcid_difference = 0;
  std::uint16_t flags = 0;  ///< slot_flag bits
  std::uint8_t trigger_type = 0;
};
static_assert(sizeof(WorkerPart) <= 32);

enum class FragmentCounter : std::size_t {
  built,
  chunks,
  payload_bytes,
  incomplete,
  timeout,
  ring_full,
  run_ended,
  missing,
  corrupt,
  truncated,
  bcid_mismatch,
  not_triggered,
  doubtful_id,
  empty,
  count
};

inline constexpr base::CounterInfo kFragmentInfo[] = {
    {"built", "fragments", "Fragments pushed to the first consumer"},
    {"chunks", "chunks", "Chunks in these fragments"},
    {"payload_bytes", "bytes", "ROD data of these fragments"},
    {"incomplete", "fragments", "Fragments with a link missing or any status bit set"},
    {"timeout", "fragments", "Incomplete: closed by the clock"},
    {"ring_full", "fragments", "Incomplete: closed to make room in the window or the pool"},
    {"run_ended", "fragments", "Incomplete: still open when the run ended"},
    {"missing", "fragments", "Incomplete: links skipped the event, nothing had to be forced"},
    {"corrupt", "fragments", "A chunk failed the integrity check or carries a link error"},
    {"truncated", "fragments", "A chunk was cut"},
    {"bcid_mismatch", "fragments", "The chunks do not agree on the BCID"},
    {"not_triggered", "fragments", "The event is not in the trigger's own list"},
    {"doubtful_id", "fragments",
     "A narrow L1 id restarted near zero and there is no trigger list: a reset, or a jump; L1 ids from here on may be "
     "wrong"},
    {"empty", "fragments", "In the trigger's own list, but no link delivered"},
};
static_assert(std::size(kFragmentInfo) == static_cast<std::size_t>(FragmentCounter::count));

using FragmentCounters = base::CounterBlock<FragmentCounter>;

/// A fragment over slices.
struct BuiltFragment : Fragment {
  BuiltFragment* next_free = nullptr;
  RecyclePool<BuiltFragment>* pool = nullptr;
  std::vector<Slice*> slices;  ///< sized at construction
  std::uint32_t slice_count = 0;
  std::vector<FragmentPart> storage;  ///< sized at construction
  std::vector<FragmentPart> sorted;   ///< the same, if links are to be sorted
};

class Assembler final : public FragmentOwner {
 public:
  struct Settings {
    SourceId source_id;
    std::uint32_t workers = 1;
    std::uint64_t window = 16384;       ///< a power of two
    std::uint32_t parts_per_slice = 1;  ///< buffers that a slice may have
    std::size_t fragments_per_worker = 1024;
    bool trigger_list = false;  ///< events are judged by the trigger's own list
    std::uint32_t links = 0;    ///< of all workers
    bool sort_links = false;    ///< one part per chunk, in the order of link ids
  };

  Assembler(const Settings& settings, FragmentConsumer& consumer);

  /// Called once, before any pass(), with the lowest sequence number of the run.
  void start(Sequence first);

  /// Makes the calling thread the owner of worker `worker`'s pool of fragments.
  void own(std::uint32_t worker) { pools_[worker]->own(); }

  /// True if worker may pass this event now; false while the ring of half-assembled events still holds one that a slower
  /// worker has not passed. Never false with one worker.
  bool ready(Sequence sequence) const {
    return settings_.workers == 1 || sequence < assembled_.load(std::memory_order_acquire) + settings_.window;
  }

  /// Notes what this worker has made of the next event, or nothing (an event void for this worker). Each worker passes every number
  /// in order, after ready(). `missing` is read only if part.missing is not zero. With one worker the fragment is built and pushed at once, and may
  /// block there on a full consumer.
  void pass(std::uint32_t worker, Sequence sequence, const WorkerPart& part, const MissingList& missing,
            std::atomic<bool>& held);

  /// Lets the peers know of everything passed up to here, and builds the events that all workers have passed, unless a peer is at it. May block on a
  /// full consumer.
  void publish(std::uint32_t worker, Sequence passed, std::atomic<bool>& held);

  void reclaim(Fragment& fragment) noexcept override;

  const FragmentCounters& counters(std::uint32_t worker) const { return counters_[worker]; }
  /// Events built without a chunk from any link of this worker: each of its links was missing in them.
  std::uint64_t events_without(std::uint32_t worker) const {
    return events_without_[worker].load(std::memory_order_relaxed);
  }

 private:
  struct alignas(base::kCacheLine) Passed {
    std::atomic<Sequence> sequence{0};  // every number up to here
  };

  void build(std::uint32_t worker, Sequence sequence, std::span<const WorkerPart* const> parts,
             std::span<const MissingList* const> missing, std::atomic<bool>& held);
  Sequence passed_by_all() const;
  void ask_ahead(Sequence sequence, Sequence end) const;
  static void sort_by_link(BuiltFragment& fragment);
  static std::uint32_t status_of(std::uint32_t flags, std::uint32_t missing, bool bcid_mismatch, bool empty,
                                 bool not_triggered);

  const Settings settings_;
  const std::uint64_t mask_;
  FragmentConsumer& consumer_;
  std::unique_ptr<Passed[]> passed_;
  std::vector<std::vector<WorkerPart>> parts_;     // of each worker, by slot; a worker writes its own alone
  std::vector<std::vector<MissingList>> missing_;  // the same
  std::vector<const WorkerPart*> gathered_;        // of the event being assembled; with the lock
  std::vector<const MissingList*> gathered_missing_;
  alignas(base::kCacheLine) std::atomic<bool> assembling_{false};
  alignas(base::kCacheLine) std::atomic<Sequence> assembled_{0};  // every number up to here; written with the lock
  std::vector<std::unique_ptr<BuiltFragment>> fragments_;
  std::vector<std::unique_ptr<RecyclePool<BuiltFragment>>> pools_;
  std::unique_ptr<FragmentCounters[]> counters_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> events_without_;
};

}  // namespace rodeo::readout
