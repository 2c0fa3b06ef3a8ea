// Consecutive accepted triggers: what the authority hands out, cards make data for and a farm builds events of.
#pragma once

#include <cstdint>

#include "formats/event_ids.h"

namespace rodeo::trigger {

/// Triggers of one ECR period.
struct TriggerRange {
  std::uint64_t sequence = 0;  ///< of the first, counted from the authority's begin
  std::uint32_t l1id = 0;      ///< of the first, with the ECR counter
  std::uint32_t count = 0;
  std::uint32_t orbit = 0;  ///< when the first was accepted
  std::uint32_t epoch = 0;  ///< how often the ECR counter has gone round
  std::uint16_t lumi_block = 0;
  std::uint16_t scan_step = 0;

  /// Extended L1 id of trigger i: 24 bits go round, the ECR counter stays.
  std::uint32_t l1id_of(std::uint32_t i) const { return (l1id & 0xff000000U) | ((l1id + i) & 0xffffffU); }
  /// Its global id: no two triggers of an authority have it.
  std::uint64_t id_of(std::uint32_t i) const {
    const L1Id first{l1id};
    return formats::IdLayout{}.global_id(std::uint64_t{epoch} << 8 | first.ecr(), std::int64_t{first.l1()} + i);
  }
  bool operator==(const TriggerRange&) const = default;
};

/// From this trigger on, luminosity block and scan step are these.
struct TriggerMark {
  std::uint64_t id = 0;  ///< as TriggerRange::id_of()
  std::uint16_t lumi_block = 0;
  std::uint16_t scan_step = 0;
  std::uint64_t sequence = 0;  ///< of that trigger, where triggers are assigned; not told to who follows
  bool operator==(const TriggerMark&) const = default;
};

}  // namespace rodeo::trigger
