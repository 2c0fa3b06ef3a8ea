// The CRU's DMA: descriptors, superpages, size FIFOs. cru_card_frames.cpp fills them; cru_board.cpp has the other registers.
#include "emulator/cru_card.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "emulator/copies_done.h"

namespace rodeo::emulator {
namespace {

namespace cru = card_registers::cru;

constexpr std::uint32_t kMaxSuperpage = (1U << 24) - 1;

}  // namespace

CruCard::CruCard(Identity identity, EmulatedCardSettings settings, std::unique_ptr<trigger::TriggerSource> triggers)
    : PciFunction(std::move(identity), std::move(settings), cru::kMap, cru::kBars),
      endpoint_(this->identity().endpoint),
      triggers_(std::move(triggers)),
      pacer_(settings_.link_bits_per_second / 8, kLinks) {
  power_on_ns_ = rate_at_ns_ = base::steady_now_ns();
  ranges_.reserve(1024);
  for (Link& link : links_) link.source = RdhSource(settings_.rdh);
  define_dma();
  define_board();
  define_i2c();
  define_links();
  define_trigger_emulation();
  define_slow_control();
  reset_card();
  start();
}

CruCard::~CruCard() { stop(); }

void CruCard::define_dma() {
  RegisterFile& regs = registers();
  regs.set(cru::reg("endpoint_id"), endpoint_ == 0 ? 0 : cru::kEndpointOneId);
  regs.set(cru::reg("superpage_fifo_depth"), cru::kDefaultFifoDepth);
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
      reader_ = current_client();
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
    // An empty FIFO shows the number before the next one; no driver waits for this number.
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
  if (bytes == 0 || bytes > kMaxSuperpage || link.waiting.size() >= cru::kDefaultFifoDepth || link.address_low % 4 != 0) {
    refused_pushes_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  reader_ = current_client();
  link.waiting.push_back({.client = reader_,
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
  begin_run();
}

void CruCard::begin_run() {
  for (Link& link : links_) link.source.restart(false);
  frames_due_ = first_due_ = frames_done_ = newest_frame_ = 0;
  first_frame_ = 0;
}

void CruCard::start_dma() {
  dma_on_ = true;
  registers().set(cru::reg("dma_control"), cru::kDmaStart);
  start_ns_ = base::steady_now_ns();
  cut_off_frames();
  begin_run();
}

/// Flushes open superpages: they are reported with the bytes written up to now. Waiting superpages return to the driver.
void CruCard::stop_dma() {
  dma_on_ = false;
  for (Link& link : links_) {
    if (link.open && link.filled > 0) close(link);
    link.open = false;
    link.held = 0;
    link.waiting.clear();
  }
  cut_off_frames();
  taking_.end();
}

void CruCard::cut_off() {
  dma_on_ = false;
  for (Link& link : links_) link.open = false;
  cut_off_frames();
  running_ = false;
  taking_.end();
}

bool CruCard::client_left(ClientId client) {
  if (!dma_on_ || client != reader_) return false;
  for (Link& link : links_) link.waiting.clear();
  cut_off();
  return true;
}

void CruCard::reset_card() {
  cut_off();
  internal_ = random_event_size_ = false;
  reset_links();
  for (Link& link : links_) {
    link.source.reset_counter();
    link.mend();
    link.was_down = false;
    link.dropped_frames = 0;
    link.pages = 0;
  }
  const RegisterFile& regs = registers();
  generator_ = static_cast<std::uint32_t>(regs.get(cru::reg("datapath_generator"), endpoint_));
  data_taking_ = cru::kRunEnable.of(static_cast<std::uint32_t>(regs.get(cru::reg("user_control")))) != 0;
  enabled_ = static_cast<std::uint32_t>(regs.get(cru::reg("datapath_enable"), endpoint_));
  dynamic_offset_ = cru::kEnableDynamicOffset.of(enabled_) != 0;
  time_frame_length_ = cru::kTimeFrameLength.of(static_cast<std::uint32_t>(regs.get(cru::reg("debug"))));
  identify_links();
}

/// Sets the ids in the pages of the links, from the registers.
void CruCard::identify_links() {
  const RegisterFile& regs = registers();
  const auto card = static_cast<std::uint32_t>(regs.get(cru::reg("user_control")));
  for (unsigned number = 0; number < kLinks; ++number) {
    const auto ids =
        static_cast<std::uint32_t>(regs.get(cru::reg("datapath_link_ids"), cru::datapath_index(endpoint_, number)));
    links_[number].source.identify({.link = static_cast<std::uint8_t>(number),
                                    .endpoint = static_cast<std::uint8_t>(endpoint_),
                                    .cru_id = static_cast<std::uint16_t>(cru::kCruId.of(card)),
                                    .fee_id = static_cast<std::uint16_t>(cru::kFeeId.of(ids)),
                                    .system_id = static_cast<std::uint8_t>(cru::kSystemId.of(ids))});
  }
}

/// The payload of the superpage is written: its size goes into the FIFO, then it is counted. If a fault loses it, the next
/// data overwrite it, and the host gets one superpage fewer back, always the last one: it takes superpages in the order in
/// which it gave them.
void CruCard::close(Link& link) {
  copies_done();
  const bool lose = std::exchange(link.lose, false);
  link.books.superpage_ends(!lose, link.filled);
  if (lose) {
    lost_superpages_.fetch_add(1, std::memory_order_relaxed);
    link.filled = 0;
    ++link.held;
    return;
  }
  link.open = false;
  link.sizes.push_back(std::uint32_t{link.reported_index(link.index++)} << 24 | link.filled);
  ++link.done;
  superpages_.fetch_add(1, std::memory_order_relaxed);
}

bool CruCard::is_idle() const { return !dma_on_; }

bool CruCard::inject_card(const Fault& fault) {
  if (fault.kind == FaultKind::temperature) {
    set_temperature(fault.value);
    return true;
  }
  if (fault.link >= kLinks) return false;
  Link& link = links_[fault.link];
  if (fault.kind == FaultKind::link_down) link.was_down = true;
  return link.inject(fault);
}

FrameTotals CruCard::totals() const {
  FrameTotals totals;
  for (const Link& link : links_) totals.add(link.books);
  return totals;
}

void CruCard::report_card(FunctionReport& report) const {
  report.triggers = triggers_seen_;
  report.superpages = superpages_;
  std::unique_lock lock(mutex());
  const FrameTotals frames = totals();
  lock.unlock();
  report.chunks = frames.sent;
  report.bytes -= std::min(report.bytes, frames.bytes_lost);
  report.add("slow_control_words_lost", swt_words_lost_);
  report.add("pages", pages_ - std::min<std::uint64_t>(pages_, frames.pages_lost));
  report.add("pages_dropped", dropped_pages_);
  report.add("superpages_lost", lost_superpages_);
  report.add("frames_dropped", dropped_frames_);
  frames.report(report, frames_cut_off_);
  report.add("frames_link_down", frames_link_down_);
  report.add("descriptors_refused", refused_pushes_);
  report.add("link_occupied_us", occupied_us_);
}

}  // namespace rodeo::emulator
