#include "readout/builder/full_worker.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>

#include <fmt/core.h>

#include "base/clock.h"
#include "base/pin.h"
#include "readout/builder/builder_common.h"

namespace rodeo::readout {
namespace {

constexpr std::size_t kAskedBytes = 256;
constexpr std::size_t kShortChunk = kLongChunk - sizeof(ChunkHeader);
constexpr std::uint32_t kBcidDiffers = 0x100;  // beside slot_flag: the trigger's own list has another BCID

}  // namespace

FullWorker::FullWorker(const Settings& settings, std::span<const BuilderLink> links, WorkerEquipment equipment,
                       FragmentConsumer& consumer)
    : settings_(settings),
      builder_links_(links.begin(), links.end()),
      equipment_(std::move(equipment)),
      list_(equipment_.trigger_list.get(), equipment_.trigger_extractor.get()),
      consumer_(consumer),
      format_(equipment_.extractor->fields()),
      has_trigger_type_(equipment_.extractor->fields().has_trigger_type),
      has_bcid_(equipment_.extractor->fields().has_bcid),
      places_(links.size()),
      link_counters_(std::make_unique<LinkCounters[]>(links.size())),
      fragments_(std::make_unique<FullFragment[]>(settings.fragments)) {
  std::map<std::uint32_t, std::vector<std::size_t>> members;
  for (std::size_t i = 0; i < links.size(); ++i) members[links[i].group].push_back(i);
  std::size_t bitmap_words = 0;
  for (const auto& [number, positions] : members) {
    const GroupTracker::Settings tracker{.links = static_cast<std::uint32_t>(positions.size()),
                                         .window = settings.window,
                                         .step_limit = settings.step_limit,
                                         .trigger_list = equipment_.trigger_list != nullptr};
    groups_.push_back(std::make_unique<Group>(*this, number, tracker, format_));
    for (std::uint32_t place = 0; place < positions.size(); ++place) {
      places_[positions[place]] = {.group = groups_.back().get(), .place = place};
      groups_.back()->link_ids.push_back(links[positions[place]].link_id);
    }
    bitmap_words = std::max(bitmap_words, (positions.size() + 31) / 32);
  }
  auto arena = base::Arena::create(settings.copies * settings.copy_bytes);
  if (!arena) {
    throw SetupError(
        without_memory(arena.error().within("memory for copies of a FULL-mode worker"),
                       "make readout.builder.copies or readout.builder.copy_size smaller, or end other programs"));
  }
  copy_memory_ = std::move(*arena);
  for (std::size_t i = settings.fragments; i-- > 0;) {
    FullFragment& fragment = fragments_[i];
    fragment.pool = &pool_;
    fragment.owner = this;
    fragment.parts = fragment.storage;
    fragment.absent.resize(2 * bitmap_words);
    if (i < settings.copies) fragment.copy = copy_memory_.data() + i * settings.copy_bytes;
    pool_.add(&fragment);
  }
  commands_.reserve(links.size());
  unexpected_.resize(links.size());
}

FullWorker::~FullWorker() = default;

void FullWorker::run() {
  base::set_thread_name(fmt::format("rodeo-full-{}", settings_.index));
  base::pin_thread_or_warn(settings_.cpu, fmt::format("rodeo-full-{}", settings_.index));
  cpu_.attach();
  pool_.own();
  base::Backoff backoff(settings_.idle);
  input_clock_ = equipment_.stream->clock_ns();
  for (;;) {
    if (commanded_.load(std::memory_order_relaxed)) obey();
    Page* page = nullptr;
    const PollStatus status = equipment_.stream->poll(page);
    if (status == PollStatus::end) break;
    if (status == PollStatus::page) {
      poll_triggers();  // the list is always ahead of the data: what this page holds is in it by now
      page_time_ns_ = base::steady_now_ns();
      copying_ = settings_.copies != 0 && equipment_.stream->memory_fill() > settings_.copy_above;
      for (const ChunkRun& run : page->runs) {
        // The hardware follows within a chunk; the first lines of the next one are asked for here.
        const std::byte* const next = run.data + std::size_t{run.count} * run.stride;
        for (std::size_t at = 0; at < kAskedBytes; at += base::kCacheLine) __builtin_prefetch(next + at);
        process_run(*page, run);
      }
      page->drop();
      backoff.reset();
    } else {
      poll_triggers();
      backoff.idle();
    }
    tick(status == PollStatus::empty);
  }
  finish();
  cpu_.detach();
}

void FullWorker::process_run(Page& page, const ChunkRun& run) {
  LinkPlace& place = places_[run.link];
  const bool continued = place.continuing;
  place.continuing = run.more_follows;
  if (continued) {
    counters_.add(WorkerCounter::continuations);
    return;
  }
  link_counters_[run.link].chunks.add(run.count);
  if (place.removed) {
    for (std::uint32_t i = 0; i < run.count; ++i) lose(run.link, LostCounter::link_removed);
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
      handle({&page, run.chunk(at + i), ids_[i], bcids_[i], run.chunk_status(at + i), rodeo_status, run.link});
    }
    at += taken;
    if (got < asked && taken == got) {
      lose(run.link, lost);
      ++at;
    }
  }
}

void FullWorker::handle(const ChunkAt& chunk) {
  LinkPlace& place = places_[chunk.link];
  Group& group = *place.group;
  if (place.holding) settle_unexpected(chunk.link, group.tracker.contradicts(place.place, chunk.id));
  if (group.held.page != nullptr) settle_held(group, group.tracker.agrees(group.held.id, chunk.id));
  const Decision decision = group.tracker.decide(place.place, chunk.id, false);
  switch (decision.verdict) {
    case Verdict::take: build(group, decision.sequence, chunk); break;
    case Verdict::hold:
      chunk.page->references.fetch_add(1, std::memory_order_relaxed);
      if (decision.sequence == 0) {
        group.held = chunk;
      } else {
        unexpected_[chunk.link] = {chunk, event_clock_};
        place.holding = true;
        ++holding_;
      }
      break;
    case Verdict::duplicate: lose(chunk.link, LostCounter::duplicate); break;
    case Verdict::late: lose(chunk.link, LostCounter::late); break;
    case Verdict::out_of_sequence: lose(chunk.link, LostCounter::out_of_sequence); break;
  }
}

void FullWorker::settle_held(Group& group, bool confirmed) {
  const ChunkAt chunk = group.held;
  group.held = {};
  Decision decision;
  if (confirmed) decision = group.tracker.decide(places_[chunk.link].place, chunk.id, true);
  if (decision.verdict == Verdict::take) {
    counters_.add(WorkerCounter::resynchronised);
    build(group, decision.sequence, chunk);
  } else {
    lose(chunk.link, LostCounter::out_of_sequence);
  }
  chunk.page->drop();
}

void FullWorker::settle_unexpected(LinkIndex link, bool contradicted) {
  LinkPlace& place = places_[link];
  const ChunkAt chunk = unexpected_[link].chunk;
  place.holding = false;
  --holding_;
  Decision decision;
  if (!contradicted) decision = place.group->tracker.decide(place.place, chunk.id, true);
  switch (decision.verdict) {
    case Verdict::take: build(*place.group, decision.sequence, chunk); break;
    case Verdict::duplicate: lose(chunk.link, LostCounter::duplicate); break;
    case Verdict::late: lose(chunk.link, LostCounter::late); break;
    case Verdict::hold:
    case Verdict::out_of_sequence: lose(chunk.link, LostCounter::out_of_sequence); break;
  }
  chunk.page->drop();
}

// What its link's next chunk has not contradicted in time is believed.
void FullWorker::settle_unexpected(std::uint64_t before) {
  for (std::size_t i = 0; i < places_.size() && holding_ != 0; ++i) {
    if (places_[i].holding && unexpected_[i].since <= before) settle_unexpected(static_cast<LinkIndex>(i), false);
  }
}

FullFragment& FullWorker::take_fragment(Group& group, Sequence sequence) {
  FullFragment* fragment = pool_.take();
  if (fragment == nullptr) {
    // All are with consumers: waiting for one is back-pressure.
    held_.store(true, std::memory_order_relaxed);
    base::Backoff backoff;
    while ((fragment = pool_.take()) == nullptr) backoff.idle();
    held_.store(false, std::memory_order_relaxed);
  }
  fragment->status = 0;
  fragment->missing = fragment->removed = 0;
  fragment->sequence = sequence;
  fragment->l1id = group.tracker.l1id(sequence);
  fragment->global_id = group.global_ids.of(fragment->l1id);
  fragment->source_id = SourceId{settings_.source_id.value + group.number};
  fragment->handed_over_ns = page_time_ns_;
  fragment->page = nullptr;
  return *fragment;
}

void FullWorker::build(Group& group, Sequence sequence, const ChunkAt& chunk) {
  FullFragment& fragment = take_fragment(group, sequence);
  fragment.bcid = has_bcid_ ? group.tracker.listed_bcid(sequence, chunk.bcid) : chunk.bcid;
  const bool bcid_differs = fragment.bcid != chunk.bcid;
  fragment.trigger_type = 0;
  std::uint32_t flags = 0;
  if (has_trigger_type_) {
    try {
      fragment.trigger_type = equipment_.extractor->trigger_type(chunk.bytes);
    } catch (...) {
      plugin_threw(equipment_.extractor_name, equipment_.links[chunk.link], plugin_errors_);
      flags |= slot_flag::kWorkFailed;
    }
  }
  fragment.chunks = 1;
  const std::size_t size = chunk.bytes.size();
  ChunkHeader header{
      .size = static_cast<std::uint16_t>(sizeof header + size),
      .felix_status = chunk.felix_status,
      .rodeo_status = static_cast<std::uint8_t>(chunk.rodeo_status | (bcid_differs ? chunk_flag::kBcidMismatch : 0)),
      .link_id = builder_links_[chunk.link].link_id};
  std::size_t header_bytes = sizeof header;
  if (size >= kShortChunk) {
    header.size = kLongChunk;
    const auto true_size = static_cast<std::uint32_t>(size);
    std::memcpy(fragment.header + sizeof header, &true_size, sizeof true_size);
    header_bytes += sizeof true_size;
  }
  std::memcpy(fragment.header, &header, sizeof header);
  std::byte* bytes = const_cast<std::byte*>(chunk.bytes.data());  // handed out as not writable
  fragment.writable = false;
  if (copying_ && fragment.copy != nullptr && size <= settings_.copy_bytes) {
    std::memcpy(fragment.copy, chunk.bytes.data(), size);
    bytes = fragment.copy;
    fragment.writable = true;
  } else {
    chunk.page->references.fetch_add(1, std::memory_order_relaxed);
    fragment.page = chunk.page;
  }
  fragment.storage[0] = {fragment.header, header_bytes};
  fragment.storage[1] = {bytes, size};
  fragment.storage[2] = {fragment.padding, (4 - size % 4) % 4};
  fragment.part_count = size % 4 == 0 ? 2 : 3;

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
  fragment_counters_.add(FragmentCounter::chunks);
  fragment_counters_.add(FragmentCounter::payload_bytes, header_bytes + (size + 3) / 4 * 4);
  push(fragment, flags);
}

void FullWorker::build_empty(Group& group, Sequence sequence) {
  FullFragment& fragment = take_fragment(group, sequence);
  fragment.bcid = group.tracker.listed_bcid(sequence, 0);
  fragment.trigger_type = 0;
  fragment.chunks = 0;
  fragment.part_count = 0;
  fragment.writable = true;
  const std::uint32_t place = group.tracker.likely_link(sequence);
  const auto owner =
      std::ranges::find_if(places_, [&](const LinkPlace& link) { return link.group == &group && link.place == place; });
  const bool removed = owner->removed;
  fragment.status = fragment_status::kDummy | (removed ? fragment_status::kLinksRemoved : fragment_status::kTimeout);
  (removed ? fragment.removed : fragment.missing) = 1;
  const std::size_t words = (group.link_ids.size() + 31) / 32;
  std::ranges::fill(fragment.absent, 0U);
  fragment.link_ids = group.link_ids;
  fragment.missing_links = std::span(fragment.absent).first(words);
  fragment.removed_links = std::span(fragment.absent).last(words);
  (removed ? fragment.removed_links : fragment.missing_links)[place / 32] |= 1U << (place % 32);
  LinkCounters& counters = link_counters_[static_cast<std::size_t>(owner - places_.begin())];
  (removed ? counters.left_out : counters.missing).add(1);
  push(fragment, group.close_reason);
}

void FullWorker::push(FullFragment& fragment, std::uint32_t reason_flags) {
  fragment_counters_.add(FragmentCounter::built);
  if (fragment.removed != 0) fragment_counters_.add(FragmentCounter::without_removed);
  if (!fragment.complete()) {
    fragment_counters_.add(FragmentCounter::incomplete);
    if (fragment.chunks == 0) {
      fragment_counters_.add((reason_flags & slot_flag::kTimedOut) != 0   ? FragmentCounter::timeout
                             : (reason_flags & slot_flag::kRunEnded) != 0 ? FragmentCounter::run_ended
                                                                          : FragmentCounter::missing);
      fragment_counters_.add(FragmentCounter::empty);
    }
    if ((reason_flags & (slot_flag::kCorrupt | slot_flag::kWorkFailed)) != 0)
      fragment_counters_.add(FragmentCounter::corrupt);
    if ((reason_flags & slot_flag::kTruncated) != 0) fragment_counters_.add(FragmentCounter::truncated);
    if ((reason_flags & kBcidDiffers) != 0) fragment_counters_.add(FragmentCounter::bcid_mismatch);
  }
  fragment.references.store(1, std::memory_order_relaxed);
  consumer_.insert(FragmentPtr::adopt(&fragment));
}

void FullWorker::reclaim(Fragment& fragment) noexcept {
  auto& full = static_cast<FullFragment&>(fragment);
  if (full.page != nullptr) full.page->drop();
  full.pool->give(&full);
}

void FullWorker::lose(LinkIndex link, LostCounter reason) {
  lost_.add(reason);
  link_counters_[link].bad.add(1);
}

// Reads the list as far as half of each group's window; false if there is nothing to read, or no room.
bool FullWorker::poll_triggers() {
  if (!list_.exists()) return false;
  bool any = false;
  for (;;) {
    std::uint64_t room = TriggerListReader::kBatch;
    for (const auto& group : groups_) room = std::min(room, group->tracker.room_to_announce());
    const auto triggers = list_.read(static_cast<std::uint32_t>(room));
    if (triggers.empty()) return any;
    any = true;
    page_time_ns_ = base::steady_now_ns();
    for (const ListedTrigger& trigger : triggers) {
      for (const auto& group : groups_)
        group->tracker.announce(trigger.id & (format_.has_ecr() ? ~0U : format_.low_mask()), trigger.bcid);
    }
  }
}

// Gaps age on the input's own time, which is looked at only while it is drained, and never in leaps, as in GBT mode.
void FullWorker::tick(bool drained) {
  if (drained) {
    const std::uint64_t now = equipment_.stream->clock_ns();
    if (now > input_clock_) {
      event_clock_ += std::min(now - input_clock_, std::max<std::uint64_t>(settings_.timeout_ns / 4, 100'000));
    }
    input_clock_ = now;
  }
  // Before the gap that a held chunk may fill is given up.
  if (holding_ != 0 && event_clock_ > settings_.timeout_ns / 2) settle_unexpected(event_clock_ - settings_.timeout_ns / 2);
  std::uint64_t open = 0;
  for (const auto& group : groups_) {
    GroupTracker& tracker = group->tracker;
    if (!tracker.has_gap()) continue;
    page_time_ns_ = base::steady_now_ns();
    tracker.give_up_passed();
    if (!tracker.has_gap()) continue;
    if (group->gap_at != tracker.oldest()) {
      group->gap_at = tracker.oldest();
      group->gap_head = tracker.head();
      group->gap_since = event_clock_;
    } else if (event_clock_ - group->gap_since >= settings_.timeout_ns) {
      group->close_reason = slot_flag::kTimedOut;
      tracker.give_up(group->gap_head);
      group->close_reason = 0;
    }
    open += tracker.has_gap() ? tracker.head() + 1 - tracker.oldest() : 0;
  }
  open_events_.set(open);
}

void FullWorker::finish() {
  poll_triggers();
  settle_unexpected(event_clock_);
  do {
    for (const auto& group : groups_) {
      // The only chunk of a stream: nobody speaks against it.
      if (group->held.page != nullptr) settle_held(*group, !group->tracker.begun());
      group->close_reason = slot_flag::kRunEnded;
      if (group->tracker.has_gap()) group->tracker.give_up(group->tracker.head());
    }
  } while (poll_triggers());
  open_events_.set(0);
}

void FullWorker::command(std::size_t link, LinkState state) {
  const std::lock_guard lock(command_mutex_);
  commands_.emplace_back(link, state);
  commanded_.store(true, std::memory_order_release);
}

void FullWorker::obey() {
  const std::lock_guard lock(command_mutex_);
  commanded_.store(false, std::memory_order_relaxed);
  for (const auto& [position, state] : commands_) {
    LinkPlace& place = places_[position];
    const bool removed = state == LinkState::removed;
    if (place.removed == removed) continue;
    if (place.holding) settle_unexpected(static_cast<LinkIndex>(position), false);
    place.removed = removed;
    place.group->tracker.set_removed(place.place, removed);
    link_counters_[position].removed.set(removed);
    counters_.add(removed ? WorkerCounter::removed : WorkerCounter::taken_back);
  }
  commands_.clear();
}

FragmentBuilder::Link FullWorker::link_status(std::size_t position) const {
  const LinkCounters& counters = link_counters_[position];
  return {.fid = builder_links_[position].fid,
          .state = counters.removed.get() ? LinkState::removed : LinkState::active,
          .chunks = counters.chunks.get(),
          .missing = counters.missing.get(),
          .left_out = counters.left_out.get(),
          .bad = counters.bad.get()};
}

}  // namespace rodeo::readout
