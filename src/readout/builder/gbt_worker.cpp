#include "readout/builder/gbt_worker.h"

#include <algorithm>
#include <bit>

#include "base/clock.h"
#include "base/log.h"
#include "formats/link_names.h"

namespace rodeo::readout {
namespace {

// Another thread or a card has written the input's memory, and inputs place their runs one after the other. So this
// prefetches memory a little way ahead, as much as the run covers. A prefetch beyond the page's end is harmless.
inline void prefetch_ahead(const ChunkRun& run) {
  constexpr std::size_t kAheadBytes = 4096;
  constexpr std::size_t kMostPrefetched = 2048;  // the hardware prefetches longer runs by itself
  const std::size_t extent = run.entries == nullptr ? std::size_t{run.count} * run.stride : 0;
  const std::byte* at = run.data + kAheadBytes;
  for (const std::byte* const end = at + std::min(extent, kMostPrefetched); at < end; at += base::kCacheLine)
    __builtin_prefetch(at);
}

constexpr std::uint32_t kStraysToWarn = 16;  // chunks out of sequence in a row until the log names the link

std::unique_ptr<GbtLink[]> make_links(std::span<const BuilderLink> links) {
  auto made = std::make_unique<GbtLink[]>(links.size());
  for (std::size_t i = 0; i < links.size(); ++i)
    made[i].header = std::bit_cast<std::uint64_t>(ChunkHeader{.link_id = links[i].link_id});
  return made;
}

}  // namespace

GbtWorker::GbtWorker(const Settings& settings, std::uint64_t window, std::span<const BuilderLink> links,
                     WorkerEquipment equipment, std::unique_ptr<SliceStore> store, RobSequence& rob, Assembler& assembler,
                     std::span<WorkerProgress> progress)
    : BuilderWorker(settings, links, std::move(equipment)),
      rob_(rob),
      assembler_(assembler),
      progress_(progress),
      links_(make_links(links)),
      window_({settings.index, window}, std::move(store), {links_.get(), links.size()},
              rob.sequencer.settings().listed ? &rob.sequencer.trigger_entries() : nullptr, assembler,
              progress[settings.index], held_, *this),
      balance_({rob.sequencer.settings().window / 2, settings.timeout_ns}, *equipment_.stream, {links_.get(), links.size()}),
      active_links_(static_cast<std::uint32_t>(links.size())) {
  first_reader_ = rob.first_readers.empty() ? 0 : rob.first_readers.back();
  for (std::size_t i = 0; i < links.size(); ++i) {
    const std::size_t source = balance_.several() ? equipment_.stream->source_of(static_cast<LinkIndex>(i)) : 0;
    members_.push_back(rob.sequencer.add(links_[i], 1, first_reader_ + source, settings_.index));
  }
  rob.sequencer.set_bcids(settings_.index, *this);
  if (rob.first_readers.empty()) rob.first_readers.push_back(0);
  rob.first_readers.push_back(first_reader_ + balance_.sources());
}

void GbtWorker::begin_thread() {
  window_.pool().own();
  assembler_.own(settings_.index);
}

// ---- pages

void GbtWorker::process_page(Page& page) {
  window_.set_clocks(event_clock_, page_time_ns_);
  if (!rob_.sequencer.settings().listed) report_page_begin();
  if (balance_.several() && !page.runs.empty() && !given_up_) {
    process_up_to_limit(balance_.source_of(page), {.page = &page}, false);
  } else {
    for (const ChunkRun& run : page.runs) {
      prefetch_ahead(run);
      process_run(run);
    }
    page.drop();
  }
  end_page();
}

void GbtWorker::end_page() {
  if (waiting_.total() != 0) rejudge_all();
  progress_[settings_.index].busy.store(true, std::memory_order_relaxed);
  window_.publish_closed();
  open_events_.set(window_.open_events());
}

// True if open events hold nearly all buffers: a source that reads ahead of the others would close the oldest event.
bool GbtWorker::short_of_buffers() const {
  return window_.store().open_buffers() > window_.pool().total() - window_.pool().total() / 8;
}

// Takes the rest of a page up to the limit of its source, and parks what remains.
bool GbtWorker::process_up_to_limit(std::uint32_t source, SourceBalance::Place at, bool forced) {
  bool any = false;
  balance_.begin_page(source);
  for (; at.run < at.page->runs.size(); ++at.run, at.chunk = 0) {
    const ChunkRun& run = at.page->runs[at.run];
    prefetch_ahead(run);
    while (at.chunk < run.count) {
      const std::uint32_t left = run.count - at.chunk;
      std::uint32_t n = balance_.allowance(source, links_[run.link], left, short_of_buffers());
      if (n == 0 && forced) n = std::min(left, kBatch);
      if (waiting_.total() != 0) n = sources_may_resolve(run.link) && !forced ? 0 : std::min(n, kBatch);
      if (n == 0) {
        balance_.park(source, at, event_clock_);
        set_waiting(Sequencer::kNothing);
        return any;
      }
      any = true;
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
  return true;
}

// Returns true if the worker could continue with a parked page.
bool GbtWorker::resume_parked() {
  if (!balance_.parked()) return false;
  for (std::uint32_t source = 0; source < balance_.sources(); ++source) {
    if (const ChunkRun* const run = balance_.parked_run(source))
      balance_.set_waits_for_others(source, sources_may_resolve(run->link));
  }
  const auto resumed = balance_.resume(event_clock_, short_of_buffers());
  if (!resumed) return false;
  set_waiting(Sequencer::kNothing);
  if (resumed->forced) {  // no other source has data that could decide
    const std::lock_guard lock(rob_.mutex);
    for (std::uint32_t source = 0; source < balance_.sources(); ++source) rob_.sequencer.set_drained(first_reader_ + source);
  }
  poll_list();
  page_time_ns_ = base::steady_now_ns();
  window_.set_clocks(event_clock_, page_time_ns_);
  const bool resumed_work = process_up_to_limit(resumed->source, resumed->place, resumed->forced);
  end_page();
  return resumed_work;
}

// Releases parked pages of the input; waiting chunks are copies, and stay.
void GbtWorker::release_all_pages() {
  while (const auto parked = balance_.resume_any()) {
    SourceBalance::Place at = parked->place;
    for (; at.run < at.page->runs.size(); ++at.run, at.chunk = 0) {
      ChunkRun rest = at.page->runs[at.run];
      rest.count -= at.chunk;
      if (rest.count != 0) process_run(rest);
    }
    at.page->drop();
  }
}

// ---- chunks

void GbtWorker::process_run(const ChunkRun& run) {
  GbtLink& link = links_[run.link];
  if (rob_.sequencer.version() != version_) rejudge_all();
  const std::uint64_t bytes = count_received(run);
  if (link.removed.load(std::memory_order_relaxed)) {
    count_lost(run.link, LostCounter::link_removed, run.count, bytes);
    return;
  }
  if (given_up_) [[unlikely]]
    return count_lost(run.link, LostCounter::given_up, run.count, bytes);
  link.seen.store(event_clock_, std::memory_order_relaxed);
  const Sequence before = link.position();
  link.begin_block(run.count);
  if (run.count == 1 && append_single_expected(link, run)) {
    link.end_block(before);
    window_.publish_ready();
    return;
  }
  for (std::uint32_t at = 0; at < run.count;) {
    const std::uint32_t n = std::min(kBatch, run.count - at);
    const auto [asked, got, good, lost] =
        extract_and_check(equipment_, run, at, n, ids_.data(), bcids_.data(), plugin_errors_);
    for (std::uint32_t i = 0; i < good;) {
      if (const std::uint32_t m = count_expected(link, i, good - i); m != 0) {
        append_expected(link, run, at + i, m, &bcids_[i]);
        i += m;
      } else {
        handle_single(link, run, at + i, i, false);
        ++i;
      }
    }
    at += good;
    if (good < got) {
      handle_single(link, run, at, good, true);
      ++at;
    } else if (got < asked) {
      count_lost(run.link, lost, 1, run.chunk(at).size());
      ++at;
    }
  }
  link.end_block(before);
  window_.publish_ready();
}

// The number of newly extracted ids that are the expected ones of the link, so that they need no decision.
std::uint32_t GbtWorker::count_expected(const GbtLink& link, std::uint32_t first, std::uint32_t n) const {
  const Sequence next = link.position();
  const Sequence end = std::min(link.end, window_.full());
  if (next >= end || link.has_lapsed(window_.oldest(), format_)) return 0;
  return format_.count_consecutive(&ids_[first], static_cast<std::uint32_t>(std::min<Sequence>(n, end - next)),
                                   link.expected);
}

// Handles a single chunk with the expected id: does all that the general way would do.
inline bool GbtWorker::append_single_expected(GbtLink& link, const ChunkRun& run) {
  const Sequence next = link.position();
  if (run.entries != nullptr || run.status != 0 || run.size < 16 || run.size >= kLongChunkBytes ||
      equipment_.checker != nullptr || next >= link.end || next < link.rejoin) {
    return false;
  }
  try {
    if (equipment_.extractor->extract(run, 0, 1, ids_.data(), bcids_.data()) != 1) return false;
  } catch (...) {
    return false;  // the general way calls the extractor again and counts the result
  }
  if (ids_[0] != link.expected) return false;
  if (!window_.append_short(next, formats::short_header(link.header, run.size), run.data, run.size, bcids_[0])) return false;
  link.advance(1, format_);
  counters_.add(WorkerCounter::taken_bytes, run.size);
  return true;
}

void GbtWorker::append_expected(GbtLink& link, const ChunkRun& run, std::uint32_t first, std::uint32_t n,
                                const std::uint16_t* bcids) {
  Sequence sequence = link.position();
  window_.advance(sequence + n - 1);
  link.advance(n, format_);
  if (const Sequence bound = std::max(window_.oldest(), link.rejoin); sequence < bound) {
    const auto cut = static_cast<std::uint32_t>(std::min<Sequence>(n, bound - sequence));
    count_lost(run.link, sequence < link.rejoin ? LostCounter::link_removed : LostCounter::late, cut,
               bytes_of(run, first, cut));
    sequence += cut;
    first += cut;
    bcids += cut;
    n -= cut;
    if (n == 0) return;
  }
  chunk_segment_ = {link.resets, link.rounds, link.base};
  if (run.entries == nullptr && run.status == 0 && run.size < kLongChunkBytes) {
    if (run.size != kernel_size_ || kernel_ == nullptr) {
      kernel_size_ = run.size;
      kernel_ = append_kernel(run.size, base::cpu_level());
    }
    const AppendRun job{.data = run.data + std::size_t{first} * run.stride,
                        .size = run.size,
                        .stride = run.stride,
                        .count = n,
                        .header = formats::short_header(link.header, run.size),
                        .bcids = bcids,
                        .first = sequence};
    const std::uint32_t appended = window_.append_run(job, run, first, kernel_);
    counters_.add(WorkerCounter::taken_bytes, std::uint64_t{appended} * run.size);
    if (appended != n) count_lost(run.link, LostCounter::overflow, n - appended, std::uint64_t{n - appended} * run.size);
    return;
  }
  for (std::uint32_t i = 0; i < n; ++i) {
    deliver(link, sequence + i, view_of(run, first + i, 0, bcids[i], 0), 0);
  }
}

// Handles a chunk that needs a decision, or whose event cannot be built the fast way. `at`: index of its extracted id.
void GbtWorker::handle_single(GbtLink& link, const ChunkRun& run, std::uint32_t chunk, std::uint32_t at, bool corrupt) {
  const ChunkView view = view_of(run, chunk, ids_[at], bcids_[at], corrupt ? chunk_flag::kCorrupt : std::uint8_t{0});
  wait_for_peers(run.link);
  add_waiting(view);
  {
    const std::lock_guard lock(rob_.mutex);
    rob_.sequencer.offer(members_[run.link], view.id, view.bcid, event_clock_, oldest(), decisions_);
  }
  apply_decisions(position_of(link));
}

// Carries out the decisions on a link's waiting chunks.
void GbtWorker::apply_decisions(std::size_t position) {
  GbtLink& link = links_[position];
  if (!window_.begun() && rob_.sequencer.begun()) begin_window();
  for (const Decision& decision : decisions_) {
    const ChunkView chunk = waiting_.pop(static_cast<LinkIndex>(position));
    const Sequence sequence = decision.sequence;
    if (decision.verdict != Verdict::accept) {
      if (!chunk.lost) count_lost(chunk, decision.verdict);
      if (decision.verdict == Verdict::out_of_sequence && ++link.strays == kStraysToWarn) warn_of_strays(position);
      continue;
    }
    link.strays = 0;
    const Sequence from = std::max({decision.from, link.rejoin, window_.oldest()});
    if (decision.from != sequence) {
      link.skipped = sequence - decision.from;
      if (decision.from != rob_.sequencer.run_first()) counters_.add(WorkerCounter::resynchronised);
    }
    window_.advance(sequence);
    if (from < sequence) window_.skip(from, sequence);
    if (chunk.lost) {
      if (sequence >= window_.oldest() && sequence >= link.rejoin) window_.skip(sequence, sequence + 1);
    } else if (sequence < link.rejoin) {
      count_lost(chunk, LostCounter::link_removed);
    } else if (sequence < window_.oldest()) {
      count_lost(chunk, LostCounter::late);  // the call that made room for the chunk has closed the event
    } else {
      chunk_segment_ = {decision.resets, decision.rounds, decision.base};
      if (decision.doubtful && !rob_.sequencer.settings().listed) {
        if (const auto turn = restarts_.turn())
          base::log_warning(
              "an L1 id of so few bits restarts near 0: an event counter reset cannot be told from a jump, and L1 ids may "
              "be wrong from here on; set readout.builder.trigger_list = true{}",
              turn.suffix());
      }
      if (decision.unproven) link_counters_[position].doubtful.add(1);
      const bool doubtful = decision.doubtful || decision.unproven;
      deliver(link, sequence, chunk, doubtful ? slot_flag::kDoubtfulId : std::uint16_t{0});
    }
  }
  decisions_.clear();
  on_place_change(position, rob_.sequencer.take_place_change(members_[position]));
  link.waiting = static_cast<std::uint32_t>(waiting_.size(static_cast<LinkIndex>(position)));
}

void GbtWorker::warn_of_strays(std::size_t position) {
  if (const auto turn = strays_.turn())
    base::log_warning(
        "link {} is in another place than all other links, and is not followed there; its chunks are out of sequence{}",
        formats::named_link(builder_links_[position].fid), turn.suffix());
}

// Appends a chunk to an event that is open.
void GbtWorker::deliver(GbtLink& link, Sequence sequence, const ChunkView& chunk, std::uint16_t flags) {
  std::uint8_t rodeo_status = chunk.rodeo_status;
  if (rodeo_status != 0 || (chunk.felix_status & ~chunk_status::kBusy) != 0) {
    flags |= slot_flag::kCorrupt;
    counters_.add(WorkerCounter::corrupt);
  }
  if (window_.append_one(sequence, link, chunk.bytes(), chunk.felix_status, rodeo_status, chunk.bcid, flags))
    counters_.add(WorkerCounter::taken_bytes, chunk.size);
  else
    count_lost(chunk, LostCounter::overflow);
}

// Called when segments have begun, the list has advanced, or time has passed: waiting chunks may be decidable now.
void GbtWorker::rejudge_all() {
  const std::uint64_t version = rob_.sequencer.version();
  const bool changed = version != version_;
  version_ = version;
  rejudged_at_ = event_clock_;
  for (std::size_t i = 0; i < builder_links_.size(); ++i) {
    if (links_[i].removed.load(std::memory_order_relaxed)) continue;
    if (!changed && waiting_.size(static_cast<LinkIndex>(i)) == 0) continue;
    {
      const std::lock_guard lock(rob_.mutex);
      rob_.sequencer.rejudge(members_[i], event_clock_, oldest(), decisions_);
    }
    apply_decisions(i);
  }
  window_.publish_ready();
}

// The BCID of an event by its own links or, while the event is open here, by those of peers.
std::optional<std::uint16_t> GbtWorker::bcid(Sequence number) const {
  const auto known = window_.bcid(number);
  return known || number < window_.oldest() ? known : assembler_.bcid_of_peers(settings_.index, number);
}

void GbtWorker::begin_window() {
  const Sequence first = rob_.sequencer.run_first();
  {
    const std::lock_guard lock(rob_.mutex);
    if (!rob_.assembling) assembler_.start(first);
    rob_.assembling = true;
  }
  window_.begin(first);
  balance_.begin(first);
}

void GbtWorker::on_cut(std::size_t bytes) {
  counters_.add(WorkerCounter::truncated);
  counters_.add(WorkerCounter::cut_bytes, bytes);
  static base::LogThrottle throttle;
  if (const auto turn = throttle.turn())
    base::log_warning(
        "a chunk is cut by {} bytes: its event's slice has no room. Set readout.builder.chunk_size to the size that links "
        "send, or raise max_extensions{}",
        bytes, turn.suffix());
}

std::uint16_t GbtWorker::fill_event(Sequence sequence, const GbtLink& link, std::span<const std::byte> chunk,
                                    OpenEvent& event) {
  const auto index = static_cast<std::int64_t>(sequence - chunk_segment_.base);
  event.l1id = format_.ids().l1id(chunk_segment_.resets, index);
  event.rounds = chunk_segment_.rounds + static_cast<std::uint32_t>(format_.ids().wraps(index));
  event.trigger_type = 0;
  if (!has_trigger_type_ || trigger_type(position_of(link), chunk, event.trigger_type)) return 0;
  return slot_flag::kWorkFailed;
}

// ---- the trigger's list

void GbtWorker::poll_list() {
  if (!rob_.sequencer.settings().listed) return;
  Sequence least = kNoEnd;
  for (const WorkerProgress& peer : progress_) least = std::min(least, peer.passed.load(std::memory_order_relaxed) + 1);
  const bool needed = waiting_.total() != 0 || window_.head() + 1 >= rob_.sequencer.trigger_entries().end() ||
                      !progress_[settings_.index].busy.load(std::memory_order_relaxed);
  if (rob_.poll_list(event_clock_, rob_.sequencer.begun() ? std::max(least, rob_.sequencer.run_first()) : 0, needed)) {
    window_.set_clocks(event_clock_, base::steady_now_ns());
    rejudge_all();
  }
}

// Opens events of the list that no link has reached, while all links were silent for the time-out; they are closed in their
// turn.
void GbtWorker::open_listed() {
  const Sequence end = rob_.sequencer.trigger_entries().end();
  const auto newest = list_ends_[(list_end_count_ + list_ends_.size() - 1) % list_ends_.size()];
  if (end != newest.second && event_clock_ >= newest.first + settings_.timeout_ns / list_ends_.size())
    list_ends_[list_end_count_++ % list_ends_.size()] = {event_clock_, end};
  Sequence overdue = 0;
  for (const auto& [at, listed] : list_ends_) {
    if (event_clock_ >= at + settings_.timeout_ns) overdue = std::max(overdue, listed);
  }
  if (overdue <= window_.head() + 1) return;
  report_drained();
  {
    const std::lock_guard lock(rob_.mutex);
    if (rob_.sequencer.any_live()) return;
  }
  window_.advance(std::min(overdue - 1, window_.full() - 1));
}

// ---- the clock

void GbtWorker::check_events(bool drained) {
  report_page_end();
  if (!drained) return;
  window_.set_clocks(event_clock_, base::steady_now_ns());
  for (std::uint32_t source = 0; source < balance_.sources(); ++source)
    rob_.sequencer.pace(first_reader_ + source).fade_skew();
  if (rob_.sequencer.any_link_held_up()) report_drained();
  if (rob_.sequencer.version() != version_ || event_clock_ >= rejudged_at_ + settings_.timeout_ns / 8) rejudge_all();
  follow_peers();
  if (balance_.several()) balance_.check_sources(event_clock_);
  if (window_.begun()) {
    if (rob_.sequencer.settings().listed) open_listed();
    Sequence reached = window_.head() + 1;
    {
      const std::lock_guard lock(rob_.mutex);
      reached = rob_.sequencer.second_front().value_or(reached);
    }
    window_.set_second_front(balance_.several() ? std::min(reached, balance_.reached_by_all()) : reached);
  }
  if (!balance_.parked()) {  // chunks that parked sources have not brought yet are not missing
    while (window_.overdue(settings_.timeout_ns)) window_.force_oldest(slot_flag::kTimedOut);
  }
  window_.publish_ready();
  end_page();
  progress_[settings_.index].busy.store(false, std::memory_order_relaxed);
}

// ---- links that come and go

void GbtWorker::set_removed(std::size_t position, bool removed) {
  GbtLink& link = links_[position];
  if (removed) {
    {
      const std::lock_guard lock(rob_.mutex);
      rob_.sequencer.remove(members_[position], decisions_);
    }
    apply_decisions(position);
    window_.remove_link(std::max(link.position(), link.rejoin));
    --active_links_;
  } else {
    // The link takes part in events that are not open yet.
    link.rejoin = window_.begun() ? window_.head() + 1 : 0;
    const std::lock_guard lock(rob_.mutex);
    rob_.sequencer.restore(members_[position], link.rejoin);
    ++active_links_;
  }
  window_.set_active_links(active_links_);
  window_.publish_ready();
  window_.publish_closed();
}

FragmentBuilder::Link GbtWorker::link_status(std::size_t position) const {
  FragmentBuilder::Link status = BuilderWorker::link_status(position);
  const std::size_t link = assembler_.first_link(settings_.index) + position;
  status.missing = assembler_.missing(link);
  status.left_out = assembler_.left_out(link);
  return status;
}

double GbtWorker::pool_fill() const {
  return static_cast<double>(window_.pool().in_use()) / static_cast<double>(window_.pool().total());
}

}  // namespace rodeo::readout
