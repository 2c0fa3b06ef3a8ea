// The rule for the two ids of an event: the extended L1 id in its headers, and the global id, which never repeats within a
// run (docs/reference/formats/identifiers.md, "Global ids").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rodeo/ids.h"
#include "rodeo/trigger.h"

namespace rodeo::formats {

/// The rule by which the L1 ids of a run count. `rounds`: event counter resets and wraps of the L1 id together; `index`: the
/// L1 id, unwrapped since the last reset.
struct IdLayout {
  std::uint8_t bits = 24;  ///< bits from the front-ends: 1 to 32 without a reset counter, 24 with one
  bool has_resets = true;  ///< headers carry the reset counter in bits 24 to 31

  static constexpr IdLayout of(const TriggerFields& fields) { return {fields.l1id_bits, fields.has_ecr}; }

  /// Bits of the number that wraps: ids of at most 24 bits are extended to 24, wider ones to 32.
  constexpr unsigned counter_bits() const { return bits > 24 ? 32 : 24; }
  constexpr std::int64_t wraps(std::int64_t index) const { return index >> counter_bits(); }

  constexpr std::uint64_t global_id(std::uint64_t rounds, std::int64_t index) const {
    return (rounds << counter_bits()) + static_cast<std::uint64_t>(index);
  }
  constexpr L1Id l1id(std::uint64_t resets, std::int64_t index) const {
    const auto low = static_cast<std::uint32_t>(index);
    return counter_bits() == 32 ? L1Id{low} : L1Id::of(static_cast<std::uint32_t>(resets & 0xff), low);
  }

  /// The L1 id of an event with this global id, as far as it can be known: wraps count as resets.
  constexpr L1Id l1id_of(std::uint64_t global_id) const {
    const auto low = static_cast<std::uint32_t>(global_id);
    return L1Id{has_resets || counter_bits() == 32 ? low : low & 0xffffffU};
  }
  /// The L1 id of a header as people read it, without its reset counter.
  constexpr std::uint32_t shown(L1Id l1id) const { return counter_bits() == 32 ? l1id.value : l1id.l1(); }
  /// The first global id of a reader that starts within a run is uncertain by a multiple of this: 256 resets, or a round of
  /// the front-ends' counter.
  constexpr std::uint64_t step_at_start() const { return std::uint64_t{1} << (has_resets ? 32 : bits); }
  /// The L1 id of an event whose global id was corrected by a multiple of step_at_start().
  constexpr L1Id moved(L1Id l1id, std::uint64_t by) const {
    const auto low = l1id.value + static_cast<std::uint32_t>(by);
    return counter_bits() == 32 ? L1Id{low} : L1Id{(l1id.value & 0xff000000U) | (low & 0xffffffU)};
  }

  /// The layout as in the configuration: "l1id_bits=32" (24 bits and the reset counter), "l1id_bits=16", "l1id_counter=32".
  std::string text() const;
  static std::optional<IdLayout> parse(std::string_view text);

  bool operator==(const IdLayout&) const = default;
};

/// The id from which emulated payload is drawn: the lower half of the global id, even if chunks carry fewer bits.
constexpr L1Id payload_id(std::uint64_t global_id) { return L1Id{static_cast<std::uint32_t>(global_id)}; }

/// True if a header with this L1 id can belong to this event: the low 24 bits are the same in every layout.
constexpr bool may_be(L1Id l1id, std::uint64_t global_id) {
  return ((l1id.value ^ static_cast<std::uint32_t>(global_id)) & 0xffffffU) == 0;
}

}  // namespace rodeo::formats
