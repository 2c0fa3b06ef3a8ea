#include "readout/builder/full_worker.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/clock.h"
#include "readout/builder/builder_common.h"

namespace rodeo::readout {
namespace {

constexpr std::size_t kAskedBytes = 256;
constexpr std::size_t kMostStrays = 256;  // of one group
// Beside slot_flag: what the trigger's own list says.
constexpr std::uint32_t kBcidDiffers = 0x10000;
constexpr std::uint32_t kNotListed = 0x20000;

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

FullWorker::Group::Group(std::uint32_t group_number, std::vector<std::size_t> positions, const Sequencer::Settings& settings)
    : number(group_number),
      members(std::move(positions)),
      events(settings.window),
      sequencer(settings),
      turns(members.size()),
      links(std::make_unique<LinkSequence[]>(members.size())) {
  for (std::size_t place = 0; place < members.size(); ++place)
    sequencer.add(links[place], static_cast<std::uint16_t>(members.size()));
  sequencer.set_events(events);
  strays.reserve(kMostStrays);
}

// ---- chunks

void FullWorker::take_page(Page& page) {
  copying_ = full_.copies != 0 && equipment_.stream->memory_fill() > full_.copy_above;
  for (const ChunkRun& run : page.runs) {
    // The hardware follows within a chunk; the first lines of the next one are asked for here.
    const std::byte* const next = run.data + std::size_t{run.count} * run.stride;
    for (std::size_t at = 0; at < kAskedBytes; at += base::kCacheLine) __builtin_prefetch(next + at);
    process_run(page, run);
  }
  page.drop();
}

void FullWorker::process_run(Page& page, const ChunkRun& run) {
  LinkPlace& place = places_[run.link];
  if ((place.continuing || run.more_follows) && continues(place.continuing, run)) return;
  link_counters_[run.link].chunks.add(run.count);
  if (link_counters_[run.link].removed.get()) {
    lose(run.link, LostCounter::link_removed, run.count);
    return;
  }
  for (std::uint32_t at = 0; at < run.count;) {
    const std::uint32_t n = std::min(kBatch, run.count - at);
    const auto [asked, got, good, lost] = look_at(equipment_, run, at, n, ids_.data(), bcids_.data(), plugin_errors_);
    const std::uint32_t taken = std::min(got, good + 1);  // the good ones and, if there is one, the corrupt one after them
    for (std::uint32_t i = 0; i < taken; ++i) {
      std::uint8_t rodeo_status = i == good ? chunk_flag::kCorrupt : 0;
      if (run.more_follows) {
        rodeo_status |= chunk_flag::kTruncated;
        counters_.add(WorkerCounter::truncated);
      }
      handle(view_of(run, at + i, ids_[i], bcids_[i], rodeo_status, &page));
    }
    at += taken;
    if (got < asked && taken == got) {
      lose(run.link, lost);
      ++at;
    }
  }
}

void FullWorker::handle(const ChunkView& chunk) {
  const LinkPlace& place = places_[chunk.link];
  Group& group = *place.group;
  LinkSequence& link = group.links[place.place];
  link.seen.store(event_clock_, std::memory_order_relaxed);
  const Sequence next = link.position();
  if (chunk.id == link.expected && next < link.end && !group.events.beyond(next)) {
    link.next.store(next + link.stride, std::memory_order_relaxed);
    link.expected = format_.advance(link.expected, link.stride);
    deliver(group, next, chunk, 0);
    return;
  }
  wait(chunk);
  group.sequencer.offer(place.place, chunk.id, chunk.bcid, event_clock_, group.events.oldest(), decisions_);
  apply(chunk.link);
  if (group.sequencer.version() != group.version) settle(group);
}

// Does with the chunks of a link that have waited what was decided.
void FullWorker::apply(std::size_t position) {
  Group& group = *places_[position].group;
  if (!group.begun && group.sequencer.begun()) {
    group.begun = true;
    group.events.begin(group.sequencer.run_first());
  }
  for (const Decision& decision : decisions_) {
    const ChunkView chunk = waiting_.pop(static_cast<LinkIndex>(position));
    if (decision.verdict != Verdict::take) {
      lose(position, decision.verdict);
    } else {
      if (decision.from != decision.sequence && decision.from != group.sequencer.run_first())
        counters_.add(WorkerCounter::resynchronised);
      deliver(group, decision.sequence, chunk, decision.doubtful ? slot_flag::kDoubtfulId : 0);
    }
    chunk.page->drop();
  }
  decisions_.clear();
}

void FullWorker::settle(Group& group) {
  group.version = group.sequencer.version();
  group.looked_at = event_clock_;
  for (std::size_t place = 0; place < group.members.size(); ++place) {
    group.sequencer.settle(place, event_clock_, group.events.oldest(), decisions_);
    apply(group.members[place]);
  }
}

// Builds a chunk whose event is known, unless the event is there already or it is another link's turn.
void FullWorker::deliver(Group& group, Sequence sequence, const ChunkView& chunk, std::uint32_t flags) {
  const std::size_t place = places_[chunk.link].place;
  if (sequence < group.events.oldest())
    return lose(chunk.link, group.events.came(sequence) ? LostCounter::duplicate : LostCounter::late);
  if (group.events.came(sequence)) return lose(chunk.link, LostCounter::duplicate);
  while (group.events.beyond(sequence)) give_up(group, group.events.oldest() + 1, slot_flag::kRingFull);
  Stretch& stretch = group.stretches.front();
  if (const Segment& segment = segment_of(group, sequence); segment.base != stretch.base) {
    note_segment(group, segment, sequence);
  } else {
    stretch.last = std::max(stretch.last, sequence);
  }
  const bool strays = group.turns.strays(place, sequence);
  if (strays && keep_stray(group, sequence, chunk)) return;
  if (strays) return lose(chunk.link, LostCounter::out_of_sequence);
  drop_stray(group, sequence);
  group.events.add(sequence);
  build(group, sequence, chunk, flags);
}

// ---- what is in no order

void FullWorker::note_segment(Group& group, const Segment& segment, Sequence sequence) {
  for (Stretch& known : group.stretches) {
    if (known.base != segment.base || known.last == 0) continue;
    known.last = std::max(known.last, sequence);
    return;
  }
  const bool first_of_run = group.stretches.front().last == 0;
  std::shift_right(group.stretches.begin(), group.stretches.end(), 1);
  group.stretches.front() = {segment.base, first_of_run ? sequence : segment.first, sequence};
}

// An event that nobody brings exists if the list has it or, without a list, if a later one of its segment has come.
bool FullWorker::is_event(const Group& group, Sequence sequence) const {
  if (group.sequencer.settings().listed) return entry_of(group, sequence).state != TriggerBook::kNot;
  return std::any_of(group.stretches.begin(), group.stretches.end(),
                     [&](const Stretch& stretch) { return sequence >= stretch.first && sequence < stretch.last; });
}

// A chunk of another's turn waits until that link has passed the event.
bool FullWorker::keep_stray(Group& group, Sequence sequence, const ChunkView& chunk) {
  const bool there =
      std::any_of(group.strays.begin(), group.strays.end(), [&](const auto& stray) { return stray.first == sequence; });
  if (there || group.strays.size() == kMostStrays) return false;
  chunk.page->references.fetch_add(1, std::memory_order_relaxed);
  group.strays.emplace_back(sequence, chunk);
  group.events.raise(sequence + 1);
  return true;
}

std::optional<ChunkView> FullWorker::take_stray(Group& group, Sequence sequence) {
  const auto found =
      std::find_if(group.strays.begin(), group.strays.end(), [&](const auto& stray) { return stray.first == sequence; });
  if (found == group.strays.end()) return std::nullopt;
  const ChunkView chunk = found->second;
  group.strays.erase(found);
  return chunk;
}

void FullWorker::drop_stray(Group& group, Sequence sequence) {
  if (group.strays.empty()) return;
  if (const auto stray = take_stray(group, sequence)) {
    lose(stray->link, LostCounter::out_of_sequence);
    stray->page->drop();
  }
}

// Gives up the gaps below `bound`: what strayed into them is built, flagged; events that nobody has brought are built empty.
void FullWorker::give_up(Group& group, Sequence bound, std::uint32_t reason) {
  if (bound > group.events.head()) group.events.raise(bound);
  while (group.events.has_gap() && group.events.oldest() < bound) {
    const Sequence sequence = group.events.oldest();
    if (const auto stray = take_stray(group, sequence)) {
      group.events.add(sequence);
      build(group, sequence, *stray, slot_flag::kDoubtfulId);
      stray->page->drop();
      continue;
    }
    if (is_event(group, sequence)) build_empty(group, sequence, reason);
    group.events.pass();
  }
}

// The first number that some link which is not removed has still to come to.
Sequence FullWorker::passed_by_all(const Group& group) const {
  Sequence passed = group.events.head();
  for (std::size_t place = 0; place < group.members.size(); ++place) {
    const LinkSequence& link = group.links[place];
    if (link.removed.load(std::memory_order_relaxed)) continue;
    if (!link.here.load(std::memory_order_relaxed)) return 0;
    passed = std::min(passed, link.position() - link.stride + 1);
  }
  return passed;
}

// ---- fragments

// Nearly always that of the event before.
const Segment& FullWorker::segment_of(Group& group, Sequence sequence) {
  Segment& last = group.segment;
  if (sequence < last.first || sequence >= last.end || group.segment_version != group.sequencer.version()) {
    last = group.sequencer.segment_of(sequence);
    group.segment_version = group.sequencer.version();
  }
  return last;
}

// What the trigger's own list says of an event.
TriggerBook::Entry FullWorker::entry_of(const Group& group, Sequence sequence) {
  const TriggerBook& book = group.sequencer.book();
  return group.sequencer.settings().listed && sequence < book.end() ? book.at(sequence) : TriggerBook::Entry{};
}

FullFragment& FullWorker::make_fragment(Group& group, Sequence sequence) {
  FullFragment& fragment = *take_or_wait(pool_, held_);
  fragment.sequence = sequence;
  fragment.l1id = segment_of(group, sequence).l1id(sequence);
  fragment.global_id = group.global_ids.of(fragment.l1id);
  fragment.source_id = SourceId{full_.source_id.value + group.number};
  fragment.bcid = 0;
  fragment.trigger_type = 0;
  fragment.status = 0;
  fragment.missing = fragment.removed = 0;
  fragment.handed_over_ns = page_time_ns_;
  fragment.page = nullptr;
  return fragment;
}

void FullWorker::build(Group& group, Sequence sequence, const ChunkView& chunk, std::uint32_t flags) {
  FullFragment& fragment = make_fragment(group, sequence);
  fragment.bcid = chunk.bcid;
  if (group.sequencer.settings().listed) {
    const TriggerBook::Entry listed = entry_of(group, sequence);
    if (listed.state == TriggerBook::kNot) flags |= kNotListed;
    if (has_bcid_ && listed.state == TriggerBook::kListed) fragment.bcid = listed.bcid;
  }
  const bool bcid_differs = fragment.bcid != chunk.bcid;
  if (has_trigger_type_) {
    try {
      fragment.trigger_type = equipment_.extractor->trigger_type(chunk.bytes());
    } catch (...) {
      plugin_threw(equipment_.extractor_name, equipment_.links[chunk.link], plugin_errors_);
      flags |= slot_flag::kWorkFailed;
    }
  }
  fragment.chunks = 1;
  const std::size_t size = chunk.size;
  const std::size_t header_bytes = chunk_header_bytes(size);
  store_chunk_header(
      fragment.header,
      {.felix_status = chunk.felix_status,
       .rodeo_status = static_cast<std::uint8_t>(chunk.rodeo_status | (bcid_differs ? chunk_flag::kBcidMismatch : 0)),
       .link_id = builder_links_[chunk.link].link_id},
      size);
  std::byte* bytes = const_cast<std::byte*>(chunk.data);  // handed out as not writable
  fragment.writable = false;
  if (copying_ && fragment.copy != nullptr && size <= full_.copy_bytes) {
    std::memcpy(fragment.copy, chunk.data, size);
    bytes = fragment.copy;
    fragment.writable = true;
  } else {
    chunk.page->references.fetch_add(1, std::memory_order_relaxed);
    fragment.page = chunk.page;
  }
  fragment.storage[0] = {fragment.header, header_bytes};
  fragment.storage[1] = {bytes, size};
  fragment.storage[2] = {fragment.padding, chunk_padding_bytes(size)};
  fragment.part_count = fragment.storage[2].size == 0 ? 2 : 3;

  if (chunk.rodeo_status & chunk_flag::kCorrupt || (chunk.felix_status & ~chunk_status::kBusy) != 0) {
    flags |= slot_flag::kCorrupt;
    counters_.add(WorkerCounter::corrupt);
  }
  if ((flags & (slot_flag::kCorrupt | slot_flag::kWorkFailed)) != 0) fragment.status |= fragment_status::kDataCorruption;
  if ((chunk.rodeo_status & chunk_flag::kTruncated) != 0) {
    flags |= slot_flag::kTruncated;
    fragment.status |= fragment_status::kOverflow;
  }
  if (bcid_differs) {
    flags |= kBcidDiffers;
    fragment.status |= fragment_status::kBcidMismatch;
  }
  if ((flags & (slot_flag::kDoubtfulId | kNotListed)) != 0) fragment.status |= fragment_status::kL1IdMismatch;
  fragment_counters_.add(FragmentCounter::chunks);
  fragment_counters_.add(FragmentCounter::payload_bytes, chunk_record_bytes(size));
  push(group, fragment, flags);
}

void FullWorker::build_empty(Group& group, Sequence sequence, std::uint32_t flags) {
  FullFragment& fragment = make_fragment(group, sequence);
  fragment.chunks = 0;
  fragment.part_count = 0;
  fragment.writable = true;
  const std::size_t place = group.turns.likely_link(sequence);
  LinkCounters& counters = link_counters_[group.members[place]];
  const bool removed = counters.removed.get();
  fragment.status = fragment_status::kDummy | (removed ? fragment_status::kLinksRemoved : fragment_status::kTimeout);
  (removed ? fragment.removed : fragment.missing) = 1;
  const std::size_t words = (group.link_ids.size() + 31) / 32;
  std::ranges::fill(fragment.absent, 0U);
  fragment.link_ids = group.link_ids;
  fragment.missing_links = std::span(fragment.absent).first(words);
  fragment.removed_links = std::span(fragment.absent).subspan(words, words);
  fragment.absent[place / 32 + (removed ? words : 0)] |= 1U << (place % 32);
  (removed ? counters.left_out : counters.missing).add(1);
  const TriggerBook::Entry listed = entry_of(group, sequence);
  fragment.bcid = listed.bcid;
  fragment.trigger_type = listed.type;
  push(group, fragment, flags);
}

void FullWorker::push(Group& group, FullFragment& fragment, std::uint32_t flags) {
  group.built.add(1);
  if (fragment.global_id < group.first_event.load(std::memory_order_relaxed))
    group.first_event.store(fragment.global_id, std::memory_order_relaxed);
  fragment_counters_.add(FragmentCounter::built);
  if (fragment.removed != 0) fragment_counters_.add(FragmentCounter::without_removed);
  if (!fragment.complete()) {
    fragment_counters_.add(FragmentCounter::incomplete);
    if (fragment.chunks == 0) {
      fragment_counters_.add((flags & slot_flag::kTimedOut) != 0   ? FragmentCounter::timeout
                             : (flags & slot_flag::kRunEnded) != 0 ? FragmentCounter::run_ended
                             : (flags & slot_flag::kRingFull) != 0 ? FragmentCounter::ring_full
                                                                   : FragmentCounter::missing);
      fragment_counters_.add(FragmentCounter::empty);
    }
    if ((flags & (slot_flag::kCorrupt | slot_flag::kWorkFailed)) != 0) fragment_counters_.add(FragmentCounter::corrupt);
    if ((flags & slot_flag::kTruncated) != 0) fragment_counters_.add(FragmentCounter::truncated);
    if ((flags & slot_flag::kDoubtfulId) != 0) fragment_counters_.add(FragmentCounter::doubtful_id);
    if ((flags & kBcidDiffers) != 0) fragment_counters_.add(FragmentCounter::bcid_mismatch);
    if ((flags & kNotListed) != 0) fragment_counters_.add(FragmentCounter::not_triggered);
  }
  fragment.references.store(1, std::memory_order_relaxed);
  consumer_.insert(FragmentPtr::adopt(&fragment));
}

void FullWorker::reclaim(Fragment& fragment) noexcept {
  auto& full = static_cast<FullFragment&>(fragment);
  if (full.page != nullptr) full.page->drop();
  full.pool->give(&full);
}

// ---- the trigger's list, the clock and the end

void FullWorker::poll_list() {
  if (list_ == nullptr) return;
  const auto oldest = [](const Group& group) { return group.begun ? group.events.oldest() : 0; };
  const auto room = [&](const auto& group) { return group->sequencer.has_room(oldest(*group)); };
  bool any = false;
  for (bool more = true; more;) {
    const std::span<const ListedTrigger> unread = list_->unread(settings_.index);
    std::size_t read = 0;
    for (; read < unread.size() && std::all_of(groups_.begin(), groups_.end(), room); ++read) {
      for (const auto& group : groups_) group->sequencer.announce(unread[read], event_clock_, oldest(*group));
    }
    list_->take(settings_.index, read);
    any = any || read != 0;
    more = read != 0 && read == unread.size();
  }
  page_time_ns_ = base::steady_now_ns();
  for (const auto& group : groups_) {
    if (any)
      settle(*group);
    else
      group->sequencer.settle_list(event_clock_);
  }
}

// Gaps age on the event clock, as in GBT mode.
void FullWorker::look(bool drained) {
  std::uint64_t open = 0;
  for (const auto& each : groups_) {
    Group& group = *each;
    if (drained &&
        (group.sequencer.version() != group.version || event_clock_ >= group.looked_at + settings_.timeout_ns / 8))
      settle(group);
    if (!group.begun) continue;
    if (drained && group.sequencer.settings().listed) open_listed(group);
    if (!group.events.has_gap()) continue;
    page_time_ns_ = base::steady_now_ns();
    give_up(group, passed_by_all(group), 0);
    if (!group.events.has_gap()) continue;
    if (group.gap_at != group.events.oldest()) {
      group.gap_at = group.events.oldest();
      group.gap_head = group.events.head();
      group.gap_since = event_clock_;
    } else if (event_clock_ - group.gap_since >= settings_.timeout_ns) {
      give_up(group, group.gap_head, slot_flag::kTimedOut);
    }
    open += group.events.head() - group.events.oldest();
  }
  open_events_.set(open);
}

// Events that the list has, and that nobody has come to while all links were silent for the time-out, are gaps like others.
void FullWorker::open_listed(Group& group) {
  const Sequence end = group.sequencer.book().end();
  if (event_clock_ < group.listed_at + settings_.timeout_ns) return;
  group.sequencer.looked(0, event_clock_);
  if (group.listed > group.events.head() && !group.sequencer.anything_lives())
    group.events.raise(std::min(group.listed, group.events.oldest() + group.events.size()));
  group.listed = end;
  group.listed_at = event_clock_;
}

void FullWorker::finish() {
  bool all_listed = true;
  do {
    poll_list();
    all_listed = list_ == nullptr || list_->unread(settings_.index).empty();
    for (const auto& each : groups_) {
      Group& group = *each;
      if (list_ != nullptr && all_listed) group.sequencer.end_of_list();
      for (int round = 0; round < 3; ++round) {
        for (std::size_t place = 0; place < group.members.size(); ++place) {
          if (round < 2)
            group.sequencer.finish(place, event_clock_, group.events.oldest(), decisions_);
          else
            group.sequencer.give_up(place, decisions_);
          apply(group.members[place]);
        }
      }
      const Sequence end = group.sequencer.settings().listed ? group.sequencer.book().end() : group.events.head();
      while (group.begun && group.events.oldest() < std::max(end, group.events.head()))
        give_up(group, std::min(std::max(end, group.events.head()), group.events.oldest() + group.events.size()),
                slot_flag::kRunEnded);
    }
  } while (!all_listed);
  if (list_ != nullptr) list_->leave(settings_.index);
}

void FullWorker::set_removed(std::size_t position, bool removed) {
  const LinkPlace& place = places_[position];
  Group& group = *place.group;
  group.turns.set_removed(place.place, removed);
  if (removed) {
    group.sequencer.remove(place.place, decisions_);
    apply(position);
  } else {
    group.sequencer.take_back(place.place, group.events.head());
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
