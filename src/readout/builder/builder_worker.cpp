#include "readout/builder/builder_worker.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/clock.h"
#include "base/pin.h"
#include "formats/link_names.h"

namespace rodeo::readout {

BuilderWorker::BuilderWorker(Settings settings, std::span<const BuilderLink> links, WorkerEquipment equipment)
    : settings_(std::move(settings)),
      builder_links_(links.begin(), links.end()),
      equipment_(std::move(equipment)),
      format_(equipment_.extractor->fields()),
      has_trigger_type_(equipment_.extractor->fields().has_trigger_type),
      link_counters_(std::make_unique<LinkCounters[]>(links.size())),
      waiting_(links.size(), settings_.waiting_chunks, settings_.waiting_bytes) {
  commands_.reserve(links.size());
  decisions_.reserve(settings_.waiting_chunks + 1);
}

void BuilderWorker::run() {
  base::set_thread_name(settings_.thread_name);
  base::pin_thread_or_warn(settings_.cpu, settings_.thread_name);
  cpu_.attach();
  begin_thread();
  base::Backoff backoff(settings_.idle);
  base::Backoff patience;
  input_clock_ = equipment_.stream->clock_ns();
  for (;;) {
    if (has_commands_.load(std::memory_order_relaxed)) apply_commands();
    if (gives_up()) [[unlikely]] {
      discard_input();
      break;
    }
    if (holds_back()) {
      set_waits_for(WaitsFor::peers);
      patience.idle();
      continue;
    }
    patience.reset();
    const Flow flow = poll_data();
    if (flow == Flow::ended) break;
    tick(flow);
    if (flow == Flow::more) {
      set_waits_for(WaitsFor::nothing);
      backoff.reset();
    } else {
      set_waits_for(flow == Flow::full ? WaitsFor::pages : WaitsFor::data);
      backoff.idle();
    }
  }
  set_waits_for(WaitsFor::nothing);
  for (ReaderTrack* const own : own_tracks_) own->end();
  finish();
  set_waits_for(WaitsFor::nothing);
  open_events_.set(0);
  cpu_.detach();
}

BuilderWorker::Flow BuilderWorker::poll_data() {
  const bool resumed_work = resume_parked();
  Page* page = nullptr;
  const PollStatus status = equipment_.stream->poll(page);
  if (status == PollStatus::end) return Flow::ended;
  poll_list();
  if (status == PollStatus::full && release_pages()) return Flow::more;
  if (status != PollStatus::page) return resumed_work ? Flow::more : status == PollStatus::full ? Flow::full : Flow::drained;
  page_time_ns_ = base::steady_now_ns();
  process_page(*page);
  return Flow::more;
}

// The event clock moves only while the input is drained. It follows the input's own time, and never leaps: after a stop of
// the machine, events must not be overdue at once. All time since the last look counts, even if pages arrived in between: if
// data arrive in a steady rhythm, two looks in a row never find the input empty.
void BuilderWorker::tick(Flow flow) {
  const bool drained = flow != Flow::more;
  drained_ = flow == Flow::drained;
  if (drained) {
    const std::uint64_t passed = std::max(input_time(), flow == Flow::full ? time_while_full() : 0);
    event_clock_ += std::min(passed, std::max<std::uint64_t>(settings_.timeout_ns / 4, 100'000));
  }
  if (flow != Flow::full) full_at_ns_ = 0;
  check_events(drained);
}

std::uint64_t BuilderWorker::input_time() {
  const std::uint64_t now = equipment_.stream->clock_ns();
  const std::uint64_t passed = now > input_clock_ ? now - input_clock_ : 0;
  input_clock_ = now;
  return passed;
}

// The clock of a full input stands still, because no data can arrive. If waiting chunks fill the input, only time can decide
// on them, so the process's own time counts.
std::uint64_t BuilderWorker::time_while_full() {
  if (!keeps_input()) {
    full_at_ns_ = 0;
    return 0;
  }
  const std::uint64_t now = base::steady_now_ns();
  const std::uint64_t before = std::exchange(full_at_ns_, now);
  return before == 0 ? 0 : now - before;
}

// Counts the remaining data until the stream ends, so that the sums are right. An input that brings nothing for a second has
// no more data. Then the arrived parts of open chunks are counted, too.
void BuilderWorker::discard_input() {
  constexpr std::uint64_t kPatienceNs = 1'000'000'000;
  given_up_ = true;
  release_all_pages();
  base::Backoff backoff;
  std::uint64_t page_ns = base::steady_now_ns();
  for (;;) {
    Page* page = nullptr;
    const PollStatus status = equipment_.stream->poll(page);
    if (status == PollStatus::end) return;
    if (status == PollStatus::page) {
      process_page(*page);
      page_ns = base::steady_now_ns();
      backoff.reset();
    } else if (base::steady_now_ns() - page_ns >= kPatienceNs) {
      if (equipment_.joined == nullptr || !equipment_.joined->give_up()) return;
      page_ns = base::steady_now_ns();
    } else {
      backoff.idle();
    }
  }
}

FragmentBuilder::Worker BuilderWorker::worker_status() const {
  const WaitsFor what = waits_for_.load(std::memory_order_relaxed);
  const bool of_consumers = held() && what != WaitsFor::peers;
  FragmentBuilder::Worker out{.name = settings_.thread_name, .waits_for = of_consumers ? "consumers" : text_of(what)};
  for (std::size_t link = 0; link < builder_links_.size(); ++link)
    out.progress += link_counters_[link].chunks.get() + link_counters_[link].bad.get() + link_counters_[link].missing.get();
  return out;
}

std::uint64_t BuilderWorker::count_received(const ChunkRun& run) {
  const std::uint64_t bytes = bytes_of(run, 0, run.count);
  link_counters_[run.link].chunks.add(run.count);
  counters_.add(WorkerCounter::received_bytes, bytes);
  return bytes;
}

ChunkBytes BuilderWorker::chunk_bytes() const {
  const std::uint64_t beyond = equipment_.joined == nullptr ? 0 : equipment_.joined->counts().cut_bytes.get();
  const std::uint64_t cut = counters_.read(WorkerCounter::cut_bytes);
  ChunkBytes bytes{.built = counters_.read(WorkerCounter::taken_bytes) - cut};
  for (std::size_t i = 0; i < LostCounters::kCount; ++i)
    bytes.lost.push_back({std::string(kLostInfo[i].name), lost_bytes_.read(static_cast<LostCounter>(i))});
  bytes.lost.push_back({"cut", cut + beyond});
  bytes.received = counters_.read(WorkerCounter::received_bytes) + beyond;
  return bytes;
}

void BuilderWorker::count_lost(std::size_t link, LostCounter reason, std::uint64_t chunks, std::uint64_t bytes) {
  lost_.add(reason, chunks);
  lost_bytes_.add(reason, bytes);
  link_counters_[link].bad.add(chunks);
}

void BuilderWorker::count_lost(const ChunkView& chunk, Verdict verdict) {
  if (given_up_ && verdict == Verdict::out_of_sequence) return count_lost(chunk, LostCounter::given_up);
  switch (verdict) {
    case Verdict::accept:
    case Verdict::late: return count_lost(chunk, LostCounter::late);
    case Verdict::duplicate: return count_lost(chunk, LostCounter::duplicate);
    case Verdict::out_of_sequence: return count_lost(chunk, LostCounter::out_of_sequence);
    case Verdict::not_listed: return count_lost(chunk, LostCounter::not_listed);
  }
}

void BuilderWorker::on_place_change(std::size_t link, const PlaceChange& change) {
  const auto name = [&] { return formats::named_link(builder_links_[link].fid); };
  LinkCounters& counters = link_counters_[link];
  counters.out_of_step.set(change.is_out_of_step);
  if (change.lost) {
    if (const auto turn = place_log_.turn())
      base::log_warning(
          "link {} was silent for so long that its L1 ids may be of another round: its chunks are flagged (doubtful_id) "
          "until "
          "their place is proven{}",
          name(), turn.suffix());
  }
  if (change.moved != 0) {
    counters_.add(WorkerCounter::moved);
    counters.moved.add(1);
    if (const auto turn = place_log_.turn())
      base::log_warning("link {} is moved by {} events: {} say that it is there{}", name(), change.moved,
                        change.by_bcid ? "the BCIDs of its chunks" : "the other links", turn.suffix());
  }
  if (change.out_of_step) {
    counters.bcid_offset.set(change.constant.value_or(0));
    const std::string offset =
        change.constant ? fmt::format("; they are too large by {} (modulo 3564)", *change.constant) : std::string();
    if (const auto turn = place_log_.turn())
      base::log_warning("link {} is out of step: the BCIDs of its chunks agree with no event where it can be{}{}", name(),
                        offset, turn.suffix());
  }
}

ReaderTrack& BuilderWorker::add_track(ReaderTracks& tracks, std::uint64_t spacing) {
  tracks_ = &tracks;
  return *own_tracks_.emplace_back(&tracks.add(spacing));
}

void BuilderWorker::wait_for_others() {
  constexpr std::uint64_t kPatienceNs = 200'000'000;
  // Two readers cannot wait for each other, because one of them has reached this clock.
  const std::uint64_t clock = *quiet_until();
  base::Backoff backoff;
  set_waits_for(WaitsFor::peers);
  std::uint64_t clocks = tracks_->sum_of_clocks();
  std::uint64_t since = base::steady_now_ns();
  while (!tracks_->all_read_to(clock) && !gives_up() && base::steady_now_ns() - since < kPatienceNs) {
    backoff.idle();
    if (std::exchange(clocks, tracks_->sum_of_clocks()) == clocks) continue;
    since = base::steady_now_ns();
  }
  set_waits_for(WaitsFor::nothing);
}

bool BuilderWorker::trigger_type(std::size_t link, std::span<const std::byte> chunk, std::uint8_t& type) {
  try {
    type = equipment_.extractor->trigger_type(chunk);
    return true;
  } catch (...) {
    plugin_threw(equipment_.extractor_name, equipment_.links[link], plugin_errors_);
    return false;
  }
}

void BuilderWorker::add_waiting(const ChunkView& chunk) {
  if (!waiting_.push(chunk)) count_lost(chunk, LostCounter::out_of_sequence);
}

void BuilderWorker::command(std::size_t link, LinkState state) {
  const std::lock_guard lock(command_mutex_);
  commands_.emplace_back(link, state);
  has_commands_.store(true, std::memory_order_release);
}

void BuilderWorker::apply_commands() {
  const std::lock_guard lock(command_mutex_);
  has_commands_.store(false, std::memory_order_relaxed);
  for (const auto& [link, state] : commands_) {
    const bool removed = state == LinkState::removed;
    if (link_counters_[link].removed.get() == removed) continue;
    set_removed(link, removed);
    link_counters_[link].removed.set(removed);
    counters_.add(removed ? WorkerCounter::removed : WorkerCounter::restored);
  }
  commands_.clear();
}

KnownPlace BuilderWorker::link_place(std::size_t link) const {
  const LinkCounters& counters = link_counters_[link];
  KnownPlace place{
      .in_doubt = counters.doubtful.get(), .moved = counters.moved.get(), .out_of_step = counters.out_of_step.get()};
  if (const std::uint16_t offset = counters.bcid_offset.get(); place.out_of_step && offset != 0) place.bcid_offset = offset;
  return place;
}

FragmentBuilder::Link BuilderWorker::link_status(std::size_t link) const {
  const LinkCounters& counters = link_counters_[link];
  return {.fid = builder_links_[link].fid,
          .state = counters.removed.get() ? LinkState::removed : LinkState::active,
          .chunks = counters.chunks.get(),
          .missing = counters.missing.get(),
          .left_out = counters.left_out.get(),
          .bad = counters.bad.get()};
}

}  // namespace rodeo::readout
