#include "readout/builder/gbt_worker.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <exception>

#include "base/clock.h"
#include "base/log.h"
#include "base/pin.h"

namespace rodeo::readout {
namespace {

// Input memory was last touched by somebody else, and inputs lay their runs behind one another: as much memory as this run covers is
// asked for a little way ahead. Beyond the page's end that is harmless.
inline void ask_ahead(const ChunkRun& run) {
  constexpr std::size_t kAheadBytes = 4096;
  constexpr std::size_t kMostAsked = 2048;  // longer runs the hardware follows by itself
  const std::size_t extent = run.entries == nullptr ? std::size_t{run.count} * run.stride : 0;
  const std::byte* at = run.data + kAheadBytes;
  for (const std::byte* const end = at + std::min(extent, kMostAsked); at < end; at += base::kCacheLine)
    __builtin_prefetch(at);
}

constexpr std::uint32_t kShortChunk = kLongChunk - sizeof(ChunkHeader);

std::vector<TrackedLink> link_states(std::span<const BuilderLink> links, bool trigger_list) {
  std::vector<TrackedLink> states(links.size() + (trigger_list ? 1 : 0));
  for (std::size_t i = 0; i < links.size(); ++i) {
    states[i].header = std::bit_cast<std::uint64_t>(ChunkHeader{.link_id = links[i].link_id});
  }
  if (trigger_list) states.back().trigger_list = true;
  return states;
}

}  // namespace

GbtWorker::GbtWorker(const Settings& settings, std::span<const BuilderLink> links, WorkerEquipment equipment,
                     std::unique_ptr<SliceStore> store, EpochMap& epochs, Assembler& assembler,
                     std::span<WorkerProgress> progress)
    : settings_(settings),
      builder_links_(links.begin(), links.end()),
      equipment_(std::move(equipment)),
      list_(equipment_.trigger_list.get(), equipment_.trigger_extractor.get()),
      epochs_(epochs),
      assembler_(assembler),
      progress_(progress),
      links_(link_states(links, equipment_.trigger_list != nullptr)),
      link_counters_(std::make_unique<LinkCounters[]>(links.size())),
      tracker_({settings.step_limit}, TrackedIds(equipment_.extractor->fields()), epochs),
      trigger_tracker_({settings.step_limit},
                       equipment_.trigger_extractor ? TrackedIds(equipment_.trigger_extractor->fields()) : TrackedIds(),
                       epochs),
      window_({settings.index, settings.window, equipment_.trigger_list != nullptr}, std::move(store), links_,
              {link_counters_.get(), links.size()}, assembler, progress[settings.index], *this),
      balance_({settings.window / 2, settings.timeout_ns}, *equipment_.stream, {links_.data(), links.size()}),
      has_trigger_type_(equipment_.extractor->fields().has_trigger_type),
      untold_resets_(equipment_.trigger_list == nullptr && tracker_.resets_untold()),
      held_(links.size()),
      held_bytes_(links.size() * settings.held_chunk_bytes),
      active_links_(static_cast<std::uint32_t>(links.size())) {
  commands_.reserve(links.size());
  progress_[settings_.index].active_links.store(active_links_, std::memory_order_relaxed);
  progress_[settings_.index].links_near.store(active_links_, std::memory_order_relaxed);
}

void GbtWorker::run() {
  base::set_thread_name(settings_.thread_name);
  base::pin_thread_or_warn(settings_.cpu, settings_.thread_name);
  cpu_.attach();
  window_.pool().own();
  assembler_.own(settings_.index);
  base::Backoff backoff(settings_.idle);
  base::Backoff patience;
  input_clock_ = equipment_.stream->clock_ns();
  for (;;) {
    if (commanded_.load(std::memory_order_relaxed)) obey();
    if (ahead_of_busy_peer()) {
      patience.idle();
      continue;
    }
    patience.reset();
    const Flow flow = poll_data();
    if (flow == kEnded) break;
    progress_[settings_.index].busy.store(flow == kMore, std::memory_order_relaxed);
    tick(flow == kDrained);
    if (flow == kDrained)
      backoff.idle();
    else
      backoff.reset();
  }
  finish();
  cpu_.detach();
}

GbtWorker::Flow GbtWorker::poll_data() {
  const bool gone_on = balance_.parked() && go_on();
  Page* page = nullptr;
  const PollStatus status = equipment_.stream->poll(page);
  if (status == PollStatus::end) return kEnded;
  poll_triggers();  // the list is always ahead of the data: what this page holds is in it by now
  if (status == PollStatus::empty) return gone_on ? kMore : kDrained;
  begin_page();
  if (balance_.several() && !page->runs.empty()) {
    take(balance_.source_of(*page), {.page = page}, false);
  } else {
    for (const ChunkRun& run : page->runs) {
      ask_ahead(run);
      process_run(run);
    }
    page->drop();
  }
  window_.tell();
  open_events_.set(window_.open_events());
  return kMore;
}

void GbtWorker::begin_page() {
  page_time_ns_ = base::steady_now_ns();
  window_.set_clocks(event_clock_, page_time_ns_);
  if (epochs_.opened() != epochs_known_) learn_of_epochs();
}

// Events that are open hold nearly all buffers: what is read ahead of others would close the oldest.
bool GbtWorker::short_of_buffers() const {
  return window_.store().open_buffers() > window_.pool().total() - window_.pool().total() / 8;
}

// Takes what is left of a page as far as its source may go, and parks the rest.
void GbtWorker::take(std::uint32_t source, SourceBalance::Place at, bool forced) {
  balance_.begin_page(source);
  for (; at.run < at.page->runs.size(); ++at.run, at.chunk = 0) {
    const ChunkRun& run = at.page->runs[at.run];
    ask_ahead(run);
    while (at.chunk < run.count) {
      const std::uint32_t left = run.count - at.chunk;
      std::uint32_t n = balance_.room(source, links_[run.link], left, short_of_buffers());
      if (n == 0 && forced) n = std::min(left, kBatch);
      if (n == 0) {
        balance_.park(source, at, event_clock_);
        return;
      }
      if (n == run.count) {
        process_run(run);
      } else {
        ChunkRun some = run;
        some.count = n;
        if (run.entries != nullptr) {
          some.entries += at.chunk;
        } else {
          some.data += std::size_t{at.chunk} * run.stride;
        }
        process_run(some);
      }
      balance_.delivered(source, n);
      at.chunk += n;
      forced = false;
    }
  }
  at.page->drop();
}

// True if a page that was parked could be gone on with.
bool GbtWorker::go_on() {
  const auto resumed = balance_.resume(event_clock_, short_of_buffers());
  if (!resumed) return false;
  poll_triggers();
  begin_page();
  take(resumed->source, resumed->place, resumed->forced);
  window_.tell();
  open_events_.set(window_.open_events());
  return true;
}

void GbtWorker::process_run(const ChunkRun& run) {
  TrackedLink& link = links_[run.link];
  if (link.continuing || run.more_follows) {
    const bool first = !link.continuing;
    link.continuing = run.more_follows;
    if (!first) {
      counters_.add(WorkerCounter::continuations);
      return;
    }
  }
  link_counters_[run.link].chunks.add(run.count);
  if (link.removed) {
    lose(link, LostCounter::link_removed, run.count);
    return;
  }
  current_link_ = &link;
  if (run.count == 1 && single_as_expected(link, run)) {
    window_.publish_ready();
    return;
  }

  for (std::uint32_t at = 0; at < run.count;) {
    const std::uint32_t n = std::min(kBatch, run.count - at);
    const auto [asked, got, good, lost] = look_at(equipment_, run, at, n, ids_.data(), bcids_.data(), plugin_errors_);
    std::uint32_t i = 0;
    while (i < good) {
      if (link.regular) {
        std::uint32_t m = tracker_.format().consecutive(&ids_[i], good - i, link.expected);
        m = static_cast<std::uint32_t>(std::min<Sequence>(m, link.epoch_end - link.next));
        if (m != 0) {
          regular(link, run, at + i, m, &bcids_[i]);
          i += m;
          continue;
        }
      }
      const bool has_following = i + 1 < got;
      single(link, run, at + i, ids_[i], bcids_[i], false, has_following, has_following ? ids_[i + 1] : 0);
      ++i;
    }
    at += good;
    if (good < got) {
      const bool has_following = good + 1 < got;
      single(link, run, at, ids_[good], bcids_[good], true, has_following, has_following ? ids_[good + 1] : 0);
      ++at;
    } else if (got < asked) {
      lose(link, lost);
      ++at;
    }
  }
  window_.publish_ready();
}

// A lone chunk that is what it should be: the whole of what the general way does for it.
inline bool GbtWorker::single_as_expected(TrackedLink& link, const ChunkRun& run) {
  if (!link.regular || run.entries != nullptr || run.status != 0 || run.more_follows || run.size < 16 ||
      run.size >= kShortChunk || equipment_.checker != nullptr || link.ahead || link.next >= link.epoch_end ||
      link.next < link.rejoin) {
    return false;
  }
  try {
    if (equipment_.extractor->extract(run, 0, 1, ids_.data(), bcids_.data()) != 1) return false;
  } catch (...) {
    return false;  // the general way asks again and counts what it gets
  }
  if (ids_[0] != link.expected) return false;
  if (!window_.append_short(link.next, link.header | (sizeof(ChunkHeader) + run.size), run.data, run.size, bcids_[0]))
    return false;
  tracker_.note_low(link, 1);
  ++link.next;
  link.expected = tracker_.format().advance(link.expected, 1);
  link.history = link.history << 1 | 1;
  return true;
}

void GbtWorker::regular(TrackedLink& link, const ChunkRun& run, std::uint32_t first, std::uint32_t n,
                        const std::uint16_t* bcids) {
  Sequence sequence = link.next;
  window_.advance(sequence + n - 1);
  tracker_.note_low(link, n);
  link.next = sequence + n;
  link.expected = tracker_.format().advance(link.expected, n);
  link.history = n >= 64 ? ~std::uint64_t{0} : link.history << n | ((std::uint64_t{1} << n) - 1);
  if (link.ahead) set_ahead(link, false);
  if (sequence < std::max(window_.oldest(), link.rejoin)) {
    const Sequence bound = std::max(window_.oldest(), link.rejoin);
    const auto cut = static_cast<std::uint32_t>(std::min<Sequence>(n, bound - sequence));
    lose(link, sequence < link.rejoin ? LostCounter::link_removed : LostCounter::late, cut);
    sequence += cut;
    first += cut;
    bcids += cut;
    n -= cut;
    if (n == 0) return;
  }
  if (run.entries == nullptr && run.status == 0 && run.size < kShortChunk && !run.more_follows) {
    if (run.size != kernel_size_ || kernel_ == nullptr) {
      kernel_size_ = run.size;
      kernel_ = append_kernel(run.size, base::cpu_level());
    }
    const AppendRun job{.data = run.data + std::size_t{first} * run.stride,
                        .size = run.size,
                        .stride = run.stride,
                        .count = n,
                        .header = link.header | (sizeof(ChunkHeader) + run.size),
                        .bcids = bcids,
                        .first = sequence};
    const std::uint32_t appended = window_.append_run(job, run, first, kernel_);
    if (appended != n) lose(link, LostCounter::overflow, n - appended);
    return;
  }
  const Sequence after = link.next;
  for (std::uint32_t i = 0; i < n; ++i) {
    link.next = sequence + i;
    deliver(link, run.chunk(first + i), bcids[i], run.chunk_status(first + i), false);
  }
  link.next = after;
}

// Appends a chunk to the event link.next, which is open.
void GbtWorker::deliver(TrackedLink& link, std::span<const std::byte> chunk, std::uint16_t bcid, std::uint8_t felix_status,
                        bool corrupt, std::uint16_t flags) {
  std::uint8_t rodeo_status = corrupt ? chunk_flag::kCorrupt : 0;
  if (corrupt || (felix_status & ~chunk_status::kBusy) != 0) {
    flags |= slot_flag::kCorrupt;
    counters_.add(WorkerCounter::corrupt);
  }
  if (link.continuing) {
    rodeo_status |= chunk_flag::kTruncated;
    flags |= slot_flag::kTruncated;
    counters_.add(WorkerCounter::truncated);
  }
  if (!window_.append_one(link.next, link, chunk, felix_status, rodeo_status, bcid, flags))
    lose(link, LostCounter::overflow);
}

void GbtWorker::single(TrackedLink& link, const ChunkRun& run, std::uint32_t chunk, std::uint32_t id, std::uint16_t bcid,
                       bool corrupt, bool has_following, std::uint32_t following) {
  const std::size_t position = position_of(link);
  if (link.held_count != 0) settle_held(link, position, true, id);
  if (link.id_held) {
    link.id_held = false;
    if (!has_following && tracker_.confirms(link.held_id, id)) {
      has_following = true;
      following = tracker_.format().advance(id, 1);
    }
  }
  const bool expected = link.regular && id == link.expected && link.next < link.epoch_end;
  const TrackerDecision decision = expected ? TrackerDecision{TrackerVerdict::take, link.next, link.epoch}
                                            : decide(link, tracker_, id, has_following, following);
  if (decision.verdict == TrackerVerdict::hold) {
    hold(link, position, run.chunk(chunk), id, bcid, run.chunk_status(chunk), corrupt);
    return;
  }
  apply(link, tracker_, decision, run.chunk(chunk), id, bcid, run.chunk_status(chunk), corrupt);
}

void GbtWorker::apply(TrackedLink& link, const LinkTracker& tracker, const TrackerDecision& decision,
                      std::span<const std::byte> chunk, std::uint32_t id, std::uint16_t bcid, std::uint8_t felix_status,
                      bool corrupt) {
  const auto move_on = [&] {
    ++link.next;
    link.expected = tracker.format().advance(link.expected, 1);
    link.history <<= 1;
    link.regular = true;
  };
  const bool restart = untold_resets_ && untold_restart(link, id);
  if (restart) warn_of_restart();
  switch (decision.verdict) {
    case TrackerVerdict::duplicate: lose(link, LostCounter::duplicate); return;
    case TrackerVerdict::out_of_sequence:
      lose(link, LostCounter::out_of_sequence);
      if (decision.leads && !link.ahead) set_ahead(link, true);
      return;
    case TrackerVerdict::late:
      lose(link, LostCounter::late);
      if (!link.synchronised || decision.sequence >= link.next) {
        tracker.settle(link, decision);
        move_on();
      }
      return;
    case TrackerVerdict::hold: lose(link, LostCounter::out_of_sequence); return;
    case TrackerVerdict::take: break;
  }
  const bool moved = link.synchronised && decision.sequence != link.next;
  const bool crossed = link.synchronised && decision.epoch.resets != link.epoch.resets;
  if (link.ahead) set_ahead(link, false);
  window_.advance(decision.sequence);
  window_.skip(link, std::max(link.next, link.rejoin), decision.sequence);
  if (moved) counters_.add(WorkerCounter::resynchronised);
  const Sequence left_at = link.next;
  const Epoch left = link.epoch;
  const bool placed = !link.regular || crossed;
  tracker.settle(link, decision);
  tracker.note_low(link, 1);
  if (crossed && link.trigger_list) list_epochs_[list_epoch_count_++ % list_epochs_.size()] = decision.epoch.first;
  if (crossed) limit_epochs(left, decision.epoch, link.trigger_list ? left_at : decision.epoch.first);
  if (placed) {
    // It has just come in, come back or crossed: the epoch that it is in may have ended already.
    for (const auto& [resets, end] : ended_epochs_) {
      if (end != 0 && resets == link.epoch.resets) link.epoch_end = std::min(link.epoch_end, end);
    }
    if (const auto next = epochs_.after(link.epoch.resets)) link.epoch_end = std::min(link.epoch_end, next->first);
  }
  if (decision.sequence < link.rejoin) {
    lose(link, LostCounter::link_removed);
  } else if (decision.sequence < window_.oldest()) {
    lose(link, LostCounter::late);  // making room for it has closed it
  } else if (link.trigger_list) {
    window_.mark_triggered(link.next, tracker.format().has_ecr() ? L1Id{id} : link.epoch.l1id(link.next), bcid,
                           felix_status);
  } else {
    deliver(link, chunk, bcid, felix_status, corrupt, restart ? slot_flag::kDoubtfulId : std::uint16_t{0});
  }
  move_on();
  link.history |= 1;
}

void GbtWorker::hold(TrackedLink& link, std::size_t position, std::span<const std::byte> chunk, std::uint32_t id,
                     std::uint16_t bcid, std::uint8_t felix_status, bool corrupt) {
  if (chunk.size() > settings_.held_chunk_bytes) {
    // Too large to keep: it is lost, but its id speaks for that of the next.
    lose(link, LostCounter::out_of_sequence);
    link.held_id = id;
    link.id_held = true;
    return;
  }
  Held& held = held_[position];
  held = {static_cast<std::uint32_t>(chunk.size()), bcid, felix_status, corrupt};
  std::memcpy(held_bytes_.data() + position * settings_.held_chunk_bytes, chunk.data(), chunk.size());
  link.held_id = id;
  link.held_count = 1;
  link.regular = false;
}

void GbtWorker::settle_held(TrackedLink& link, std::size_t position, bool has_following, std::uint32_t following) {
  const Held& held = held_[position];
  link.held_count = 0;
  link.regular = link.synchronised;
  current_link_ = &link;
  const std::span<const std::byte> chunk{held_bytes_.data() + position * settings_.held_chunk_bytes, held.size};
  TrackerDecision decision = decide(link, tracker_, link.held_id, has_following, following);
  // The only chunk of a run that was over with it: nobody speaks against it.
  if (!has_following && decision.verdict == TrackerVerdict::hold && !window_.begun())
    decision = decide(link, tracker_, link.held_id, true, tracker_.format().advance(link.held_id, 1));
  apply(link, tracker_, decision, chunk, link.held_id, held.bcid, held.felix_status, held.corrupt);
}

void GbtWorker::lose(TrackedLink& link, LostCounter reason, std::uint64_t n) {
  if (link.trigger_list) return;  // its entries are no chunks
  lost_.add(reason, n);
  link_counters_[position_of(link)].bad.add(n);
}

// The list does not fill more than half of the window ahead of the data, nor run on over resets until nobody remembers the first.
bool GbtWorker::may_read_triggers() const {
  const TrackedLink& list = links_.back();
  if (!window_.begun() || !list.synchronised) return true;
  return list.next < window_.oldest() + settings_.window / 2 &&
         window_.oldest() >= list_epochs_[list_epoch_count_ % list_epochs_.size()];
}

// False if there is nothing to read, or no room.
bool GbtWorker::poll_triggers() {
  if (!list_.exists()) return false;
  TrackedLink& list = links_.back();
  bool any = false;
  while (may_read_triggers()) {
    const auto triggers = list_.read(TriggerListReader::kBatch);
    if (triggers.empty()) break;
    any = true;
    window_.set_clocks(event_clock_, base::steady_now_ns());
    for (std::size_t i = 0; i < triggers.size(); ++i) {
      const auto& [id, bcid, type] = triggers[i];
      const bool expected = list.regular && id == list.expected;
      const bool has_following = i + 1 < triggers.size();
      const TrackerDecision decision =
          expected ? TrackerDecision{TrackerVerdict::take, list.next, list.epoch}
                   : decide(list, trigger_tracker_, id, has_following, has_following ? triggers[i + 1].id : 0);
      if (decision.verdict == TrackerVerdict::hold) continue;
      apply(list, trigger_tracker_, decision, {}, id, bcid, type, false);
    }
    window_.publish_ready();
    window_.tell();
  }
  return any;
}

std::uint16_t GbtWorker::name(Sequence sequence, std::span<const std::byte> chunk, OpenEvent& event) {
  event.l1id = current_link_->epoch.l1id(sequence);
  event.trigger_type = 0;
  if (!has_trigger_type_) return 0;
  try {
    event.trigger_type = equipment_.extractor->trigger_type(chunk);
    return 0;
  } catch (...) {
    plugin_threw(equipment_.extractor_name, equipment_.links[position_of(*current_link_)], plugin_errors_);
    return slot_flag::kWorkFailed;
  }
}

}  // namespace rodeo::readout
