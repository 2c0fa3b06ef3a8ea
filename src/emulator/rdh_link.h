// The common part of a CRU's link and a C-RORC's channel: heartbeat frames that go page by page into a superpage, and the
// faults of both.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "emulator/dma_writer.h"
#include "emulator/fault.h"
#include "emulator/frame_books.h"
#include "emulator/link_light.h"
#include "emulator/pci_function.h"
#include "emulator/rdh_source.h"

namespace rodeo::emulator {

/// A superpage from the host: memory that the card may write.
struct SuperpageDescriptor {
  ClientId client = 0;
  std::uint64_t address = 0;
  std::uint32_t bytes = 0;
};

/// The DMA thread owns the source. The card's mutex() guards the other members, or they change only while the DMA thread is
/// paused.
struct RdhLink : LinkLight {
  RdhSource source;
  FrameBooks books;
  SuperpageDescriptor superpage;  // the superpage being filled
  std::uint32_t filled = 0;
  std::atomic<std::uint64_t> pages{0};
  bool stuck = false;
  bool lose = false;  // faults of the next superpage
  bool wrong_index = false;

  /// Writes the next page after those already there, and returns its bytes; 0: the page belongs into the next superpage.
  std::size_t write_page(DmaWriter& writer, bool dynamic_offset, std::uint32_t time_frame_length) {
    const std::uint32_t room = superpage.bytes - filled;
    const std::size_t bytes = source.next_page_bytes(dynamic_offset);
    if (bytes > room || (filled > 0 && source.begins_superpage(time_frame_length))) return 0;
    if (!source.in_frame()) books.begins();
    const bool there = writer.write(superpage.address + filled, bytes, room,
                                    [&](std::byte* page) { source.write_page(page, dynamic_offset, time_frame_length); });
    books.page(there && !source.page_is_damaged(), !source.in_frame());
    filled += static_cast<std::uint32_t>(bytes);
    pages.store(pages.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return bytes;
  }

  /// The number to report for a superpage; one too high if a fault asks for that.
  std::uint8_t reported_index(std::uint8_t index) {
    return static_cast<std::uint8_t>(index + (std::exchange(wrong_index, false) ? 1 : 0));
  }

  /// False if a link has no such fault.
  bool inject(const Fault& fault) {
    switch (fault.kind) {
      case FaultKind::link_down:
      case FaultKind::link_up: apply(fault); return true;
      case FaultKind::bad_packet_counter: source.skip_packet_counter(); return true;
      case FaultKind::corrupt_rdh: source.corrupt_header(); return true;
      case FaultKind::truncated_page: source.truncate_page(); return true;
      case FaultKind::dropped_superpage: lose = true; return true;
      case FaultKind::stuck_fifo: stuck = !fault.ends && !stuck; return true;
      case FaultKind::size_index_mismatch: wrong_index = true; return true;
      default: return false;
    }
  }

  void mend() {
    static_cast<LinkLight&>(*this) = {};
    stuck = lose = wrong_index = false;
  }
};

/// Sums of the books of all links, for a report.
struct FrameTotals {
  std::uint64_t sent = 0, lost = 0, corrupted = 0, cut_off = 0, pages_lost = 0, bytes_lost = 0;
  void add(const FrameBooks& books) {
    sent += books.sent();
    lost += books.lost();
    corrupted += books.corrupted();
    cut_off += books.cut_off_frames();
    pages_lost += books.pages_lost();
    bytes_lost += books.bytes_lost();
  }
  void report(FunctionReport& report, std::uint64_t never_begun = 0) const {
    report.add("pages_lost", pages_lost);
    report.add("bytes_lost", bytes_lost);
    report.add("frames_lost", lost);
    report.add("frames_corrupted", corrupted);
    report.add("frames_cut_off", cut_off + never_begun);
  }
};

}  // namespace rodeo::emulator
