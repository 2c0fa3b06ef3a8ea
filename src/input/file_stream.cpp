#include "input/file_stream.h"

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/error.h"

namespace rodeo::input {
namespace {

constexpr std::size_t kBlocksPerPage = 64;
constexpr std::size_t kPages = 256;                                          // pages that point into the file
constexpr double kRecordedRate = 100e3;                                      // events per second of recording time
constexpr formats::DecodeBuffer::Capacity kPageRoom{1024, 1024, 64 * 1024};  // room in addition to one block's worst case
constexpr int kPagesWithoutChunks = 32;                                      // most pages that one poll() passes

// Bytes from run.data to the end of its last chunk.
std::size_t extent(const ChunkRun& run) {
  if (run.entries == nullptr) return std::size_t{run.count - 1} * run.stride + run.size;
  const ChunkEntry& last = run.entries[run.count - 1];
  return std::size_t{last.offset} + last.size;
}

}  // namespace

FileStream::FileStream(const Recording& recording, const Playback& playback, std::span<const std::uint16_t> elinks,
                       std::span<const std::uint32_t> link_ids, bool trigger_list)
    : recording_(recording),
      playback_(playback),
      decoder_({.format = recording.format(), .max_chunk_bytes = recording.max_chunk_bytes()}, elinks),
      link_ids_(link_ids.begin(), link_ids.end()),
      clock_ns_per_byte_(static_cast<double>(recording.events()) * 1e9 / std::max(playback.rate_hz, kRecordedRate) /
                         static_cast<double>(recording.blocks().size())),
      last_memory_(playback.loop ? std::make_unique_for_overwrite<std::byte[]>(decoder_.capacity_for(0).carry_bytes)
                                 : nullptr),
      last_page_(decoder_.capacity_for(0), *this, last_memory_.get()),
      followers_(elinks.size()),
      done_(elinks.size()),
      trigger_list_(trigger_list) {
  const auto room = decoder_.capacity_for(1) + kPageRoom;
  // The contents of a page's runs: the blocks, and chunks joined from several blocks.
  const std::size_t page_bytes = kBlocksPerPage * recording.format().block_bytes + room.carry_bytes;
  std::size_t pages = kPages;
  if (playback.loop) {
    pages = std::max<std::size_t>(4, playback.memory_bytes / page_bytes);
    auto memory = base::Arena::create(pages * page_bytes);
    if (!memory) {
      Error error = memory.error().within("memory of rewritten chunks");
      error.next = "make readout.input.memory smaller, or end other programs";
      throw SetupError(std::move(error));
    }
    memory_ = std::move(*memory);
  }
  for (std::size_t i = 0; i < pages; ++i) {
    free_.put(pages_.emplace_back(room, *this, playback.loop ? memory_.data() + i * page_bytes : nullptr));
  }
}

FileStream::FilePage::FilePage(formats::DecodeBuffer::Capacity capacity, FileStream& of, std::byte* copy_to)
    : decoded(capacity), copies(capacity.runs), memory(copy_to) {
  stream = &of;
}

void FileStream::release(Page& page) noexcept {
  if (&page == &last_page_) {
    last_page_free_.store(true, std::memory_order_release);
  } else {
    free_.give_back(static_cast<FilePage&>(page));
  }
}

// Bytes that may be played by now, over all passes. With a plan to stop, the rate does not limit them.
std::uint64_t FileStream::allowed_bytes(std::uint64_t now_ns, bool planned) const {
  if (planned) return playback_.plan.end_at;
  if (playback_.rate_hz <= 0) return Playback::kNoStop;
  const std::uint64_t start = playback_.start_ns.load(std::memory_order_relaxed);
  return static_cast<std::uint64_t>(static_cast<double>(now_ns - start) * playback_.rate_hz * 1e-9 /
                                    static_cast<double>(recording_.events()) *
                                    static_cast<double>(recording_.blocks().size()));
}

PollStatus FileStream::poll(Page*& out) {
  if (ended_) return PollStatus::end;
  // Read in this order: a stream that sees a plan but no start was stopped before its start, and ends at its place.
  const bool planned = playback_.planned.load(std::memory_order_acquire);
  const std::uint64_t start = playback_.start_ns.load(std::memory_order_acquire);
  if (start == 0 && !planned) return PollStatus::empty;
  const std::uint64_t now = playback_.rate_hz > 0 ? base::steady_now_ns() : 0;
  const std::uint64_t allowed = allowed_bytes(now, planned);
  FilePage* page = free_.acquire();
  if (page == nullptr) return PollStatus::full;
  PollStatus status = PollStatus::empty;
  for (int i = 0; i < kPagesWithoutChunks; ++i) {
    const bool stopped = planned && played_.get() >= playback_.plan.end_at;
    if (stopped && at_ != recording_.blocks().size()) {
      // Open chunks belong to events beyond the last.
      ended_ = true;
      status = PollStatus::end;
      break;
    }
    if (at_ == recording_.blocks().size()) {
      status = end_pass(stopped, out);
      if (status != PollStatus::empty || !pass_closed_) break;
      at_ = 0;
      pass_closed_ = false;
      ++pass_;
      std::fill(followers_.begin(), followers_.end(), RecordedIds::Follower{});
    }
    if (!decode_next(allowed, planned, *page)) break;
    quiet_until_ = clock_ns_;
    clock_ns_ = start + static_cast<std::uint64_t>(static_cast<double>(played_.get()) * clock_ns_per_byte_);
    const std::span<const ChunkRun> runs = planned ? up_to_last_event(*page) : page->decoded.runs();
    if (!runs.empty()) return deliver(*page, runs, out);
  }
  free_.put(*page);
  return status;
}

// `planned`: as when `allowed` was calculated. A newer plan is for the next call.
bool FileStream::decode_next(std::uint64_t allowed, bool planned, FilePage& page) {
  const std::span<const std::byte> blocks = recording_.blocks();
  const std::size_t block = recording_.format().block_bytes;
  const std::uint64_t due = allowed > played_.get() ? (allowed - played_.get()) / block * block : 0;
  const std::size_t bytes = std::min<std::uint64_t>({kBlocksPerPage * block, blocks.size() - at_, due});
  if (bytes == 0) return false;
  if (!planned) {
    // First claims, then checks: either stop() sees the claim, or this call sees where to hold.
    claimed_.store(played_.get() + bytes);
    if (played_.get() + bytes > playback_.hold_at.load()) {
      claimed_.store(played_.get());
      return false;
    }
  }
  page.decoded.clear();
  const std::size_t taken = decoder_.decode(blocks.subspan(at_, bytes), page.decoded);
  at_ += taken;
  played_.add(taken);
  return true;
}

// Delivers the chunks that are still open, marked as cut, or reports that the stream has ended. Empty: the next pass may
// begin, once pass_closed_ is set.
PollStatus FileStream::end_pass(bool stopped, Page*& out) {
  if (!pass_closed_) {
    if (!last_page_free_.load(std::memory_order_acquire)) return PollStatus::full;
    last_page_.decoded.clear();
    decoder_.finish(last_page_.decoded);
    pass_closed_ = true;
    if (!last_page_.decoded.runs().empty()) {
      last_page_free_.store(false, std::memory_order_relaxed);
      return deliver(last_page_, last_page_.decoded.runs(), out);
    }
  }
  ended_ = stopped || !playback_.loop;
  return ended_ ? PollStatus::end : PollStatus::empty;
}

// Cuts each link's runs after the last event of the plan.
std::span<const ChunkRun> FileStream::up_to_last_event(FilePage& page) {
  if (!playback_.plan.last_id || played_.get() <= playback_.plan.begin) return page.decoded.runs();
  std::size_t runs = 0;
  for (const ChunkRun& run : page.decoded.runs()) {
    ChunkRun left = run;
    left.count = 0;
    while (left.count < run.count && !done_[run.link]) {
      const auto id = recorded_id(recording_, trigger_list_, run.chunk(left.count));
      const auto distance = id ? recording_.ids().distance(*playback_.plan.last_id, *id) : std::nullopt;
      // An id that is far ahead has a flipped bit.
      done_[run.link] = distance && *distance > 0 && *distance <= std::int64_t{RecordedIds::kLargestStep};
      if (!done_[run.link]) ++left.count;
    }
    if (left.count == 0) continue;
    if (left.count < run.count) left.more_follows = false;
    page.copies[runs++] = left;
  }
  return {page.copies.data(), runs};
}

PollStatus FileStream::deliver(FilePage& page, std::span<const ChunkRun> runs, Page*& out) {
  page.runs = playback_.loop ? restamped(page, runs) : runs;
  delivered_.add(page.runs);
  page.references.store(1, std::memory_order_relaxed);
  out = &page;
  return PollStatus::page;
}

// Copies the runs, trailers between their chunks included, so that the places of chunks within a run stay as they are.
std::span<const ChunkRun> FileStream::restamped(FilePage& page, std::span<const ChunkRun> of) {
  std::byte* at = page.memory;
  std::size_t runs = 0;
  for (const ChunkRun run : of) {  // `of` may be the list that is written
    ChunkRun copy = run;
    const std::size_t bytes = extent(run);
    std::memcpy(at, run.data, bytes);
    copy.data = at;
    for (std::uint32_t i = 0; i < run.count; ++i) {
      const std::size_t offset = run.entries == nullptr ? std::size_t{i} * run.stride : run.entries[i].offset;
      restamp({at + offset, run.chunk(i).size()}, run.link);
    }
    at += bytes;
    page.copies[runs++] = copy;
  }
  return {page.copies.data(), runs};
}

void FileStream::restamp(std::span<std::byte> chunk, LinkIndex link) {
  const auto position = recording_.ids().position(followers_[link], chunk);
  if (!position) {
    not_restamped_.add(1);
    return;
  }
  const std::uint64_t sequence = pass_ * recording_.ids().span() + *position;
  const L1Id l1id = L1Id::of(static_cast<std::uint32_t>(sequence >> 24), static_cast<std::uint32_t>(sequence));
  if (playback_.restamp == nullptr) {
    playback_.provable.write(chunk, link_ids_[link], l1id);
  } else {
    const formats::ProvableTrigger trigger = playback_.provable.trigger(l1id);
    try {
      playback_.restamp(chunk, {.l1id = l1id.value, .bcid = trigger.bcid, .trigger_type = trigger.trigger_type});
    } catch (...) {  // the plug-in threw
      not_restamped_.add(1);
    }
  }
}

}  // namespace rodeo::input
