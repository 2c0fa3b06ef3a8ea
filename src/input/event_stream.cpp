#include "input/event_stream.h"

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/error.h"
#include "formats/rob.h"
#include "formats/rod_data.h"
#include "formats/ttc_packet.h"

namespace rodeo::input {

using namespace formats;

namespace {

constexpr std::size_t kEventsPerPage = 64;
constexpr std::size_t kPageBytes = 1 << 20;
constexpr std::size_t kFewestPages = 4;
constexpr std::uint64_t kFastEventNs = 10'000;  // 100 kHz
// After a stop, streams play this many blocks more: among them are the other ROBs of the last event that any stream has
// begun.
constexpr std::uint64_t kBlocksOfLastEvent = 256;
constexpr std::size_t kAlign = 8;

std::size_t aligned(std::size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

}  // namespace

EventStream::EventStream(const PlayedFiles& files, const EventPlayback& playback, std::span<const PlayedLink> links)
    : files_(files),
      playback_(playback),
      links_(links.begin(), links.end()),
      trigger_list_(links.empty()),
      // No chunk takes more than its record.
      page_bytes_(std::max(kPageBytes, aligned(files.largest_event()))),
      buffers_(2 * kEventsPerPage),
      of_link_(links.size() + 1) {
  for (std::size_t i = 0; i < links_.size(); ++i)
    indices_[links_[i].rob].emplace(links_[i].link_id, static_cast<LinkIndex>(i));
  const std::size_t pages = std::max<std::size_t>(kFewestPages, playback.memory_bytes / page_bytes_);
  auto memory = base::Arena::create(pages * page_bytes_);
  if (!memory) {
    Error error = memory.error().within("memory for the chunks of events");
    error.next = "make readout.input.memory smaller, or end other programs";
    throw SetupError(std::move(error));
  }
  memory_ = std::move(*memory);
  for (std::size_t i = 0; i < pages; ++i) {
    EventPage& page = pages_.emplace_back();
    page.stream = this;
    page.memory = memory_.data() + i * page_bytes_;
    free_.put(page);
  }
}

// Reads the header of the next event, if that was not done; false: there is no next event.
bool EventStream::read_next_header() {
  while (!next_) {
    if (!reader_ && !begin_pass()) return false;
    const auto block = reader_->next();
    if (!block || !*block) {
      reader_.reset();
      ++file_;
      continue;
    }
    if (buffers_used_ == buffers_.size()) buffers_.emplace_back();
    const auto event = decode_full_event(reader_->event(**block, buffers_[buffers_used_]));
    if (!event) continue;  // this block was counted when the file was looked through
    const std::uint64_t time = std::uint64_t{event->bc_time_s} * 1'000'000'000U + event->bc_time_ns;
    const std::uint64_t since = time > files_.first_ns() ? time - files_.first_ns() : 0;
    const std::int64_t sequence = static_cast<std::int64_t>(pass_ * files_.span()) + (numbers_.of(*event) - files_.lowest());
    next_ = Next{.event = *event,
                 .buffer = buffers_used_,
                 .sequence = sequence,
                 .due_ns = playback_.due_ns(events_.get(), pass_ * files_.duration_ns() + since)};
  }
  return true;
}

bool EventStream::begin_pass() {
  if (file_ == files_.files().size()) {
    if (!playback_.loop || pass_ + 1 == playback_.passes) return false;
    file_ = 0;
    ++pass_;
    numbers_.forget();
  }
  reader_ = *storage::EventFileReader::open(files_.files()[file_].mapped.bytes());
  numbers_.begin(*reader_);
  return true;
}

// True if the next event is due, and comes before the end that a stop has set.
bool EventStream::may_take(std::uint64_t now_ns) {
  const std::uint64_t number = played_.get();
  if (playback_.planned.load(std::memory_order_acquire)) return true;
  if (now_ns < playback_.start_ns.load(std::memory_order_relaxed) + next_->due_ns) return false;
  // First claims, then checks: either stop() sees the claim, or this call sees where to hold.
  const std::int64_t before = highest_.load();
  highest_.store(std::max(before, next_->sequence));
  claimed_.store(number + 1);
  if (number + 1 <= playback_.hold_at.load()) return true;
  claimed_.store(number);
  highest_.store(before);
  return false;
}

// Finds the chunks of the next event that belong to this stream.
void EventStream::append_event(std::size_t& bytes) {
  const Next next = *next_;
  next_.reset();
  const bool compressed = next.event.compression != Compression::none;
  if (!next.event.words.empty()) buffers_used_ = std::max(buffers_used_, next.buffer + 1);
  played_.add(1);
  // Fragments of several ROBs are blocks of one event.
  const bool is_new = next.sequence > last_sequence_;
  last_sequence_ = std::max(last_sequence_, next.sequence);
  events_.add(is_new ? 1 : 0);
  taken_due_ns_ = playback_.timing == EventTiming::fast ? events_.get() * kFastEventNs : next.due_ns;
  const bool beyond = playback_.planned.load(std::memory_order_acquire) && next.sequence > playback_.last.load();
  if (beyond) return;
  if (trigger_list_) {
    if (is_new) found_.push_back({next.event.words.bytes(), next.sequence, 0, 0});
    bytes += aligned(TtcPacket::kTaggedBytes);
    return;
  }
  if (compressed && buffers_used_ == buffers_.size()) buffers_.emplace_back();
  const auto robs = next.event.robs(buffers_[compressed ? buffers_used_++ : 0]);
  if (!robs) return;
  (void)for_each_rob(*robs, [&](const RobView& rob, std::size_t) {
    const auto of_rob = indices_.find(rob.source_id);
    if (of_rob == indices_.end()) return;
    const auto rod = rob.rod();
    if (!rod) return;
    (void)for_each_chunk_record(rod->data.bytes(), [&](const ChunkRecord& record) {
      const auto link = of_rob->second.find(record.header.link_id);
      if (link == of_rob->second.end()) return;
      found_.push_back({record.bytes, next.sequence, link->second, record.header.felix_status});
      bytes += aligned(record.bytes.size());
    });
  });
}

PollStatus EventStream::poll(Page*& out) {
  if (ended_) return PollStatus::end;
  const bool planned = playback_.planned.load(std::memory_order_acquire);
  const std::uint64_t start = playback_.start_ns.load(std::memory_order_acquire);
  if (start == 0 && !planned) return PollStatus::empty;
  EventPage* const page = free_.acquire();
  if (page == nullptr) return PollStatus::full;
  const std::uint64_t now = base::steady_now_ns();
  found_.clear();
  std::size_t bytes = 0;
  bool waits = false;
  // The buffer of the next event, which is decompressed already, becomes the first buffer.
  if (next_ && next_->buffer != 0) std::swap(buffers_[0], buffers_[next_->buffer]);
  if (next_) next_->buffer = 0;
  buffers_used_ = 0;
  for (std::size_t i = 0; i < kEventsPerPage; ++i) {
    const std::uint64_t hold = playback_.hold_at.load();
    if (planned && hold != EventPlayback::kNoStop && played_.get() >= hold + kBlocksOfLastEvent) {
      ended_ = true;
      break;
    }
    if (!read_next_header()) {
      ended_ = true;
      break;
    }
    if (bytes > 0 && bytes + files_.largest_event() > page_bytes_) break;
    if (!may_take(now)) {
      waits = true;
      break;
    }
    append_event(bytes);
  }
  const std::uint64_t reached = start + taken_due_ns_;
  clock_ns_ = std::max(clock_ns_, waits && playback_.timing != EventTiming::fast ? std::max(now, reached) : reached);
  if (found_.empty()) {
    free_.put(*page);
    return ended_ ? PollStatus::end : PollStatus::empty;
  }
  if (trigger_list_) {
    fill_list(*page);
  } else {
    fill(*page);
  }
  delivered_.add(page->runs);
  page->references.store(1, std::memory_order_relaxed);
  out = page;
  return PollStatus::page;
}

// Sorts the found chunks by link, in the order of events, and copies them: a run for each link.
void EventStream::fill(EventPage& page) {
  std::ranges::fill(of_link_, 0U);
  for (const Found& one : found_) ++of_link_[one.link + 1U];
  for (std::size_t i = 1; i < of_link_.size(); ++i) of_link_[i] += of_link_[i - 1];
  order_.resize(found_.size());
  for (std::uint32_t i = 0; i < found_.size(); ++i) order_[of_link_[found_[i].link]++] = i;
  page.run_storage.clear();
  page.entries.resize(found_.size());
  std::byte* at = page.memory;
  for (std::size_t i = 0; i < order_.size();) {
    const LinkIndex link = found_[order_[i]].link;
    const std::byte* const data = at;
    const std::size_t first = i;
    for (; i < order_.size() && found_[order_[i]].link == link; ++i) {
      const Found& one = found_[order_[i]];
      if (!one.bytes.empty()) std::memcpy(at, one.bytes.data(), one.bytes.size());
      if (playback_.loop) restamp({at, one.bytes.size()}, one);
      page.entries[i] = {static_cast<std::uint32_t>(at - data), static_cast<std::uint32_t>(one.bytes.size()), one.status};
      at += aligned(one.bytes.size());
    }
    page.run_storage.push_back(
        {.data = data, .entries = &page.entries[first], .count = static_cast<std::uint32_t>(i - first), .link = link});
  }
  page.runs = page.run_storage;
}

// Makes one packet for each event.
void EventStream::fill_list(EventPage& page) {
  page.run_storage.clear();
  page.entries.resize(found_.size());
  std::byte* at = page.memory;
  for (std::size_t i = 0; i < found_.size(); ++i) {
    const FullEventView event = *decode_full_event(found_[i].bytes);
    TtcPacket packet;
    packet.l1id = event.l1id;
    packet.bcid = static_cast<std::uint16_t>(event.bcid);
    packet.trigger_type = static_cast<std::uint16_t>(event.trigger_type);
    packet.l0id = static_cast<std::uint32_t>(found_[i].sequence);
    packet.l1a_counter = static_cast<std::uint64_t>(found_[i].sequence + 1) & 0xffff'ffff'ffffU;
    const std::size_t size = packet.write({at, TtcPacket::kTaggedBytes});
    page.entries[i] = {static_cast<std::uint32_t>(at - page.memory), static_cast<std::uint32_t>(size), chunk_status::kOk};
    at += aligned(size);
  }
  page.run_storage.push_back(
      {.data = page.memory, .entries = page.entries.data(), .count = static_cast<std::uint32_t>(found_.size()), .link = 0});
  page.runs = page.run_storage;
}

void EventStream::restamp(std::span<std::byte> chunk, const Found& found) {
  const auto sequence = static_cast<std::uint64_t>(found.sequence);
  const L1Id l1id = L1Id::of(static_cast<std::uint32_t>(sequence >> 24), static_cast<std::uint32_t>(sequence));
  if (playback_.restamp == nullptr) {
    playback_.provable.write(chunk, links_[found.link].link_id, l1id);
    return;
  }
  const ProvableTrigger trigger = playback_.provable.trigger(l1id);
  try {
    playback_.restamp(chunk, {.l1id = l1id.value, .bcid = trigger.bcid, .trigger_type = trigger.trigger_type});
  } catch (...) {  // the plug-in threw
    not_restamped_.add(1);
  }
}

}  // namespace rodeo::input
