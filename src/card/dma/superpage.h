// The unit that driver and card exchange: a piece of the registered buffer, empty on its way to the card and filled on its
// way back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rodeo::card {

/// Sizes are multiples of this, and not 0.
inline constexpr std::uint32_t kSuperpageGranule = 32 << 10;

struct Superpage {
  std::uint64_t offset = 0;    // place in the registered buffer
  std::uint32_t bytes = 0;     // size of the superpage
  std::uint32_t received = 0;  // bytes that the card wrote; less than the size in the last one of a run
  bool ready = false;          // false when it comes back: the card did not use it before the stop
  int link = -1;               // the link that filled it; -1: all links of the channel share superpages (FELIX), or unused
  void* user = nullptr;        // for the user; the channel does not change it
  bool filled() const { return received == bytes; }
};

/// The result of a push. Checked in this order.
enum class PushStatus : unsigned char {
  done,
  not_started,     // the channel is not started (or has failed)
  empty,           // size 0
  not_a_multiple,  // size not a multiple of 32 KiB, or of a FELIX's block size
  outside,         // the superpage is not within the registered buffer
  misaligned,      // offset not a multiple of 4
  too_large,       // larger than the card takes: a CRU reports sizes below 16 MiB
  not_contiguous,  // spans a gap of the memory as the card sees it (without an IOMMU)
  out_of_order,    // FELIX: its memory is a ring, superpages follow each other in it
  full,            // the transfer queue is full; FELIX: the superpage in this place of the ring was not popped yet
};

/// "offset not a multiple of 4".
std::string_view text_of(PushStatus status);

}  // namespace rodeo::card
