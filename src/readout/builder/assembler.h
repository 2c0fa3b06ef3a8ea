// Assembly: joins the slices that the workers made of one event to a scatter list, without copying, and passes the fragment
// to the first consumer (software ROD paper, section VIII, stage 2).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/counters.h"
#include "readout/builder/finished_fragment.h"
#include "readout/builder/global_id.h"
#include "readout/builder/recycle_pool.h"
#include "readout/builder/rob_sequence.h"
#include "readout/builder/slice_store.h"
#include "rodeo/consumer.h"
#include "rodeo/fragment.h"
#include "rodeo/trigger.h"

namespace rodeo::readout {

/// The data that one worker has for one event. It has the size of half a cache line: one core writes it and another reads
/// it.
struct WorkerPart {
  Slice* slice = nullptr;  ///< the fragment owns it from here on; null if no link of the worker delivered a chunk
  std::uint64_t handed_over_ns = 0;
  L1Id l1id;
  std::uint16_t chunks = 0;
  std::uint16_t bcid = 0;
  std::uint16_t bcid_difference = 0;
  std::uint16_t flags = 0;  ///< slot_flag bits
  std::uint32_t trigger_type : 8 = 0;
  std::uint32_t rounds : GlobalIds::kRoundBits = 0;  ///< the low bits of the rounds in the global id
};
static_assert(sizeof(WorkerPart) <= 32);

/// A fragment made of slices.
struct BuiltFragment : Fragment {
  BuiltFragment* next_free = nullptr;
  RecyclePool<BuiltFragment>* pool = nullptr;
  std::vector<Slice*> slices;  ///< sized at construction
  std::uint32_t slice_count = 0;
  std::vector<FragmentPart> storage;  ///< allocated at construction
  std::vector<FragmentPart> sorted;   ///< the same parts sorted, if links are to be sorted
  std::vector<std::uint32_t> absent;  ///< both bitmaps, of missing and of removed links
};

class Assembler final : public FragmentOwner {
 public:
  struct Settings {
    SourceId source_id;
    std::vector<std::uint32_t> link_ids;  ///< link ids of all workers, one worker after the other: see first_link()
    std::uint32_t workers = 1;
    std::uint64_t window = 16384;       ///< a power of two
    std::uint32_t parts_per_slice = 1;  ///< buffers that a slice may have
    std::size_t fragments_per_worker = 1024;
    bool trigger_list = false;  ///< the trigger's own list decides which numbers are events
    bool sort_links = false;    ///< one part per chunk, in the order of link ids
  };

  /// `rob` names events that no link has brought. The assembler uses its own `extractor` to find chunks with a wrong BCID.
  Assembler(Settings settings, RobSequence& rob, std::unique_ptr<TriggerExtractor> extractor, FragmentConsumer& consumer);

  /// Worker w has the links [first_link(w), first_link(w + 1)) of the ROB.
  std::size_t first_link(std::uint32_t worker) const { return worker * settings_.link_ids.size() / settings_.workers; }
  /// Words of one of a worker's bitmaps. The first of these words is word first_link(worker) / 32 of the fragment's bitmap.
  std::size_t absent_words(std::uint32_t worker) const {
    const std::size_t end = first_link(worker + 1);
    return end == first_link(worker) ? 0 : (end - 1) / 32 - first_link(worker) / 32 + 1;
  }

  /// Called once with the lowest sequence number of the run, before any pass().
  void start(Sequence first);

  /// Makes the calling thread the owner of worker `worker`'s pool of fragments.
  void own(std::uint32_t worker) { pools_[worker]->own(); }

  /// True if the worker may pass this event now. False while the ring of half-assembled events is full, because a slower
  /// worker has not passed its oldest event. With one worker it is always true.
  bool ready(Sequence sequence) const {
    return settings_.workers == 1 || sequence < assembled_.load(std::memory_order_acquire) + settings_.window;
  }

  /// Stores the worker's part of the next event, which may be empty. A number that no link has brought is an event if the
  /// trigger's own list has it or, without a list, if a later event of the same segment has arrived. Such an event is built
  /// empty. Each worker passes every number in order, after ready(). `absent`: the worker's bitmaps of missing links and,
  /// after it, of removed links; read only with slot_flag::kLinksAbsent. With one worker, the call builds the fragment and
  /// passes it on at once, and may block on a full consumer.
  void pass(std::uint32_t worker, Sequence sequence, const WorkerPart& part, std::span<const std::uint32_t> absent,
            std::atomic<bool>& held);

  /// Publishes that this worker has passed everything up to `passed`, and builds the events that all workers have passed,
  /// unless a peer is doing this. May block on a full consumer.
  void publish(std::uint32_t worker, Sequence passed, std::atomic<bool>& held);

  /// The number of events that this worker has published as passed and some peer has not.
  std::uint64_t events_owed(std::uint32_t worker) const {
    const Sequence passed = passed_[worker].sequence.load();
    return passed - std::min(passed, passed_by_all());
  }

  /// The BCID of an event that a peer has published and this worker has not passed; empty if none has published it.
  std::optional<std::uint16_t> bcid_of_peers(std::uint32_t worker, Sequence sequence) const;

  void reclaim(Fragment& fragment) noexcept override;

  const FragmentCounters& counters(std::uint32_t worker) const { return counters_[worker]; }
  /// Global id of the run's first event; all ones before that event. Any thread.
  std::uint64_t first_event() const { return first_event_.load(std::memory_order_relaxed); }
  /// Counts of one link of the ROB, any thread: the events built without it because it was missing or removed.
  std::uint64_t missing(std::size_t link) const { return absences_[link].missing.get(); }
  std::uint64_t left_out(std::size_t link) const { return absences_[link].left_out.get(); }

 private:
  struct alignas(base::kCacheLine) Passed {
    std::atomic<Sequence> sequence{0};  // all numbers up to this one are passed
  };

  struct Absences {
    base::Gauge<std::uint64_t> missing;
    base::Gauge<std::uint64_t> left_out;
  };

  void assemble(std::uint32_t worker, Sequence sequence, std::span<const WorkerPart* const> parts,
                std::span<const std::uint32_t* const> absent, std::atomic<bool>& held);
  void build_skipped(std::uint32_t worker, Sequence before, std::span<const WorkerPart* const> parts,
                     std::span<const std::uint32_t* const> absent, std::atomic<bool>& held);
  void build(std::uint32_t worker, Sequence sequence, std::span<const WorkerPart* const> parts,
             std::span<const std::uint32_t* const> absent, std::atomic<bool>& held);
  struct Gathered;
  Gathered gather(BuiltFragment& fragment, std::span<const WorkerPart* const> parts,
                  std::span<const std::uint32_t* const> absent);
  void add_absent(BuiltFragment& fragment, std::uint32_t worker, const std::uint32_t* absent);
  void read_bcids(const BuiltFragment& fragment);
  bool most_frequent_bcid(BuiltFragment& fragment);
  void mark_bcids(BuiltFragment& fragment, bool listed);
  void note_misfit(std::uint32_t link_id, Sequence sequence);
  Sequence passed_by_all() const;
  void prefetch(Sequence sequence, Sequence end) const;
  static void sort_by_link(BuiltFragment& fragment);

  const Settings settings_;
  const std::uint64_t mask_;
  RobSequence& rob_;
  FragmentConsumer& consumer_;
  Sequence last_built_ = 0;  // 0: none; written by the assembling worker
  std::atomic<std::uint64_t> first_event_{~std::uint64_t{0}};
  std::unique_ptr<Passed[]> passed_;
  std::vector<std::vector<WorkerPart>> parts_;      // parts by worker and slot; each worker writes only its own parts
  std::vector<std::vector<std::uint32_t>> absent_;  // both bitmaps of each event, by worker and slot
  // About the event that is being assembled; protected by the lock:
  std::vector<const WorkerPart*> gathered_;
  std::vector<const std::uint32_t*> gathered_absent_;
  // The workers' parts of an event that all links skipped.
  std::vector<WorkerPart> skipped_parts_;
  std::vector<std::vector<std::uint32_t>> skipped_absent_;
  std::vector<const WorkerPart*> skipped_;
  std::vector<const std::uint32_t*> skipped_bitmaps_;
  std::unique_ptr<TriggerExtractor> extractor_;
  const bool has_bcid_;
  std::vector<std::pair<std::byte*, std::uint16_t>> bcids_;  // header and BCID of each chunk
  std::vector<std::uint16_t> sorted_bcids_;
  std::unique_ptr<Absences[]> absences_;
  /// Counts the events, almost in a row, in which a link's BCID differs from the event's.
  struct Misfits {
    Sequence last = 0;
    std::uint32_t row = 0;
  };
  std::unordered_map<std::uint32_t, std::size_t> link_of_id_;  // filled at construction
  std::vector<Misfits> misfits_;                               // one for each link
  GlobalIds global_ids_;
  alignas(base::kCacheLine) std::atomic<bool> assembling_{false};
  // All numbers up to this one are assembled; written under the lock.
  alignas(base::kCacheLine) std::atomic<Sequence> assembled_{0};
  std::vector<std::unique_ptr<BuiltFragment>> fragments_;
  std::vector<std::unique_ptr<RecyclePool<BuiltFragment>>> pools_;
  std::unique_ptr<FragmentCounters[]> counters_;
};

}  // namespace rodeo::readout
