// Faults on demand. The fault of a chunk is a pure function of (seed, link, trigger).
#pragma once

#include <array>
#include <cstdint>

#include "base/counters.h"
#include "formats/draw.h"
#include "input/generator_settings.h"

namespace rodeo::input {

/// Counters of a generator. The first ones are faults of single chunks.
enum class GeneratorCounter : std::uint8_t {
  missing,
  duplicate,
  late,
  corrupt,
  l1id,
  truncated,
  jump,
  out_of_sequence,
  bcid,
  silent,        ///< chunks that the silent link did not send
  not_occupied,  ///< chunks that were not sent because the link had no data
  vetoed,        ///< triggers that were refused while busy
  triggers,      ///< accepted triggers
  overdue,       ///< triggers that are also in `vetoed`: due before the end, but the generator had no time for them
  count,
};

/// The descriptions, in the order of GeneratorCounter.
inline constexpr std::array<base::CounterInfo, static_cast<std::size_t>(GeneratorCounter::count)> kGeneratorCounters{{
    {"fault_missing", "chunks", "Fault on demand: not sent"},
    {"fault_duplicate", "chunks", "Fault on demand: sent twice"},
    {"fault_late", "chunks", "Fault on demand: sent late"},
    {"fault_corrupt", "chunks", "Fault on demand: a bit of the payload is flipped"},
    {"fault_l1id", "chunks", "Fault on demand: a bit of the L1 id is flipped"},
    {"fault_truncated", "chunks", "Fault on demand: cut short"},
    {"fault_jump", "chunks", "Fault on demand: the link's L1 ids are off by jump_by"},
    {"fault_out_of_sequence", "chunks", "Fault on demand: sent in the wrong order"},
    {"fault_bcid", "chunks", "Fault on demand: another BCID than the event's"},
    {"fault_silent", "chunks", "Fault on demand: not sent by the silent link"},
    {"not_occupied", "chunks", "Not sent, since the link had no data (occupancy)"},
    {"vetoed", "triggers", "Triggers refused while the readout was busy: dead time"},
    {"triggers", "triggers", "Triggers accepted"},
    {"overdue", "triggers", "Vetoed triggers that were due before the end, but the generator had no time for them"},
}};

class FaultPlan {
 public:
  static constexpr GeneratorCounter kNone = GeneratorCounter::count;

  FaultPlan(const FaultSettings& settings, std::uint64_t seed) : settings_(settings), seed_(seed) {
    const std::array chances = {settings.missing, settings.duplicate, settings.late, settings.corrupt,
                                settings.l1id,    settings.truncated, settings.jump, settings.out_of_sequence,
                                settings.bcid};
    double sum = 0;
    for (std::size_t i = 0; i < chances.size(); ++i) {
      sum += chances[i];
      limits_[i] = static_cast<std::uint64_t>(sum * 0x1p53);
    }
  }

  /// The fault of one chunk; kNone: no fault.
  GeneratorCounter of(std::uint32_t link_id, std::uint64_t trigger) const {
    const std::uint64_t bits = formats::draw::at(formats::draw::base(seed_, 1, link_id), trigger) >> 11;
    if (bits >= limits_.back()) return kNone;
    std::size_t fault = 0;
    while (bits >= limits_[fault]) ++fault;
    return static_cast<GeneratorCounter>(fault);
  }

  /// True if none of the triggers first, first + step, ... below `end` has a fault on this link. A faster of() for whole
  /// runs.
  bool quiet(std::uint32_t link_id, std::uint64_t first, std::uint64_t end, std::uint64_t step) const {
    const std::uint64_t base = formats::draw::base(seed_, 1, link_id);
    bool any = false;
    for (std::uint64_t trigger = first; trigger < end; trigger += step)
      any |= formats::draw::at(base, trigger) >> 11 < limits_.back();
    return !any;
  }

  /// A further random number for the same chunk: selects the bit to flip, or the length to cut to.
  std::uint64_t detail(std::uint32_t link_id, std::uint64_t trigger) const {
    return formats::draw::chunk(seed_, 2, link_id, trigger);
  }

  bool silent(std::int64_t link, std::uint64_t trigger) const {
    return link == settings_.silent_link && within(trigger, settings_.silent_from, settings_.silent_for);
  }
  bool jumped(std::int64_t link, std::uint64_t trigger) const {
    return link == settings_.jump_link && within(trigger, settings_.jump_from, settings_.jump_for);
  }
  bool off_at_times(std::int64_t link) const { return link == settings_.silent_link || link == settings_.jump_link; }
  /// The wrong L1 id of a jumping link.
  L1Id jump(L1Id l1id) const { return L1Id::of(l1id.ecr(), l1id.l1() + settings_.jump_by); }

 private:
  static bool within(std::uint64_t trigger, std::uint64_t from, std::uint64_t length) {
    return trigger >= from && (length == 0 || trigger - from < length);
  }

  FaultSettings settings_;
  std::uint64_t seed_;
  std::array<std::uint64_t, 9> limits_{};
};

}  // namespace rodeo::input
