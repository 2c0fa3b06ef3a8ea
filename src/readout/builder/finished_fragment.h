// The status that a builder gives to a fragment, and the counters for it: the same in both modes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/counters.h"
#include "readout/builder/event_slot.h"
#include "rodeo/fragment.h"

namespace rodeo::readout {

enum class FragmentCounter : std::size_t {
  built,
  chunks,
  payload_bytes,
  incomplete,
  without_removed,
  timeout,
  ring_full,
  run_ended,
  missing,
  corrupt,
  truncated,
  bcid_mismatch,
  not_triggered,
  doubtful_id,
  empty,
  count
};

inline constexpr base::CounterInfo kFragmentInfo[] = {
    {"built", "fragments", "Fragments pushed to the first consumer"},
    {"chunks", "chunks", "Chunks in these fragments"},
    {"payload_bytes", "bytes", "ROD data of these fragments"},
    {"incomplete", "fragments", "Fragments with a missing link or any status bit set; removed links are not missing"},
    {"without_removed", "fragments", "Fragments, complete or not, that lack links which were removed from the build"},
    {"timeout", "fragments", "Incomplete: closed by the clock"},
    {"ring_full", "fragments", "Incomplete: closed to make room in the window or the pool"},
    {"run_ended", "fragments", "Incomplete: still open when the run ended"},
    {"missing", "fragments", "Incomplete: links skipped the event; it was not closed early"},
    {"corrupt", "fragments", "A chunk failed the integrity check or carries a link error"},
    {"truncated", "fragments", "A chunk was cut"},
    {"bcid_mismatch", "fragments", "The chunks do not agree on the BCID"},
    {"not_triggered", "fragments", "The event is not in the trigger's own list"},
    {"doubtful_id", "fragments",
     "Without a trigger list, a narrow L1 id restarted near zero (a reset, or a jump; later L1 ids may be "
     "wrong), or the place of a link that was silent for long is not proven yet"},
    {"empty", "fragments", "No link delivered: in the trigger's own list, or skipped by all links"},
};
static_assert(std::size(kFragmentInfo) == static_cast<std::size_t>(FragmentCounter::count));

using FragmentCounters = base::CounterBlock<FragmentCounter>;

/// Flags of the whole event, in addition to slot_flag.
namespace event_flag {
inline constexpr std::uint32_t kBcidDiffers = 0x10000;
inline constexpr std::uint32_t kNotListed = 0x20000;  ///< the trigger's own list does not have the event
}  // namespace event_flag

/// Sets and counts the status from `flags` (slot_flag, event_flag) and the contents. The caller passes the fragment on.
inline void finish_fragment(Fragment& fragment, std::uint32_t flags, std::size_t payload_bytes, FragmentCounters& counters) {
  const auto has = [flags](std::uint32_t some) { return (flags & some) != 0; };
  const bool corrupt = has(slot_flag::kCorrupt | slot_flag::kWorkFailed);
  fragment.status = 0;
  const auto say = [&](bool is, std::uint32_t status) { fragment.status |= is ? status : 0; };
  say(has(event_flag::kBcidDiffers), fragment_status::kBcidMismatch);
  say(has(event_flag::kNotListed | slot_flag::kDoubtfulId), fragment_status::kL1IdMismatch);
  say(fragment.missing != 0, fragment_status::kTimeout);
  say(corrupt, fragment_status::kDataCorruption);
  say(has(slot_flag::kTruncated), fragment_status::kOverflow);
  say(fragment.chunks == 0, fragment_status::kDummy);
  say(fragment.removed != 0, fragment_status::kLinksRemoved);
  fragment.references.store(1, std::memory_order_relaxed);

  const auto count = [&](bool is, FragmentCounter counter) {
    if (is) counters.add(counter);
  };
  counters.add(FragmentCounter::built);
  counters.add(FragmentCounter::chunks, fragment.chunks);
  counters.add(FragmentCounter::payload_bytes, payload_bytes);
  count(fragment.removed != 0, FragmentCounter::without_removed);
  if (fragment.complete()) [[likely]]
    return;
  counters.add(FragmentCounter::incomplete);
  const bool closed = has(slot_flag::kTimedOut | slot_flag::kRingFull | slot_flag::kRunEnded);
  count(has(slot_flag::kTimedOut), FragmentCounter::timeout);
  count(has(slot_flag::kRingFull) && !has(slot_flag::kTimedOut), FragmentCounter::ring_full);
  count(has(slot_flag::kRunEnded) && !has(slot_flag::kTimedOut | slot_flag::kRingFull), FragmentCounter::run_ended);
  count(fragment.missing != 0 && !closed, FragmentCounter::missing);
  count(corrupt, FragmentCounter::corrupt);
  count(has(slot_flag::kTruncated), FragmentCounter::truncated);
  count(has(event_flag::kBcidDiffers), FragmentCounter::bcid_mismatch);
  count(has(event_flag::kNotListed), FragmentCounter::not_triggered);
  count(has(slot_flag::kDoubtfulId), FragmentCounter::doubtful_id);
  count(fragment.chunks == 0, FragmentCounter::empty);
}

}  // namespace rodeo::readout
