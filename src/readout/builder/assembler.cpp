#include "readout/builder/assembler.h"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "base/thread.h"

namespace rodeo::readout {
namespace {

constexpr Sequence kPartsAhead = 16;    // number of events
constexpr Sequence kSlicesAhead = 6;    // number of events
constexpr Sequence kPublishEvery = 32;  // number of events

}  // namespace

Assembler::Assembler(Settings settings, RobSequence& rob, std::unique_ptr<TriggerExtractor> extractor,
                     FragmentConsumer& consumer)
    : settings_(std::move(settings)),
      mask_(settings_.window - 1),
      rob_(rob),
      consumer_(consumer),
      extractor_(std::move(extractor)),
      has_bcid_(extractor_->fields().has_bcid),
      absences_(std::make_unique<Absences[]>(settings_.link_ids.size())),
      global_ids_(formats::IdLayout::of(extractor_->fields())),
      counters_(std::make_unique<FragmentCounters[]>(settings_.workers)) {
  const std::size_t links = settings_.link_ids.size();
  const std::size_t bitmap_words = (links + 31) / 32;
  for (std::size_t link = 0; link < links; ++link) link_of_id_.emplace(settings_.link_ids[link], link);
  misfits_.resize(links);
  bcids_.reserve(links);
  sorted_bcids_.reserve(links);
  passed_ = std::make_unique<Passed[]>(settings_.workers);
  gathered_.resize(settings_.workers);
  skipped_parts_.resize(settings_.workers, WorkerPart{.l1id = {}, .flags = slot_flag::kLinksAbsent});
  gathered_absent_.resize(settings_.workers);
  for (std::uint32_t worker = 0; worker < settings_.workers; ++worker) {
    const std::size_t window = settings_.workers > 1 ? settings_.window : 0;
    parts_.emplace_back(window);
    absent_.emplace_back(window * 2 * absent_words(worker));
    skipped_.push_back(&skipped_parts_[worker]);
    skipped_bitmaps_.push_back(skipped_absent_.emplace_back(2 * absent_words(worker)).data());
    pools_.push_back(std::make_unique<RecyclePool<BuiltFragment>>());
    for (std::size_t i = 0; i < settings_.fragments_per_worker; ++i) {
      auto fragment = std::make_unique<BuiltFragment>();
      fragment->pool = pools_.back().get();
      fragment->slices.resize(settings_.workers);
      fragment->storage.resize(std::size_t{settings_.workers} * settings_.parts_per_slice);
      if (settings_.sort_links) fragment->sorted.resize(links);
      fragment->absent.resize(2 * bitmap_words);
      fragment->link_ids = settings_.link_ids;
      fragment->missing_links = std::span(fragment->absent).first(bitmap_words);
      fragment->removed_links = std::span(fragment->absent).last(bitmap_words);
      fragment->owner = this;
      fragment->source_id = settings_.source_id;
      pools_.back()->add(fragment.get());
      fragments_.push_back(std::move(fragment));
    }
  }
}

void Assembler::start(Sequence first) {
  for (std::uint32_t worker = 0; worker < settings_.workers; ++worker) passed_[worker].sequence.store(first - 1);
  assembled_.store(first - 1);
}

void Assembler::pass(std::uint32_t worker, Sequence sequence, const WorkerPart& part, std::span<const std::uint32_t> absent,
                     std::atomic<bool>& held) {
  if (settings_.workers == 1) {
    const WorkerPart* const only = &part;
    const std::uint32_t* const only_absent = absent.data();
    assemble(worker, sequence, {&only, 1}, {&only_absent, 1}, held);
    return;
  }
  __builtin_prefetch(&parts_[worker][(sequence + kPartsAhead) & mask_], 1);  // a peer read it last
  parts_[worker][sequence & mask_] = part;
  if ((part.flags & slot_flag::kLinksAbsent) != 0)
    std::ranges::copy(absent, absent_[worker].data() + (sequence & mask_) * absent.size());
}

Sequence Assembler::passed_by_all() const {
  Sequence least = passed_[0].sequence.load();
  for (std::uint32_t worker = 1; worker < settings_.workers; ++worker)
    least = std::min(least, passed_[worker].sequence.load());
  return least;
}

// Peers wrote these parts and slices last, so they are prefetched before their turn.
inline void Assembler::prefetch(Sequence sequence, Sequence end) const {
  for (std::uint32_t i = 0; i < settings_.workers; ++i) {
    __builtin_prefetch(&parts_[i][(sequence + kPartsAhead) & mask_]);
    if (sequence + kSlicesAhead <= end) __builtin_prefetch(parts_[i][(sequence + kSlicesAhead) & mask_].slice);
  }
}

// One worker assembles at a time: all events that every worker has passed. A worker that finds the lock taken continues,
// because the owner of the lock checks again after releasing it. By sequentially consistent order, either the owner then
// sees the newly passed events, or the worker finds the lock free.
void Assembler::publish(std::uint32_t worker, Sequence passed, std::atomic<bool>& held) {
  if (settings_.workers == 1) return;
  passed_[worker].sequence.store(passed);
  while (passed_by_all() > assembled_.load(std::memory_order_relaxed) && !assembling_.exchange(true)) {
    const Sequence end = passed_by_all();
    for (Sequence sequence = assembled_.load(std::memory_order_relaxed) + 1; sequence <= end; ++sequence) {
      prefetch(sequence, end);
      for (std::uint32_t i = 0; i < settings_.workers; ++i) {
        gathered_[i] = &parts_[i][sequence & mask_];
        gathered_absent_[i] = absent_[i].data() + (sequence & mask_) * 2 * absent_words(i);
      }
      assemble(worker, sequence, gathered_, gathered_absent_, held);
      // This is not done for each event: every store moves this cache line to the peers, which read it.
      if (sequence % kPublishEvery == 0 || sequence == end) assembled_.store(sequence, std::memory_order_release);
    }
    assembling_.store(false);
  }
}

// Builds the event if the number is an event, and before it the skipped events that it proves.
inline void Assembler::assemble(std::uint32_t worker, Sequence sequence, std::span<const WorkerPart* const> parts,
                                std::span<const std::uint32_t* const> absent, std::atomic<bool>& held) {
  const bool real = std::any_of(parts.begin(), parts.end(), [](const WorkerPart* part) {
    return part->slice != nullptr || (part->flags & (slot_flag::kTriggered | slot_flag::kSkipped)) != 0;
  });
  if (!real) return;
  if (sequence != last_built_ + 1 && last_built_ != 0 && !settings_.trigger_list)
    build_skipped(worker, sequence, parts, absent, held);
  build(worker, sequence, parts, absent, held);
  last_built_ = sequence;
}

// Builds the events of the segment that all links skipped: the removed links of this event count as removed in them, all
// other links as missing.
void Assembler::build_skipped(std::uint32_t worker, Sequence before, std::span<const WorkerPart* const> parts,
                              std::span<const std::uint32_t* const> absent, std::atomic<bool>& held) {
  Segment segment;
  {
    const std::lock_guard lock(rob_.mutex);
    segment = rob_.sequencer.segment_of(before);
  }
  for (std::uint32_t of = 0; of < settings_.workers; ++of) {
    std::vector<std::uint32_t>& bitmaps = skipped_absent_[of];
    std::ranges::fill(bitmaps, 0U);
    const std::size_t words = bitmaps.size() / 2;
    if ((parts[of]->flags & slot_flag::kLinksAbsent) != 0)
      std::copy_n(absent[of] + words, words, bitmaps.begin() + static_cast<std::ptrdiff_t>(words));
    for (std::size_t link = first_link(of); link < first_link(of + 1); ++link)
      bitmaps[link / 32 - first_link(of) / 32] |= 1U << (link % 32);
    for (std::size_t word = 0; word < words; ++word) bitmaps[word] &= ~bitmaps[words + word];
  }
  for (Sequence sequence = std::max(last_built_ + 1, segment.first); sequence < before; ++sequence) {
    for (WorkerPart& part : skipped_parts_) {
      part.l1id = segment.l1id(sequence);
      part.rounds = segment.rounds_at(sequence) & GlobalIds::kRoundMask;
    }
    build(worker, sequence, skipped_, skipped_bitmaps_, held);
  }
}

struct Assembler::Gathered {
  // Part that names the event: the first one with data, or with a flag of the trigger's list.
  const WorkerPart* named = nullptr;
  std::uint32_t flags = 0;
  std::uint32_t difference = 0;  // bits in which BCIDs differ
  std::size_t bytes = 0;
  bool triggered = true;
};

inline Assembler::Gathered Assembler::gather(BuiltFragment& fragment, std::span<const WorkerPart* const> parts,
                                             std::span<const std::uint32_t* const> absent) {
  Gathered all;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const WorkerPart& part = *parts[i];
    if (all.named == nullptr && (part.slice != nullptr || (part.flags & slot_flag::kTriggered) != 0)) all.named = &part;
    if (all.named != nullptr && (part.flags & all.named->flags & slot_flag::kBcidKnown) != 0)
      all.difference |= part.bcid ^ all.named->bcid;
    all.triggered = all.triggered && (part.flags & slot_flag::kTriggered) != 0;
    all.flags |= part.flags;
    all.difference |= part.bcid_difference;
    fragment.chunks += part.chunks;
    if ((part.flags & slot_flag::kLinksAbsent) != 0) add_absent(fragment, static_cast<std::uint32_t>(i), absent[i]);
    fragment.handed_over_ns = std::max(fragment.handed_over_ns, part.handed_over_ns);
    if (part.slice == nullptr) continue;
    fragment.slices[fragment.slice_count++] = part.slice;
    for (Slice* slice = part.slice; slice != nullptr; slice = slice->extension) {
      fragment.parts[fragment.part_count++] = {slice->data, slice->used};
      all.bytes += slice->used;
    }
  }
  return all;
}

void Assembler::build(std::uint32_t worker, Sequence sequence, std::span<const WorkerPart* const> parts,
                      std::span<const std::uint32_t* const> absent, std::atomic<bool>& held) {
  BuiltFragment& fragment = *acquire_or_wait(*pools_[worker], held);
  fragment.sequence = sequence;
  fragment.writable = true;
  fragment.chunks = 0;
  fragment.missing = 0;
  fragment.removed = 0;
  fragment.handed_over_ns = 0;
  fragment.slice_count = 0;
  fragment.part_count = 0;
  fragment.parts = fragment.storage.data();
  const Gathered all = gather(fragment, parts, absent);
  if (settings_.sort_links) sort_by_link(fragment);
  // The first part if all workers have skipped the event.
  const WorkerPart& named = all.named == nullptr ? *parts.front() : *all.named;
  fragment.l1id = named.l1id;
  fragment.global_id = global_ids_.of(named.l1id, named.rounds);
  if (last_built_ == 0) first_event_.store(fragment.global_id, std::memory_order_relaxed);
  fragment.bcid = named.bcid;
  fragment.trigger_type = named.trigger_type;
  std::uint32_t flags = all.flags;
  if (settings_.trigger_list && !all.triggered) flags |= event_flag::kNotListed;
  if (has_bcid_ && all.difference != 0) {
    flags |= event_flag::kBcidDiffers;
    mark_bcids(fragment, (named.flags & slot_flag::kTriggered) != 0);
  }
  finish_fragment(fragment, flags, all.bytes, counters_[worker]);
  consumer_.insert(FragmentPtr::adopt(&fragment));
}

// Only the assembling worker writes here; there is one such worker at a time.
void Assembler::add_absent(BuiltFragment& fragment, std::uint32_t worker, const std::uint32_t* absent) {
  if (fragment.missing == 0 && fragment.removed == 0) std::ranges::fill(fragment.absent, 0U);
  const std::size_t first = first_link(worker) / 32;
  const std::size_t words = absent_words(worker);
  for (std::size_t i = 0; i < 2 * words; ++i) {
    const bool is_missing = i < words;
    const std::size_t word = first + (is_missing ? i : i - words);
    (is_missing ? fragment.missing_links : fragment.removed_links)[word] |= absent[i];
    (is_missing ? fragment.missing : fragment.removed) += static_cast<std::uint32_t>(std::popcount(absent[i]));
    for (std::uint32_t bits = absent[i]; bits != 0; bits &= bits - 1) {
      Absences& link = absences_[word * 32 + static_cast<std::size_t>(std::countr_zero(bits))];
      (is_missing ? link.missing : link.left_out).add(1);
    }
  }
}

void Assembler::read_bcids(const BuiltFragment& fragment) {
  bcids_.clear();
  for (const FragmentPart& part : fragment.all_parts()) {
    for_each_whole_chunk(std::span(part.data, part.size), [&](auto&, auto record, auto chunk) {
      const auto size = static_cast<std::uint32_t>(chunk.size());
      std::uint32_t id = 0;
      std::uint16_t bcid = 0;
      try {
        if (extractor_->extract({.data = chunk.data(), .size = size, .stride = size, .count = 1}, 0, 1, &id, &bcid) == 1)
          bcids_.emplace_back(record.data(), bcid);
      } catch (...) {
        return;  // the extractor has also thrown in a worker, which counted and logged it
      }
    });
  }
}

// Finds the most frequent BCID; if several are equally frequent, the lowest. True if more than half of the chunks have it.
bool Assembler::most_frequent_bcid(BuiltFragment& fragment) {
  sorted_bcids_.clear();
  for (const auto& [record, bcid] : bcids_) sorted_bcids_.push_back(bcid);
  std::ranges::sort(sorted_bcids_);
  std::size_t most = 0;
  for (auto at = sorted_bcids_.begin(); at != sorted_bcids_.end();) {
    const auto same = std::ranges::equal_range(at, sorted_bcids_.end(), *at);
    if (same.size() > most) {
      most = same.size();
      fragment.bcid = *at;
    }
    at = same.end();
  }
  return 2 * most > bcids_.size();
}

// The chunks do not agree on the BCID. The event's BCID is that of the trigger's list (`listed`), else that of more than
// half of the chunks. If there is neither, the BCID is unknown and all chunks are marked.
void Assembler::mark_bcids(BuiltFragment& fragment, bool listed) {
  read_bcids(fragment);
  const bool known = listed || most_frequent_bcid(fragment);
  for (const auto& [record, bcid] : bcids_) {
    if (known && bcid == fragment.bcid) continue;
    record[offsetof(ChunkHeader, rodeo_status)] |= std::byte{chunk_flag::kBcidMismatch};
    if (known) note_misfit(load_chunk_header({record, sizeof(ChunkHeader)}).header.link_id, fragment.sequence);
  }
}

// A link with wrong BCIDs in several events may be in a wrong place, so the sequencer examines it.
void Assembler::note_misfit(std::uint32_t link_id, Sequence sequence) {
  constexpr Sequence kSoon = 64;  // a link may be absent from some events in between
  const auto link = link_of_id_.find(link_id);
  if (link == link_of_id_.end()) return;
  Misfits& misfits = misfits_[link->second];
  misfits.row = sequence <= misfits.last + kSoon ? misfits.row + 1 : 1;
  misfits.last = sequence;
  if (misfits.row < PlaceEvidence::kRow) return;
  misfits.row = 0;
  const std::lock_guard lock(rob_.mutex);
  rob_.sequencer.suspect(link->second);
}

std::optional<std::uint16_t> Assembler::bcid_of_peers(std::uint32_t worker, Sequence sequence) const {
  for (std::uint32_t peer = 0; peer < settings_.workers; ++peer) {
    if (peer == worker || passed_[peer].sequence.load() < sequence) continue;
    const WorkerPart& part = parts_[peer][sequence & mask_];
    if ((part.flags & slot_flag::kBcidKnown) != 0) return part.bcid;
  }
  return std::nullopt;
}

// Makes one part of each chunk record and sorts the parts by link id. The records of one builder's links fit, because each
// link occurs at most once.
void Assembler::sort_by_link(BuiltFragment& fragment) {
  const auto link_of = [](const FragmentPart& part) { return load_chunk_header({part.data, part.size}).header.link_id; };
  std::uint32_t records = 0;
  for (const FragmentPart& part : fragment.all_parts()) {
    for_each_whole_chunk(std::span(part.data, part.size), [&](auto&, std::span<std::byte> record, auto) {
      fragment.sorted[records++] = {record.data(), record.size()};
    });
  }
  std::sort(fragment.sorted.begin(), fragment.sorted.begin() + records,
            [&](const FragmentPart& a, const FragmentPart& b) { return link_of(a) < link_of(b); });
  fragment.parts = fragment.sorted.data();
  fragment.part_count = records;
}

void Assembler::reclaim(Fragment& fragment) noexcept {
  auto& built = static_cast<BuiltFragment&>(fragment);
  for (std::uint32_t i = 0; i < built.slice_count; ++i) give_back(built.slices[i]);
  built.slice_count = 0;
  built.pool->give_back(&built);
}

}  // namespace rodeo::readout
