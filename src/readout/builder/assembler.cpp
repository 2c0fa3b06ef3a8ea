#include "readout/builder/assembler.h"

#include <algorithm>
#include <cstring>

#include "base/thread.h"

namespace rodeo::readout {
namespace {

constexpr Sequence kPartsAhead = 16;  // events
constexpr Sequence kSlicesAhead = 6;  // events
constexpr Sequence kToldEvery = 32;   // events

}  // namespace

Assembler::Assembler(const Settings& settings, FragmentConsumer& consumer)
    : settings_(settings),
      mask_(settings.window - 1),
      consumer_(consumer),
      counters_(std::make_unique<FragmentCounters[]>(settings.workers)),
      events_without_(std::make_unique<std::atomic<std::uint64_t>[]>(settings.workers)) {
  passed_ = std::make_unique<Passed[]>(settings.workers);
  parts_.assign(settings.workers, std::vector<WorkerPart>(settings.workers > 1 ? settings.window : 0));
  missing_.assign(settings.workers, std::vector<MissingList>(settings.workers > 1 ? settings.window : 0));
  gathered_.resize(settings.workers);
  gathered_missing_.resize(settings.workers);
  for (std::uint32_t worker = 0; worker < settings.workers; ++worker) {
    pools_.push_back(std::make_unique<RecyclePool<BuiltFragment>>());
    for (std::size_t i = 0; i < settings.fragments_per_worker; ++i) {
      auto fragment = std::make_unique<BuiltFragment>();
      fragment->pool = pools_.back().get();
      fragment->slices.resize(settings.workers);
      fragment->storage.resize(std::size_t{settings.workers} * settings.parts_per_slice);
      if (settings.sort_links) fragment->sorted.resize(settings.links);
      fragment->owner = this;
      fragment->source_id = settings.source_id;
      pools_.back()->add(fragment.get());
      fragments_.push_back(std::move(fragment));
    }
  }
}

void Assembler::start(Sequence first) {
  for (std::uint32_t worker = 0; worker < settings_.workers; ++worker) passed_[worker].sequence.store(first - 1);
  assembled_.store(first - 1);
}

void Assembler::pass(std::uint32_t worker, Sequence sequence, const WorkerPart& part, const MissingList& missing,
                     std::atomic<bool>& held) {
  if (settings_.workers == 1) {
    const WorkerPart* const only = &part;
    const MissingList* const only_missing = &missing;
    if (part.slice != nullptr || (part.flags & slot_flag::kTriggered) != 0)
      build(worker, sequence, {&only, 1}, {&only_missing, 1}, held);
    return;
  }
  __builtin_prefetch(&parts_[worker][(sequence + kPartsAhead) & mask_], 1);  // a peer has read it last
  parts_[worker][sequence & mask_] = part;
  if (part.missing != 0) missing_[worker][sequence & mask_] = missing;
}

Sequence Assembler::passed_by_all() const {
  Sequence least = passed_[0].sequence.load();
  for (std::uint32_t worker = 1; worker < settings_.workers; ++worker)
    least = std::min(least, passed_[worker].sequence.load());
  return least;
}

// Parts and slices were last written by the peers: they are asked for before their turn comes.
inline void Assembler::ask_ahead(Sequence sequence, Sequence end) const {
  for (std::uint32_t i = 0; i < settings_.workers; ++i) {
    __builtin_prefetch(&parts_[i][(sequence + kPartsAhead) & mask_]);
    if (sequence + kSlicesAhead <= end) __builtin_prefetch(parts_[i][(sequence + kSlicesAhead) & mask_].slice);
  }
}

// One worker assembles at a time, as many events as all have passed. Who finds the lock taken goes on: whoever has it looks
// again after letting go (sequentially consistent order: either that look sees what was passed, or the lock is free for the
// one who passed it).
void Assembler::publish(std::uint32_t worker, Sequence passed, std::atomic<bool>& held) {
  if (settings_.workers == 1) return;
  passed_[worker].sequence.store(passed);
  while (passed_by_all() > assembled_.load(std::memory_order_relaxed) && !assembling_.exchange(true)) {
    const Sequence end = passed_by_all();
    for (Sequence sequence = assembled_.load(std::memory_order_relaxed) + 1; sequence <= end; ++sequence) {
      ask_ahead(sequence, end);
      bool real = false;
      for (std::uint32_t i = 0; i < settings_.workers; ++i) {
        gathered_[i] = &parts_[i][sequence & mask_];
        gathered_missing_[i] = &missing_[i][sequence & mask_];
        real = real || gathered_[i]->slice != nullptr || (gathered_[i]->flags & slot_flag::kTriggered) != 0;
      }
      if (real) build(worker, sequence, gathered_, gathered_missing_, held);
      // Not with each one: the peers read it, and each time it changes it must travel to them.
      if (sequence % kToldEvery == 0 || sequence == end) assembled_.store(sequence, std::memory_order_release);
    }
    assembling_.store(false);
  }
}

void Assembler::build(std::uint32_t worker, Sequence sequence, std::span<const WorkerPart* const> parts,
                      std::span<const MissingList* const> missing, std::atomic<bool>& held) {
  BuiltFragment* fragment = pools_[worker]->take();
  if (fragment == nullptr) {
    // Every fragment is with the consumers: wait for one, which is back-pressure.
    held.store(true, std::memory_order_relaxed);
    base::Backoff backoff;
    while ((fragment = pools_[worker]->take()) == nullptr) backoff.idle();
    held.store(false, std::memory_order_relaxed);
  }

  fragment->sequence = sequence;
  fragment->writable = true;
  fragment->chunks = 0;
  fragment->missing = 0;
  fragment->missing_listed = 0;
  fragment->handed_over_ns = 0;
  fragment->slice_count = 0;
  fragment->part_count = 0;
  fragment->parts = fragment->storage.data();
  std::uint32_t flags = 0;
  std::uint32_t difference = 0;
  std::size_t bytes = 0;
  const WorkerPart* named = nullptr;  // the part that names the event: the first with data, or with the trigger's word
  bool triggered = true;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const WorkerPart& part = *parts[i];
    if ((part.slice != nullptr || (part.flags & slot_flag::kTriggered) != 0) && named == nullptr) named = &part;
    if ((part.flags & slot_flag::kBcidKnown) != 0 && named != nullptr && (named->flags & slot_flag::kBcidKnown) != 0) {
      difference |= part.bcid ^ named->bcid;
    }
    triggered = triggered && (part.flags & slot_flag::kTriggered) != 0;
    flags |= part.flags;
    difference |= part.bcid_difference;
    fragment->chunks += part.chunks;
    fragment->missing += part.missing;
    for (std::uint32_t k = 0;
         part.missing != 0 && k < missing[i]->listed && fragment->missing_listed < Fragment::kMissingListed; ++k) {
      fragment->missing_links[fragment->missing_listed++] = missing[i]->link_ids[k];
    }
    if (part.handed_over_ns > fragment->handed_over_ns) fragment->handed_over_ns = part.handed_over_ns;
    if (part.slice == nullptr) {
      events_without_[i].fetch_add(1, std::memory_order_relaxed);
      continue;
    }
    fragment->slices[fragment->slice_count++] = part.slice;
    for (Slice* slice = part.slice; slice != nullptr; slice = slice->extension) {
      fragment->parts[fragment->part_count++] = {slice->data, slice->used};
      bytes += slice->used;
    }
  }
  if (settings_.sort_links) sort_by_link(*fragment);
  // NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): what nobody names is not assembled
  fragment->l1id = named->l1id;
  fragment->bcid = named->bcid;
  fragment->trigger_type = named->trigger_type;
  const bool not_triggered = settings_.trigger_list && !triggered;
  fragment->status = status_of(flags, fragment->missing, difference != 0, fragment->chunks == 0, not_triggered);
  fragment->references.store(1, std::memory_order_relaxed);

  FragmentCounters& counters = counters_[worker];
  counters.add(FragmentCounter::built);
  counters.add(FragmentCounter::chunks, fragment->chunks);
  counters.add(FragmentCounter::payload_bytes, bytes);
  if (!fragment->complete()) {
    counters.add(FragmentCounter::incomplete);
    if ((flags & slot_flag::kTimedOut) != 0)
      counters.add(FragmentCounter::timeout);
    else if ((flags & slot_flag::kRingFull) != 0)
      counters.add(FragmentCounter::ring_full);
    else if ((flags & slot_flag::kRunEnded) != 0)
      counters.add(FragmentCounter::run_ended);
    else if (fragment->missing != 0)
      counters.add(FragmentCounter::missing);
    if ((flags & (slot_flag::kCorrupt | slot_flag::kWorkFailed)) != 0) counters.add(FragmentCounter::corrupt);
    if ((flags & slot_flag::kTruncated) != 0) counters.add(FragmentCounter::truncated);
    if (difference != 0) counters.add(FragmentCounter::bcid_mismatch);
    if (not_triggered) counters.add(FragmentCounter::not_triggered);
    if ((flags & slot_flag::kDoubtfulId) != 0) counters.add(FragmentCounter::doubtful_id);
    if (fragment->chunks == 0) counters.add(FragmentCounter::empty);
  }
  consumer_.insert(FragmentPtr::adopt(fragment));
}

// Splits the parts into one for each chunk record and puts them in the order of their link ids. Records of one builder's links fit:
// each link is there at most once.
void Assembler::sort_by_link(BuiltFragment& fragment) {
  const auto link_of = [](const FragmentPart& part) {
    ChunkHeader header;
    std::memcpy(&header, part.data, sizeof header);
    return header.link_id;
  };
  std::uint32_t records = 0;
  for (const FragmentPart& part : fragment.all_parts()) {
    for (std::size_t at = 0; at < part.size;) {
      ChunkHeader header;
      std::memcpy(&header, part.data + at, sizeof header);
      std::size_t size = header.size;
      if (header.size == kLongChunk) {
        std::uint32_t true_size = 0;
        std::memcpy(&true_size, part.data + at + sizeof header, sizeof true_size);
        size = sizeof header + sizeof true_size + true_size;
      }
      size = (size + 3) / 4 * 4;
      fragment.sorted[records++] = {part.data + at, size};
      at += size;
    }
  }
  std::sort(fragment.sorted.begin(), fragment.sorted.begin() + records,
            [&](const FragmentPart& a, const FragmentPart& b) { return link_of(a) < link_of(b); });
  fragment.parts = fragment.sorted.data();
  fragment.part_count = records;
}

std::uint32_t Assembler::status_of(std::uint32_t flags, std::uint32_t missing, bool bcid_mismatch, bool empty,
                                   bool not_triggered) {
  std::uint32_t status = 0;
  if (bcid_mismatch) status |= fragment_status::kBcidMismatch;
  if (not_triggered || (flags & slot_flag::kDoubtfulId) != 0) status |= fragment_status::kL1IdMismatch;
  if (missing != 0) status |= fragment_status::kTimeout;
  if ((flags & (slot_flag::kCorrupt | slot_flag::kWorkFailed)) != 0) status |= fragment_status::kDataCorruption;
  if ((flags & slot_flag::kTruncated) != 0) status |= fragment_status::kOverflow;
  if (empty) status |= fragment_status::kDummy;
  return status;
}

void Assembler::reclaim(Fragment& fragment) noexcept {
  auto& built = static_cast<BuiltFragment&>(fragment);
  for (std::uint32_t i = 0; i < built.slice_count; ++i) give_back(built.slices[i]);
  built.slice_count = 0;
  built.pool->give(&built);
}

}  // namespace rodeo::readout
