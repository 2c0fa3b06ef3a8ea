// The turns of an emulated CRU: triggers make heartbeat frames due, and links write them as pages into superpages.
#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "emulator/copies_done.h"
#include "emulator/cru_card.h"
#include "formats/rdh.h"

namespace rodeo::emulator {
namespace {

constexpr std::size_t kLinkBudget = 512 << 10;  // bytes that one link may write in a turn
// A run that is switched off ends after this time without a written page; only the process's own running time counts.
constexpr std::uint64_t kLongestStandstillNs = 500'000'000;

}  // namespace

/// True if the link is enabled, for data of links only: the internal generator ignores it.
bool CruCard::link_enabled(unsigned number) const {
  return (data_taking_ || taking_.any()) && (enabled_ >> number & 1U) != 0;
}

bool CruCard::link_fed(unsigned number) const {
  const std::uint32_t generator = generator_;
  return (generator >> 31 & 1U) != 0 ? (generator & 2U) != 0 : links_[number].up;
}

bool CruCard::link_active(unsigned number) const {
  return dma_on_ && (internal_ || (link_enabled(number) && link_fed(number)));
}

bool CruCard::frames_due(const Link& link) const {
  return !settings_.paced || link.source.in_frame() || link.source.frame() < frames_due_;
}

bool CruCard::frames_left() const {
  for (unsigned number = 0; number < kLinks; ++number) {
    const RdhSource& source = links_[number].source;
    if (link_active(number) && (source.in_frame() || source.frame() < frames_due_)) return true;
  }
  return false;
}

/// A run that is switched off ends after all accepted triggers: other cards have these, too.
void CruCard::accept_frames() {
  const bool taking = data_taking_ && !internal_;
  if (taking) standstill_.restart();
  const bool held = taking_.follow(taking ? TriggerTaking::Wanted::data : TriggerTaking::Wanted::pause);
  ranges_.clear();
  const std::uint64_t count = triggers_->take(1024, ranges_);
  if (taking_.state() == TriggerTaking::State::last &&
      ((held && count == 0 && !frames_left()) || standstill_.ns() > kLongestStandstillNs)) {
    taking_.end();
    cut_off_due();
  }
  for (const trigger::TriggerRange& range : ranges_) {
    if (range.sequence != frames_due_) jump(range.sequence);
    frames_due_ += range.count;
  }
  if (settings_.drop) triggers_->done(count);
}

/// Handles a gap: the next trigger does not follow the last one, because only other cards had the triggers between. Due
/// frames that are not begun are cut off.
void CruCard::jump(std::uint64_t sequence) {
  if (frames_due_ == 0) first_frame_ = sequence;
  const std::uint64_t pending = frames_due_ - frames_done_;
  cut_off_due();
  if (!settings_.drop && pending > 0) triggers_->done(pending);
  first_due_ = frames_due_ = frames_done_ = newest_frame_ = sequence;
}

/// Moves a link over a gap. An open frame ends first.
void CruCard::catch_up(Link& link) const {
  const std::uint64_t frame = link.source.frame();
  if (!link.source.in_frame() && (frame < first_due_ || frame > frames_due_)) link.source.skip_to(first_due_);
}

void CruCard::drop_frames(Link& link) {
  if (!settings_.drop || link.source.in_frame() || frames_due_ - link.source.frame() <= settings_.fifo_triggers) return;
  const std::uint64_t first_kept = frames_due_ - settings_.fifo_triggers;
  const std::uint64_t frames = first_kept - link.source.frame();
  const std::uint64_t pages = (settings_.rdh.frame_bytes + settings_.rdh.page_bytes - formats::kRdhBytes - 1) /
                                  (settings_.rdh.page_bytes - formats::kRdhBytes) +
                              1;
  link.dropped_frames += frames;
  dropped_frames_ += frames;
  dropped_pages_.fetch_add(frames * pages, std::memory_order_relaxed);
  link.source.skip_to(first_kept);
}

/// A link without data skips the frames that are due.
void CruCard::skip_frames(unsigned number) {
  Link& link = links_[number];
  if (link.source.in_frame() || link.source.frame() >= frames_due_) return;
  if (!internal_ && link_enabled(number) && !link_fed(number)) frames_link_down_ += frames_due_ - link.source.frame();
  link.source.skip_to(frames_due_);
}

/// Cuts off due frames that are not begun: they will not be written. A link that is not in the run has no due frames.
void CruCard::cut_off_due() {
  for (unsigned number = 0; number < kLinks; ++number) {
    const RdhSource& source = links_[number].source;
    const std::uint64_t next = source.frame() + (source.in_frame() ? 1 : 0);
    const bool takes_part = settings_.paced && !internal_ && (enabled_ >> number & 1U) != 0;
    if (takes_part && frames_due_ > next) frames_cut_off_ += frames_due_ - next;
  }
  frames_due_ = frames_done_ = 0;
}

/// Cuts off all frames, also those in progress. Call with mutex() held.
void CruCard::cut_off_frames() {
  cut_off_due();
  for (Link& link : links_) link.books.cut_off();
}

/// Writes the internal generator's pattern, within one map. Returns the number of bytes.
std::size_t CruCard::write_pattern(Link& link, DmaMaps::Use& use, std::size_t budget) {
  constexpr std::size_t kPiece = 32;
  const std::uint32_t room = link.superpage.bytes - link.filled;
  const std::uint64_t address = link.superpage.address + link.filled;
  const auto memory = use.find(link.superpage.client, address, std::min<std::uint64_t>(room, budget));
  if (memory.empty()) {
    dma_faults_.fetch_add(1, std::memory_order_relaxed);
    return room;
  }
  if (const std::size_t bytes = memory.size() & ~(kPiece - 1); bytes > 0) {
    link.source.write_pattern(memory.data(), bytes);
    return bytes;
  }
  DmaWriter(use, link.superpage.client, bounce_, dma_faults_).write(address, kPiece, kPiece, [&](std::byte* piece) {
    link.source.write_pattern(piece, kPiece);
  });
  return kPiece;
}

bool CruCard::fill(unsigned number, Link& link, DmaMaps::Use& use, std::size_t budget) {
  if (link.stuck || (!internal_ && !frames_due(link))) return false;
  // The internal generator does not use the links, so their speed does not limit it.
  const std::uint64_t now = pacer_.paced() && !internal_ ? base::steady_now_ns() : 0;
  if (now != 0 && !pacer_.is_free(number, now)) return false;
  if (!link.open) {
    const std::lock_guard lock(mutex());
    if (link.waiting.size() <= link.held) {
      if (!link.starved) ++link.empty;
      link.starved = true;
      return false;
    }
    link.superpage = link.waiting.front();
    link.waiting.pop_front();
    link.open = true;
    link.starved = false;
    link.filled = 0;
  }
  const auto finish = [&] {
    const std::lock_guard lock(mutex());
    close(link);
  };
  DmaWriter writer(use, link.superpage.client, bounce_, dma_faults_);
  std::size_t written = 0;
  while (written < budget) {
    if (internal_) {
      const std::size_t bytes = write_pattern(link, use, budget);
      written += bytes;
      link.filled += static_cast<std::uint32_t>(bytes);
      if (link.filled >= link.superpage.bytes) {
        link.filled = link.superpage.bytes;
        finish();
        break;
      }
      continue;
    }
    if (!frames_due(link) || (now != 0 && !pacer_.is_free(number, now))) break;
    const std::size_t bytes = link.write_page(writer, dynamic_offset_, time_frame_length_);
    if (bytes == 0) {
      finish();
      break;
    }
    if (settings_.paced) catch_up(link);
    written += bytes;
    if (now != 0) {
      pacer_.carry(number, now, static_cast<double>(bytes));
      occupied_us_.store(pacer_.occupied_us(), std::memory_order_relaxed);
    }
    pages_.store(pages_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (!link.source.in_frame()) frames_.store(frames_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  bytes_.store(bytes_.load(std::memory_order_relaxed) + written, std::memory_order_relaxed);
  return true;
}

bool CruCard::work() {
  const std::uint64_t now = base::steady_now_ns();
  if (now - rate_at_ns_ >= 1'000'000'000U) {
    const std::lock_guard lock(mutex());
    const double seconds = static_cast<double>(now - rate_at_ns_) * 1e-9;
    packet_hz_ = static_cast<std::uint32_t>(static_cast<double>(pages_ - rate_pages_) / seconds);
    drop_hz_ = static_cast<std::uint32_t>(static_cast<double>(dropped_pages_ - rate_dropped_) / seconds);
    rate_at_ns_ = now;
    rate_pages_ = pages_;
    rate_dropped_ = dropped_pages_;
  }
  for (Link& link : links_) {
    if (link.up_at_ns == 0) continue;
    const std::lock_guard lock(mutex());
    link.comes_up(now);
  }
  running_.store(dma_on_, std::memory_order_relaxed);
  if (!dma_on_ || !bus_master()) return false;
  standstill_.check(now);
  if (settings_.paced) accept_frames();
  bool any = false;
  std::uint64_t slowest = frames_due_;
  std::uint64_t newest = frames_due_;
  // Serves one link after the other, each up to a budget; each turn starts one link later.
  for (unsigned i = 0; i < kLinks; ++i) {
    const unsigned number = (next_link_ + i) % kLinks;
    Link& link = links_[number];
    if (settings_.paced) catch_up(link);
    if (!link_active(number)) {
      if (settings_.paced) skip_frames(number);
      continue;
    }
    if (settings_.paced) drop_frames(link);
    DmaMaps::Use use(maps());
    any = fill(number, link, use, kLinkBudget) || any;
    copies_done();
    slowest = std::min(slowest, link.source.frame());
    if (!internal_ && !settings_.paced) newest = std::max(newest, link.source.frame() + (link.source.in_frame() ? 1 : 0));
  }
  next_link_ = (next_link_ + 1) % kLinks;
  if (newest > newest_frame_) triggers_seen_ += newest - std::exchange(newest_frame_, newest);
  if (any) standstill_.restart();
  if (settings_.paced && !settings_.drop && slowest > frames_done_) {
    triggers_->done(slowest - frames_done_);
    frames_done_ = slowest;
  }
  return any;
}

}  // namespace rodeo::emulator
