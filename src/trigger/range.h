// A range of consecutive accepted triggers: the authority assigns them, cards make data for them, and a farm builds their
// events.
#pragma once

#include <cstdint>

#include "formats/event_ids.h"

namespace rodeo::trigger {

/// Triggers of one ECR period.
struct TriggerRange {
  std::uint64_t sequence = 0;  ///< sequence number of the first trigger; the authority begins with 0
  std::uint32_t l1id = 0;      ///< extended L1 id of the first trigger
  std::uint32_t count = 0;
  std::uint32_t orbit = 0;  ///< orbit at the time of the first trigger
  std::uint32_t epoch = 0;  ///< number of wraps of the ECR counter
  std::uint16_t lumi_block = 0;
  std::uint16_t scan_step = 0;

  /// Extended L1 id of trigger i: the lower 24 bits wrap, the ECR counter stays.
  std::uint32_t l1id_of(std::uint32_t i) const { return (l1id & 0xff000000U) | ((l1id + i) & 0xffffffU); }
  /// Its global id: unique among the triggers of an authority.
  std::uint64_t id_of(std::uint32_t i) const {
    const L1Id first{l1id};
    return formats::IdLayout{}.global_id(std::uint64_t{epoch} << 8 | first.ecr(), std::int64_t{first.l1()} + i);
  }
  bool operator==(const TriggerRange&) const = default;
};

/// The luminosity block and scan step from this trigger on.
struct TriggerMark {
  std::uint64_t id = 0;  ///< TriggerRange::id_of() of this trigger
  std::uint16_t lumi_block = 0;
  std::uint16_t scan_step = 0;
  std::uint64_t sequence = 0;  ///< sequence number of this trigger at the authority; followers do not receive it
  bool operator==(const TriggerMark&) const = default;
};

}  // namespace rodeo::trigger
