// The CRU's DMA: descriptors, superpages, size FIFOs, heartbeat frames. The rest of its registers: cru_board.cpp.
#include "emulator/cru_card.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "emulator/copies_done.h"
#include "emulator/dma_writer.h"
#include "formats/rdh.h"

namespace rodeo::emulator {
namespace {

namespace cru = card_registers::cru;

constexpr std::size_t kBudget = 512 << 10;  // bytes of one link before the next has its turn
// A run that is switched off has so long without a page written, counted in the time that this process ran.
constexpr std::uint64_t kLongestStandstillNs = 500'000'000;
constexpr std::uint64_t kLongestTurnNs = 10'000'000;
constexpr std::uint32_t kMaxSuperpage = (1U << 24) - 1;

}  // namespace

CruCard::CruCard(CruSettings settings, std::unique_ptr<TriggerSource> triggers)
    : PciFunction(settings.identity, cru::kMap, cru::kBars),
      settings_(std::move(settings)),
      endpoint_(settings_.identity.endpoint),
      triggers_(std::move(triggers)),
      pacer_(settings_.link_bits_per_second / 8, kLinks) {
  power_on_ns_ = rate_at_ns_ = base::steady_now_ns();
  ranges_.reserve(1024);
  for (Link& link : links_) link.source = RdhSource(settings_.source);
  define_dma();
  define_board();
  define_i2c();
  define_links();
  define_trigger_emulation();
  reset_card();
  start();
}

CruCard::~CruCard() { stop(); }

void CruCard::define_dma() {
  RegisterFile& regs = registers();
  regs.set(cru::reg("endpoint_id"), endpoint_ == 0 ? 0 : cru::kEndpointOneId);
  regs.set(cru::reg("superpage_fifo_depth"), settings_.fifo_depth);
  regs.on_write(cru::reg("superpage_address_high"), [this](std::uint32_t link, std::uint64_t value) {
    links_[link].address_high = static_cast<std::uint32_t>(value);
  });
  regs.on_write(cru::reg("superpage_address_low"), [this](std::uint32_t link, std::uint64_t value) {
    links_[link].address_low = static_cast<std::uint32_t>(value);
  });
  regs.on_write(cru::reg("superpage_push"),
                [this](std::uint32_t link, std::uint64_t value) { push(link, static_cast<std::uint32_t>(value)); });
  regs.on_write(cru::reg("dma_control"), [this](std::uint32_t, std::uint64_t value) {
    if (value == cru::kDmaStart) {
      after_write([this] { start_dma(); });
    } else if ((value & cru::kDmaFlush.mask()) != 0) {
      after_write([this] { stop_dma(); });
    }
  });
  regs.on_write(cru::reg("reset"), [this](std::uint32_t, std::uint64_t value) {
    if (value == cru::kResetCard) after_write([this] { reset_links(); });
    if (value == cru::kResetGenerator) {
      after_write([this] {
        for (Link& link : links_) link.source.reset_counter();
      });
    }
  });
  regs.on_write(cru::reg("data_source"), [this](std::uint32_t, std::uint64_t value) {
    after_write([this, value] { internal_ = (value & 1U) != 0; });
  });
  regs.on_write(cru::reg("debug"), [this](std::uint32_t, std::uint64_t value) {
    after_write([this, value] { time_frame_length_ = cru::kTimeFrameLength.of(static_cast<std::uint32_t>(value)); });
  });
  regs.on_write(cru::reg("generator_inject_error"), [this](std::uint32_t, std::uint64_t value) {
    if ((value & 1U) != 0) {
      after_write([this] {
        for (Link& link : links_) link.source.inject_error();
      });
    }
  });
  regs.on_read(cru::reg("superpages_done"), [this](std::uint32_t link) { return links_[link].done; });
  regs.on_read(cru::reg("superpage_size_fifo"), [this](std::uint32_t number) -> std::uint64_t {
    const Link& link = links_[number];
    // An empty FIFO shows the number before the next one, which nobody waits for.
    return link.sizes.empty() ? std::uint32_t{static_cast<std::uint8_t>(link.index - 1)} << 24 : link.sizes.front();
  });
  regs.on_write(cru::reg("superpage_size_fifo"), [this](std::uint32_t link, std::uint64_t) {
    if (!links_[link].sizes.empty()) links_[link].sizes.pop_front();
  });
  regs.on_read(cru::reg("fifo_empty_count"), [this](std::uint32_t link) { return links_[link].empty; });
}

void CruCard::push(std::uint32_t number, std::uint32_t pages) {
  Link& link = links_[number];
  const std::uint64_t bytes = std::uint64_t{pages} * cru::kDmaPageBytes;
  if (bytes == 0 || bytes > kMaxSuperpage || link.waiting.size() >= settings_.fifo_depth || link.address_low % 4 != 0) {
    refused_pushes_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  link.waiting.push_back({.client = current_client(),
                          .address = std::uint64_t{link.address_high} << 32 | link.address_low,
                          .bytes = static_cast<std::uint32_t>(bytes)});
}

void CruCard::reset_links() {
  for (Link& link : links_) {
    link.waiting.clear();
    link.sizes.clear();
    link.done = 0;
    link.index = 0;
    link.empty = 0;
    link.open = link.starved = false;
    link.held = 0;
  }
  cut_off_frames();
  for (Link& link : links_) link.source.restart(false);
  frames_due_ = frames_done_ = 0;
}

void CruCard::start_dma() {
  dma_on_ = true;
  registers().set(cru::reg("dma_control"), cru::kDmaStart);
  start_ns_ = base::steady_now_ns();
  cut_off_frames();
  frames_due_ = frames_done_ = 0;
  for (Link& link : links_) link.source.restart(false);
}

/// What is under way is flushed: reported with the bytes that are there. What waits is the driver's again.
void CruCard::stop_dma() {
  dma_on_ = false;
  for (Link& link : links_) {
    if (link.open && link.filled > 0) close(link);
    link.open = false;
    link.held = 0;
    link.waiting.clear();
  }
  cut_off_frames();
  following_ = false;
  triggers_->set_ready(false);
}

void CruCard::cut_off() {
  dma_on_ = false;
  for (Link& link : links_) link.open = false;
  cut_off_frames();
  following_ = false;
  running_ = false;
  triggers_->set_ready(false);
}

void CruCard::reset_card() {
  cut_off();
  internal_ = false;
  reset_links();
  for (Link& link : links_) {
    link.source.reset_counter();
    link.stuck = link.lose = link.wrong_index = link.was_down = false;
    link.up = true;
    link.up_at_ns = 0;
    link.dropped_frames = 0;
    link.pages = 0;
  }
  const RegisterFile& regs = registers();
  generator_ = static_cast<std::uint32_t>(regs.get(cru::reg("datapath_generator"), endpoint_));
  data_taking_ = cru::kRunEnable.of(static_cast<std::uint32_t>(regs.get(cru::reg("user_control")))) != 0;
  enabled_ = static_cast<std::uint32_t>(regs.get(cru::reg("datapath_enable"), endpoint_));
  dynamic_offset_ = cru::kEnableDynamicOffset.of(enabled_) != 0;
  time_frame_length_ = cru::kTimeFrameLength.of(static_cast<std::uint32_t>(regs.get(cru::reg("debug"))));
  for (unsigned number = 0; number < kLinks; ++number) {
    const auto ids =
        static_cast<std::uint32_t>(regs.get(cru::reg("datapath_link_ids"), cru::datapath_index(endpoint_, number)));
    links_[number].source.identify({.link = static_cast<std::uint8_t>(number),
                                    .endpoint = static_cast<std::uint8_t>(endpoint_),
                                    .cru_id = static_cast<std::uint16_t>(
                                        cru::kCruId.of(static_cast<std::uint32_t>(regs.get(cru::reg("user_control"))))),
                                    .fee_id = static_cast<std::uint16_t>(cru::kFeeId.of(ids)),
                                    .system_id = static_cast<std::uint8_t>(cru::kSystemId.of(ids))});
  }
}

/// The superpage's payload is there: its size goes into the FIFO, then it is counted. Or it is lost: what comes next goes where it was, and the
/// host gets one superpage less back, always the last: it takes those that come in the order in which it gave them.
void CruCard::close(Link& link) {
  copies_done();
  const bool lose = std::exchange(link.lose, false);
  const std::uint64_t pages_lost = link.books.pages_lost();
  link.books.superpage_ends(!lose, link.filled);
  if (lose) {
    lost_superpages_.fetch_add(1, std::memory_order_relaxed);
    lost_pages_.fetch_add(link.books.pages_lost() - pages_lost, std::memory_order_relaxed);
    link.filled = 0;
    ++link.held;
    return;
  }
  link.open = false;
  std::uint8_t index = link.index++;
  if (link.wrong_index) {
    link.wrong_index = false;
    ++index;
  }
  link.sizes.push_back(std::uint32_t{index} << 24 | link.filled);
  ++link.done;
  superpages_.fetch_add(1, std::memory_order_relaxed);
}

/// Of the links, not of the internal generator.
bool CruCard::link_enabled(unsigned number) const { return (data_taking_ || following_) && (enabled_ >> number & 1U) != 0; }

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

/// A run that is switched off ends behind the triggers that were accepted, which other cards have too.
void CruCard::take_frames() {
  const bool taking = data_taking_ && !internal_;
  if (taking) {
    following_ = true;
    standstill_ns_ = 0;
  }
  const bool held = !taking && following_ && triggers_->hold();
  triggers_->set_ready(following_);
  ranges_.clear();
  const std::uint64_t count = triggers_->take(1024, ranges_);
  if (!taking && following_ && ((held && count == 0 && !frames_left()) || standstill_ns_ > kLongestStandstillNs)) {
    following_ = false;
    triggers_->set_ready(false);
    cut_off_due();
  }
  frames_due_ += count;
  if (settings_.drop) triggers_->done(count);
}

void CruCard::drop_frames(Link& link) {
  if (!settings_.drop || link.source.in_frame() || frames_due_ - link.source.frame() <= settings_.frames_held) return;
  const std::uint64_t first_kept = frames_due_ - settings_.frames_held;
  const std::uint64_t frames = first_kept - link.source.frame();
  const std::uint64_t pages = (settings_.source.frame_bytes + settings_.source.page_bytes - formats::kRdhBytes - 1) /
                                  (settings_.source.page_bytes - formats::kRdhBytes) +
                              1;
  link.dropped_frames += frames;
  dropped_frames_ += frames;
  dropped_pages_.fetch_add(frames * pages, std::memory_order_relaxed);
  link.source.skip_to(first_kept);
}

/// A link that sends nothing has no part in the frames that are due meanwhile.
void CruCard::skip_frames(unsigned number) {
  Link& link = links_[number];
  if (link.source.in_frame() || link.source.frame() >= frames_due_) return;
  if (!internal_ && link_enabled(number) && !link_fed(number)) frames_link_down_ += frames_due_ - link.source.frame();
  link.source.skip_to(frames_due_);
}

/// Frames that are due and not begun will not come. Of a link that has no part in the run none is due.
void CruCard::cut_off_due() {
  for (unsigned number = 0; number < kLinks; ++number) {
    const RdhSource& source = links_[number].source;
    const std::uint64_t next = source.frame() + (source.in_frame() ? 1 : 0);
    const bool takes_part = settings_.paced && !internal_ && (enabled_ >> number & 1U) != 0;
    if (takes_part && frames_due_ > next) frames_cut_off_ += frames_due_ - next;
  }
  frames_due_ = frames_done_ = 0;
}

/// Nor will the rest of what is under way. With mutex() held.
void CruCard::cut_off_frames() {
  cut_off_due();
  for (Link& link : links_) link.books.cut_off();
}

/// The internal generator's, as much as lies in one map. Returns the bytes.
std::size_t CruCard::write_pattern(Link& link, DmaMaps::Use& use, std::size_t budget) {
  constexpr std::size_t kPiece = 32;
  const std::uint32_t room = link.current.bytes - link.filled;
  const std::uint64_t address = link.current.address + link.filled;
  const auto memory = use.find(link.current.client, address, std::min<std::uint64_t>(room, budget));
  if (memory.empty()) {
    dma_faults_.fetch_add(1, std::memory_order_relaxed);
    return room;
  }
  if (const std::size_t bytes = memory.size() & ~(kPiece - 1); bytes > 0) {
    link.source.write_pattern(memory.data(), bytes);
    return bytes;
  }
  DmaWriter(use, link.current.client, bounce_, dma_faults_).write(address, kPiece, kPiece, [&](std::byte* piece) {
    link.source.write_pattern(piece, kPiece);
  });
  return kPiece;
}

bool CruCard::fill(unsigned number, Link& link, DmaMaps::Use& use, std::size_t budget) {
  if (link.stuck || (!internal_ && !frames_due(link))) return false;
  // The internal generator is behind the links.
  const std::uint64_t now = pacer_.paced() && !internal_ ? base::steady_now_ns() : 0;
  if (now != 0 && !pacer_.is_free(number, now)) return false;
  if (!link.open) {
    const std::lock_guard lock(mutex());
    if (link.waiting.size() <= link.held) {
      if (!link.starved) ++link.empty;
      link.starved = true;
      return false;
    }
    link.current = link.waiting.front();
    link.waiting.pop_front();
    link.open = true;
    link.starved = false;
    link.filled = 0;
  }
  const auto finish = [&] {
    const std::lock_guard lock(mutex());
    close(link);
  };
  DmaWriter writer(use, link.current.client, bounce_, dma_faults_);
  std::size_t written = 0;
  while (written < budget) {
    if (internal_) {
      const std::size_t bytes = write_pattern(link, use, budget);
      written += bytes;
      link.filled += static_cast<std::uint32_t>(bytes);
      if (link.filled >= link.current.bytes) {
        link.filled = link.current.bytes;
        finish();
        break;
      }
      continue;
    }
    if (!frames_due(link) || (now != 0 && !pacer_.is_free(number, now))) break;
    const std::uint32_t room = link.current.bytes - link.filled;
    const std::size_t bytes = link.source.next_page_bytes(dynamic_offset_);
    if (bytes > room || (link.filled > 0 && link.source.begins_superpage(time_frame_length_))) {
      finish();
      break;
    }
    if (!link.source.in_frame()) link.books.begins();
    const bool there = writer.write(link.current.address + link.filled, bytes, room, [&](std::byte* page) {
      link.source.write_page(page, dynamic_offset_, time_frame_length_);
    });
    link.books.page(there && !link.source.page_is_damaged(), !link.source.in_frame());
    written += bytes;
    link.filled += static_cast<std::uint32_t>(bytes);
    if (now != 0) {
      pacer_.carry(number, now, static_cast<double>(bytes));
      occupied_us_.store(pacer_.occupied_us(), std::memory_order_relaxed);
    }
    pages_.store(pages_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    link.pages.store(link.pages.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
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
  for (unsigned number = 0; number < kLinks; ++number) {
    Link& link = links_[number];
    if (link.up_at_ns != 0 && now >= link.up_at_ns) {
      const std::lock_guard lock(mutex());
      (void)inject_card({.kind = FaultKind::link_up, .link = number});
    }
  }
  running_.store(dma_on_, std::memory_order_relaxed);
  if (!dma_on_ || !bus_master()) return false;
  standstill_ns_ += std::min(now - std::min(now, turn_ns_), kLongestTurnNs);
  turn_ns_ = now;
  if (settings_.paced) take_frames();
  bool any = false;
  std::uint64_t slowest = frames_due_;
  // One link after the other, each a budget; who was first is last the next time.
  for (unsigned i = 0; i < kLinks; ++i) {
    const unsigned number = (next_link_ + i) % kLinks;
    Link& link = links_[number];
    if (!link_active(number)) {
      if (settings_.paced) skip_frames(number);
      continue;
    }
    if (settings_.paced) drop_frames(link);
    DmaMaps::Use use(maps());
    any = fill(number, link, use, kBudget) || any;
    copies_done();
    slowest = std::min(slowest, link.source.frame());
  }
  next_link_ = (next_link_ + 1) % kLinks;
  if (any) standstill_ns_ = 0;
  if (settings_.paced && !settings_.drop && slowest > frames_done_) {
    triggers_->done(slowest - frames_done_);
    frames_done_ = slowest;
  }
  return any;
}

bool CruCard::at_rest() const { return !dma_on_; }

bool CruCard::inject_card(const Fault& fault) {
  if (fault.kind == FaultKind::temperature) {
    set_temperature(fault.value);
    return true;
  }
  if (fault.link >= kLinks) return false;
  Link& link = links_[fault.link];
  switch (fault.kind) {
    case FaultKind::link_down:
      link.up = false;
      link.was_down = true;
      link.up_at_ns =
          fault.duration.count() > 0 ? base::steady_now_ns() + static_cast<std::uint64_t>(fault.duration.count()) : 0;
      return true;
    case FaultKind::link_up:
      link.up = true;
      link.up_at_ns = 0;
      return true;
    case FaultKind::bad_packet_counter: link.source.skip_packet_counter(); return true;
    case FaultKind::corrupt_rdh: link.source.corrupt_header(); return true;
    case FaultKind::truncated_page: link.source.truncate_page(); return true;
    case FaultKind::dropped_superpage: link.lose = true; return true;
    case FaultKind::stuck_fifo: link.stuck = !fault.ends && !link.stuck; return true;
    case FaultKind::size_index_mismatch: link.wrong_index = true; return true;
    default: return false;
  }
}

void CruCard::report_card(FunctionReport& report) const {
  report.running = running_;
  report.triggers = frames_;
  report.superpages = superpages_;
  std::uint64_t bytes_lost = 0, lost = 0, corrupted = 0, cut_off = frames_cut_off_;
  {
    const std::lock_guard lock(mutex());
    for (const Link& link : links_) {
      report.chunks += link.books.sent();
      lost += link.books.lost();
      corrupted += link.books.corrupted();
      cut_off += link.books.cut_off_frames();
      bytes_lost += link.books.bytes_lost();
    }
  }
  report.bytes = bytes_ - std::min<std::uint64_t>(bytes_, bytes_lost);
  const std::uint64_t pages_lost = lost_pages_;
  const auto add = [&](const char* name, std::uint64_t value) {
    if (value > 0) report.counters.emplace_back(name, value);
  };
  add("pages", pages_ - std::min<std::uint64_t>(pages_, pages_lost));
  add("pages_dropped", dropped_pages_);
  add("superpages_lost", lost_superpages_);
  add("pages_lost", pages_lost);
  add("bytes_lost", bytes_lost);
  add("frames_dropped", dropped_frames_);
  add("frames_lost", lost);
  add("frames_corrupted", corrupted);
  add("frames_cut_off", cut_off);
  add("frames_link_down", frames_link_down_);
  add("descriptors_refused", refused_pushes_);
  add("dma_faults", dma_faults_);
  add("link_occupied_us", occupied_us_);
}

}  // namespace rodeo::emulator
