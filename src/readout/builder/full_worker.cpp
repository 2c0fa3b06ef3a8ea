#include "readout/builder/full_worker.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/clock.h"
#include "readout/builder/builder_common.h"

namespace rodeo::readout {
namespace {

constexpr std::size_t kPrefetchBytes = 256;
// When pages run out, chunks wait until the list has not moved for this many time-outs. The events of a silent group are
// opened after one time-out, and closed after two.
constexpr std::uint64_t kListPatience = 8;

}  // namespace

FullWorker::FullWorker(const Settings& settings, const FullSettings& full, const Sequencer::Settings& sequencing,
                       std::span<const BuilderLink> links, WorkerEquipment equipment, TriggerList* list,
                       FragmentConsumer& consumer)
    : BuilderWorker(settings, links, std::move(equipment)),
      full_(full),
      list_(list),
      consumer_(consumer),
      has_bcid_(equipment_.extractor->fields().has_bcid),
      places_(links.size()),
      fragments_(std::make_unique<FullFragment[]>(full.fragments)) {
  std::map<std::uint32_t, std::vector<std::size_t>> members;
  for (std::size_t i = 0; i < links.size(); ++i) members[links[i].group].push_back(i);
  std::size_t bitmap_words = 0;
  for (const auto& [number, positions] : members) {
    groups_.push_back(std::make_unique<Group>(number, positions, sequencing));
    for (std::size_t place = 0; place < positions.size(); ++place) {
      places_[positions[place]] = {.group = groups_.back().get(), .place = place};
      groups_.back()->link_ids.push_back(links[positions[place]].link_id);
    }
    bitmap_words = std::max(bitmap_words, (positions.size() + 31) / 32);
  }
  auto arena = base::Arena::create(full.copies * full.copy_bytes);
  if (!arena) {
    throw SetupError(
        without_memory(arena.error().within("memory for copies of a FULL-mode worker"),
                       "make readout.builder.copies or readout.builder.copy_size smaller, or end other programs"));
  }
  copy_memory_ = std::move(*arena);
  for (std::size_t i = full.fragments; i-- > 0;) {
    FullFragment& fragment = fragments_[i];
    fragment.pool = &pool_;
    fragment.owner = this;
    fragment.parts = fragment.storage;
    fragment.absent.resize(2 * bitmap_words);
    if (i < full.copies) fragment.copy = copy_memory_.data() + i * full.copy_bytes;
    pool_.add(&fragment);
  }
}

void FullWorker::share(ReaderTracks& tracks) {
  for (const auto& group : groups_) group->sequencer.share(0, tracks, add_track(tracks, group->sequencer.spacing()));
}

// ---- chunks

void FullWorker::process_page(Page& page) {
  copying_ = full_.copies != 0 && equipment_.stream->memory_fill() > full_.copy_above;
  last_page_at_ = event_clock_;
  const std::uint64_t clock = equipment_.stream->clock_ns();
  bool after_silence = false;
  for (const auto& group : groups_) after_silence |= group->sequencer.begin_page(0, clock, quiet_until());
  if (after_silence) wait_for_others();
  for (const ChunkRun& run : page.runs) {
    // The hardware prefetches within a chunk; this prefetches the first lines of the next chunk.
    const std::byte* const next = run.data + std::size_t{run.count} * run.stride;
    for (std::size_t at = 0; at < kPrefetchBytes; at += base::kCacheLine) __builtin_prefetch(next + at);
    process_run(page, run);
  }
  page.drop();
}

void FullWorker::process_run(Page& page, const ChunkRun& run) {
  const std::uint64_t bytes = count_received(run);
  if (link_counters_[run.link].removed.get()) {
    count_lost(run.link, LostCounter::link_removed, run.count, bytes);
    return;
  }
  if (given_up_) [[unlikely]]
    return count_lost(run.link, LostCounter::given_up, run.count, bytes);
  const LinkPlace& place = places_[run.link];
  LinkSequence& link = place.group->links[place.place];
  const Sequence before = link.position();
  link.begin_block(std::uint64_t{run.count} * link.stride);
  for (std::uint32_t at = 0; at < run.count;) {
    const std::uint32_t n = std::min(kBatch, run.count - at);
    const auto [asked, got, good, lost] =
        extract_and_check(equipment_, run, at, n, ids_.data(), bcids_.data(), plugin_errors_);
    // The good chunks and, if there is one, the corrupt chunk after them.
    const std::uint32_t usable = std::min(got, good + 1);
    for (std::uint32_t i = 0; i < usable; ++i) {
      const std::uint8_t rodeo_status = i == good ? chunk_flag::kCorrupt : 0;
      handle_chunk(view_of(run, at + i, ids_[i], bcids_[i], rodeo_status, &page));
    }
    at += usable;
    if (got < asked && usable == got) {
      count_lost(run.link, lost, 1, run.chunk(at).size());
      ++at;
    }
  }
  link.end_block(before);
}

void FullWorker::handle_chunk(const ChunkView& chunk) {
  const LinkPlace& place = places_[chunk.link];
  Group& group = *place.group;
  LinkSequence& link = group.links[place.place];
  link.seen.store(event_clock_, std::memory_order_relaxed);
  const Sequence next = link.position();
  if (chunk.id == link.expected && next < link.end && !group.events.is_beyond(next) &&
      !link.has_lapsed(group.events.oldest(), format_)) {
    link.next.store(next + link.stride, std::memory_order_relaxed);
    link.expected = format_.advance(link.expected, link.stride);
    deliver(group, next, chunk, 0);
    return;
  }
  add_waiting(chunk);
  group.sequencer.offer(place.place, chunk.id, chunk.bcid, event_clock_, group.events.oldest(), decisions_);
  apply_decisions(chunk.link);
  if (group.sequencer.version() != group.version) rejudge(group);
}

// Carries out the decisions on a link's waiting chunks.
void FullWorker::apply_decisions(std::size_t position) {
  Group& group = *places_[position].group;
  if (!group.begun && group.sequencer.begun()) {
    group.begun = true;
    group.events.begin(group.sequencer.run_first());
  }
  for (const Decision& decision : decisions_) {
    const ChunkView chunk = waiting_.pop(static_cast<LinkIndex>(position));
    if (decision.verdict != Verdict::accept) {
      count_lost(chunk, decision.verdict);
    } else {
      if (decision.from != decision.sequence && decision.from != group.sequencer.run_first())
        counters_.add(WorkerCounter::resynchronised);
      if (decision.unproven) link_counters_[position].doubtful.add(1);
      deliver(group, decision.sequence, chunk, decision.doubtful || decision.unproven ? slot_flag::kDoubtfulId : 0);
    }
    chunk.page->drop();
  }
  decisions_.clear();
  on_place_change(position, group.sequencer.take_place_change(places_[position].place));
}

void FullWorker::rejudge(Group& group) {
  group.version = group.sequencer.version();
  group.rejudged_at = event_clock_;
  for (std::size_t place = 0; place < group.members.size(); ++place) {
    group.sequencer.rejudge(place, event_clock_, group.events.oldest(), decisions_);
    apply_decisions(group.members[place]);
  }
}

// Builds a chunk whose event is known, unless the event already has a chunk or belongs to another link's turn.
void FullWorker::deliver(Group& group, Sequence sequence, const ChunkView& chunk, std::uint32_t flags) {
  const std::size_t place = places_[chunk.link].place;
  if (sequence < group.events.oldest())
    return count_lost(chunk, group.events.has_arrived(sequence) ? LostCounter::duplicate : LostCounter::late);
  if (group.events.has_arrived(sequence)) return count_lost(chunk, LostCounter::duplicate);
  while (group.events.is_beyond(sequence)) close_gaps(group, group.events.oldest() + 1, slot_flag::kRingFull);
  group.add_event(sequence);
  const bool strays = group.turns.is_stray(place, sequence);
  if (strays && group.keep_stray(sequence, chunk)) return;
  if (strays) return count_lost(chunk, LostCounter::out_of_sequence);
  if (const auto stray = group.take_stray(sequence)) {
    count_lost(*stray, LostCounter::out_of_sequence);
    stray->page->drop();
  }
  group.events.add(sequence);
  build(group, sequence, chunk, flags);
}

// Gives up the gaps below `bound`: a chunk that strayed into a gap is built and flagged; an event without a chunk is built
// empty.
void FullWorker::close_gaps(Group& group, Sequence bound, std::uint32_t reason) {
  if (bound > group.events.head()) group.events.raise(bound);
  while (group.events.has_gap() && group.events.oldest() < bound) {
    const Sequence sequence = group.events.oldest();
    if (const auto stray = group.take_stray(sequence)) {
      group.events.add(sequence);
      build(group, sequence, *stray, group.turns.is_redealt(sequence) ? 0 : slot_flag::kDoubtfulId);
      stray->page->drop();
      continue;
    }
    if (group.is_event(sequence)) build_empty(group, sequence, reason);
    group.events.skip_oldest();
  }
}

// ---- fragments

FullFragment& FullWorker::make_fragment(Group& group, Sequence sequence) {
  FullFragment& fragment = *acquire_or_wait(pool_, held_);
  fragment.sequence = sequence;
  const Segment& segment = group.segment_of(sequence);
  fragment.l1id = segment.l1id(sequence);
  fragment.global_id = segment.global_id(sequence);
  fragment.source_id = SourceId{full_.source_id.value + group.number};
  fragment.bcid = 0;
  fragment.trigger_type = 0;
  fragment.missing = fragment.removed = 0;
  fragment.handed_over_ns = page_time_ns_;
  fragment.page = nullptr;
  return fragment;
}

void FullWorker::build(Group& group, Sequence sequence, const ChunkView& chunk, std::uint32_t flags) {
  FullFragment& fragment = make_fragment(group, sequence);
  counters_.add(WorkerCounter::taken_bytes, chunk.size);
  fragment.chunks = 1;
  fragment.bcid = chunk.bcid;
  if (group.listed()) {
    const TriggerEntries::Entry listed = group.entry_of(sequence);
    if (listed.state == TriggerEntries::kNoEvent) flags |= event_flag::kNotListed;
    if (has_bcid_ && listed.state == TriggerEntries::kListed) fragment.bcid = listed.bcid;
  }
  std::uint8_t rodeo_status = chunk.rodeo_status;
  if (fragment.bcid != chunk.bcid) {
    rodeo_status |= chunk_flag::kBcidMismatch;
    flags |= event_flag::kBcidDiffers;
  }
  if (has_trigger_type_ && !trigger_type(chunk.link, chunk.bytes(), fragment.trigger_type)) flags |= slot_flag::kWorkFailed;
  if ((chunk.rodeo_status & chunk_flag::kCorrupt) != 0 || (chunk.felix_status & ~chunk_status::kBusy) != 0) {
    flags |= slot_flag::kCorrupt;
    counters_.add(WorkerCounter::corrupt);
  }
  refer_to(fragment, chunk, rodeo_status);
  push(group, fragment, flags);
}

// Makes the fragment refer to the chunk in the input's memory, or to a copy.
void FullWorker::refer_to(FullFragment& fragment, const ChunkView& chunk, std::uint8_t rodeo_status) {
  store_chunk_header(
      fragment.header,
      {.felix_status = chunk.felix_status, .rodeo_status = rodeo_status, .link_id = builder_links_[chunk.link].link_id},
      chunk.size);
  std::byte* bytes = const_cast<std::byte*>(chunk.data);  // passed on as memory that must not be written
  fragment.writable = copying_ && fragment.copy != nullptr && chunk.size <= full_.copy_bytes;
  if (fragment.writable) {
    std::memcpy(fragment.copy, chunk.data, chunk.size);
    bytes = fragment.copy;
  } else {
    chunk.page->references.fetch_add(1, std::memory_order_relaxed);
    fragment.page = chunk.page;
  }
  fragment.storage[0] = {fragment.header, chunk_header_bytes(chunk.size)};
  fragment.storage[1] = {bytes, chunk.size};
  fragment.storage[2] = {fragment.padding, chunk_padding_bytes(chunk.size)};
  fragment.part_count = fragment.storage[2].size == 0 ? 2 : 3;
}

void FullWorker::build_empty(Group& group, Sequence sequence, std::uint32_t flags) {
  FullFragment& fragment = make_fragment(group, sequence);
  fragment.chunks = 0;
  fragment.part_count = 0;
  fragment.writable = true;
  const std::size_t place = group.turns.likely_link(sequence);
  LinkCounters& counters = link_counters_[group.members[place]];
  const bool removed = counters.removed.get();
  (removed ? fragment.removed : fragment.missing) = 1;
  const std::size_t words = (group.link_ids.size() + 31) / 32;
  std::ranges::fill(fragment.absent, 0U);
  fragment.link_ids = group.link_ids;
  fragment.missing_links = std::span(fragment.absent).first(words);
  fragment.removed_links = std::span(fragment.absent).subspan(words, words);
  fragment.absent[place / 32 + (removed ? words : 0)] |= 1U << (place % 32);
  (removed ? counters.left_out : counters.missing).add(1);
  const TriggerEntries::Entry listed = group.entry_of(sequence);
  fragment.bcid = listed.bcid;
  fragment.trigger_type = listed.type;
  push(group, fragment, flags);
}

void FullWorker::push(Group& group, FullFragment& fragment, std::uint32_t flags) {
  group.built.add(1);
  if (fragment.global_id < group.first_event.load(std::memory_order_relaxed))
    group.first_event.store(fragment.global_id, std::memory_order_relaxed);
  const std::size_t bytes = fragment.chunks == 0 ? 0 : chunk_record_bytes(fragment.storage[1].size);
  finish_fragment(fragment, flags, bytes, fragment_counters_);
  consumer_.insert(FragmentPtr::adopt(&fragment));
}

void FullWorker::reclaim(Fragment& fragment) noexcept {
  auto& full = static_cast<FullFragment&>(fragment);
  if (full.page != nullptr) full.page->drop();
  full.pool->give_back(&full);
}

// ---- the trigger's list, the clock and the end

void FullWorker::poll_list() {
  if (list_ == nullptr) return;
  set_waits_for(WaitsFor::trigger_list);
  const auto room = [](const auto& group) { return group->sequencer.has_room(group->oldest()); };
  bool any = false;
  for (bool more = true; more;) {
    const std::span<const ListedTrigger> unread = list_->unread(settings_.index);
    std::size_t read = 0;
    for (; read < unread.size() && std::all_of(groups_.begin(), groups_.end(), room); ++read) {
      for (const auto& group : groups_) group->sequencer.announce(unread[read], event_clock_, group->oldest());
    }
    list_->consume(settings_.index, read);
    any = any || read != 0;
    more = read != 0 && read == unread.size();
  }
  set_waits_for(WaitsFor::nothing);
  if (any) list_progress_at_ = event_clock_;
  page_time_ns_ = base::steady_now_ns();
  const bool held = !list_->unread(settings_.index).empty();
  for (const auto& group : groups_) {
    group->sequencer.set_list_held(held);
    if (any)
      rejudge(*group);
    else
      group->sequencer.judge_overdue_entry(event_clock_);
  }
}

// The number of chunks whose event is not known yet. Each of them keeps a page of the input.
std::size_t FullWorker::kept_pages() const {
  std::size_t kept_pages = waiting_.total();
  for (const auto& group : groups_) kept_pages += group->strays();
  return kept_pages;
}

bool FullWorker::keeps_input() const { return kept_pages() > pool_.in_use(); }

// If waiting chunks keep more of the input's memory than fragments do, no data will arrive that decide on them. Then the
// link with most waiting chunks loses its oldest one, unless there are more strays. With the list, a group may wait for
// itself: its chunks keep its oldest event open, so the list cannot advance. Then its oldest chunk is given up. If the list
// waits for another group, or has no more entries, time decides (tick()); after many time-outs a chunk is given up, too.
bool FullWorker::release_pages() {
  if (!keeps_input()) return false;
  const auto waits_for_itself = [&](const Group& group) { return !group.sequencer.has_room(group.oldest()); };
  std::optional<LinkIndex> most;
  std::optional<LinkIndex> most_of_itself;
  const auto more = [&](std::optional<LinkIndex>& of, LinkIndex link) {
    if (waiting_.size(link) > (of ? waiting_.size(*of) : 0)) of = link;
  };
  for (std::size_t link = 0; link < places_.size(); ++link) {
    more(most, static_cast<LinkIndex>(link));
    if (list_ != nullptr && waits_for_itself(*places_[link].group)) more(most_of_itself, static_cast<LinkIndex>(link));
  }
  const bool list_may_decide = event_clock_ < list_progress_at_ + kListPatience * settings_.timeout_ns;
  if (list_ != nullptr && !most_of_itself && list_may_decide) return false;
  Group& strayed_group = **std::ranges::max_element(groups_, {}, [](const auto& group) { return group->strays(); });
  if (!most_of_itself && strayed_group.strays() > (most ? waiting_.size(*most) : 0)) {
    const ChunkView stray = strayed_group.last_stray();
    count_lost(stray, LostCounter::out_of_sequence);
    stray.page->drop();
    return true;
  }
  const LinkIndex ends = most_of_itself ? *most_of_itself : *most;
  Group& group = *places_[ends].group;
  group.sequencer.end_oldest(places_[ends].place, decisions_);
  apply_decisions(ends);
  rejudge(group);  // later chunks may be decidable now
  return true;
}

void FullWorker::release_all_pages() {
  for (const auto& each : groups_) {
    Group& group = *each;
    for (std::size_t place = 0; place < group.members.size(); ++place) {
      group.sequencer.give_up(place, decisions_);
      apply_decisions(group.members[place]);
    }
    while (group.strays() != 0) {
      const ChunkView stray = group.last_stray();
      count_lost(stray, LostCounter::given_up);
      stray.page->drop();
    }
  }
}

// Gaps age on the event clock, as in GBT mode. If the input's memory is used up and no data have arrived for two time-outs,
// time cannot decide on the waiting chunks any more: those that keep the memory are given up.
void FullWorker::check_events(bool drained) {
  if (drained && event_clock_ >= last_page_at_ + 2 * settings_.timeout_ns &&
      equipment_.stream->memory_fill() > full_.copy_above)
    release_pages();
  std::uint64_t open = 0;
  for (const auto& each : groups_) {
    Group& group = *each;
    if (drained) group.sequencer.pace(0).fade_skew();
    group.sequencer.end_page(0, equipment_.stream->clock_ns(), this->drained());
    if (drained &&
        (group.sequencer.version() != group.version || event_clock_ >= group.rejudged_at + settings_.timeout_ns / 8))
      rejudge(group);
    if (!group.begun) continue;
    if (drained && group.listed()) open_listed(group);
    if (!group.events.has_gap()) continue;
    page_time_ns_ = base::steady_now_ns();
    close_gaps(group, group.passed_by_all(), 0);
    if (!group.events.has_gap()) continue;
    if (group.gap_at != group.events.oldest()) {
      group.gap_at = group.events.oldest();
      group.gap_head = group.events.head();
      group.gap_since = event_clock_;
    } else if (event_clock_ - group.gap_since >= settings_.timeout_ns) {
      close_gaps(group, group.gap_head, slot_flag::kTimedOut);
    }
    open += group.events.head() - group.events.oldest();
  }
  open_events_.set(open);
}

// Events of the list that no link has reached, while all links were silent for the time-out, are gaps like others.
void FullWorker::open_listed(Group& group) {
  const Sequence end = group.sequencer.trigger_entries().end();
  if (event_clock_ < group.listed_at + settings_.timeout_ns) return;
  group.sequencer.set_drained(0, event_clock_);
  if (group.list_end > group.events.head() && !group.sequencer.any_live())
    group.events.raise(std::min(group.list_end, group.events.oldest() + group.events.size()));
  group.list_end = end;
  group.listed_at = event_clock_;
}

void FullWorker::finish() {
  bool all_listed = true;
  do {
    poll_list();
    all_listed = list_ == nullptr || list_->unread(settings_.index).empty();
    for (const auto& each : groups_) {
      Group& group = *each;
      if (list_ != nullptr && all_listed) group.sequencer.end_list();
      // Links open segments and gaps for each other, so this is repeated until nothing changes. Chunks beyond the list
      // continue to wait.
      for (std::size_t before = ~std::size_t{0}; before != waiting_.total();) {
        before = waiting_.total();
        for (std::size_t place = 0; place < group.members.size(); ++place) {
          group.sequencer.finish(place, event_clock_, group.events.oldest(), decisions_);
          apply_decisions(group.members[place]);
        }
      }
      for (std::size_t place = 0; all_listed && place < group.members.size(); ++place) {
        group.sequencer.give_up(place, decisions_);
        apply_decisions(group.members[place]);
      }
      const Sequence end = group.listed() && !given_up_ ? group.sequencer.trigger_entries().end() : group.events.head();
      while (group.begun && group.events.oldest() < std::max(end, group.events.head()))
        close_gaps(group, std::min(std::max(end, group.events.head()), group.events.oldest() + group.events.size()),
                   slot_flag::kRunEnded);
    }
  } while (!all_listed);
  if (list_ != nullptr) list_->remove_reader(settings_.index);
}

void FullWorker::set_removed(std::size_t position, bool removed) {
  const LinkPlace& place = places_[position];
  Group& group = *place.group;
  group.turns.set_removed(place.place, removed);
  if (removed) {
    group.sequencer.remove(place.place, decisions_);
    apply_decisions(position);
  } else {
    group.sequencer.restore(place.place, group.events.head());
  }
}

std::vector<FullWorker::GroupEvents> FullWorker::group_events() const {
  std::vector<GroupEvents> events;
  for (const auto& group : groups_) {
    const bool has_links = std::any_of(group->members.begin(), group->members.end(),
                                       [&](std::size_t link) { return !link_counters_[link].removed.get(); });
    const std::uint64_t skipped = group->sequencer.skipped();
    events.push_back(
        {{group->first_event.load(std::memory_order_relaxed), group->built.get() + skipped}, skipped, has_links});
  }
  return events;
}

}  // namespace rodeo::readout
