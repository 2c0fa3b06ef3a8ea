// The ring of open events. One descriptor per event, so small that a run of chunks touches few cache lines.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rodeo/ids.h"

namespace rodeo::readout {

/// One event that a worker is building. Sequence number s has the slot ring[s & mask]. While s is in the window (oldest <= s
/// <= head), the slot belongs only to s. Half a cache line.
struct alignas(32) EventSlot {
  std::byte* write = nullptr;         ///< place of the next chunk record; null until the first chunk
  std::byte* end = nullptr;           ///< end of the slice's buffer, kStoreSlack bytes before that of its memory
  std::uint32_t remaining = 0;        ///< links that have neither delivered nor skipped this event
  std::uint16_t bcid = 0;             ///< BCID of the first chunk, or of the trigger list
  std::uint16_t bcid_difference = 0;  ///< bits in which the BCIDs of chunks differ
  std::uint16_t links = 0;            ///< links that take part, without those removed before they delivered
  std::uint16_t missing = 0;          ///< links among them that have skipped the event
  std::uint16_t flags = 0;            ///< slot_flag bits
};
static_assert(sizeof(EventSlot) == 32);

namespace slot_flag {
inline constexpr std::uint16_t kTriggered = 0x01;     ///< the trigger's own list has the event
inline constexpr std::uint16_t kCorrupt = 0x02;       ///< a chunk failed the integrity check or carries a link error
inline constexpr std::uint16_t kTruncated = 0x04;     ///< a chunk did not fit
inline constexpr std::uint16_t kBcidKnown = 0x08;     ///< bcid is set
inline constexpr std::uint16_t kTimedOut = 0x10;      ///< closed by the time-out
inline constexpr std::uint16_t kRingFull = 0x20;      ///< closed to make room in the ring or the pool
inline constexpr std::uint16_t kRunEnded = 0x40;      ///< closed because the run ended
inline constexpr std::uint16_t kWorkFailed = 0x80;    ///< a plug-in threw at a chunk
inline constexpr std::uint16_t kDoubtfulId = 0x100;   ///< a narrow L1 id restarted: a reset or a jump
inline constexpr std::uint16_t kLinksAbsent = 0x200;  ///< some link is absent: missing or removed
inline constexpr std::uint16_t kSkipped = 0x400;      ///< the trigger's list has lost this event and continues after it
}  // namespace slot_flag

/// Kernels may store up to this many bytes beyond a record's end. Every slice buffer has this room after its last byte.
inline constexpr std::size_t kStoreSlack = 64;

}  // namespace rodeo::readout
