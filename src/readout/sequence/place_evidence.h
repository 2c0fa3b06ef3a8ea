// What the BCIDs of a link's chunks prove about its place: nothing, that it is right, that another place is, or that no
// place is.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace rodeo::readout {

/// For one link. Pure.
class PlaceEvidence {
 public:
  /// This many chunks in a row are a proof.
  static constexpr std::uint32_t kRow = 8;
  static constexpr std::size_t kPlaces = 128;  // ids of 8 bits in two windows of 16384 events

  /// Another place where the link may be: its distance in events, and the BCID that the chunk should have there.
  struct OtherPlace {
    std::int64_t offset = 0;
    std::uint16_t bcid = 0;
  };

  enum class Proof : std::uint8_t {
    nothing,
    here,       ///< the BCIDs agree here and at no other place
    elsewhere,  ///< they agree at `offset` alone
    nowhere     ///< they disagree here, and agree at no other place or at several
  };
  struct Finding {
    Proof proof = Proof::nothing;
    std::int64_t offset = 0;                  ///< elsewhere: from here to there
    std::optional<std::uint16_t> constant{};  ///< nowhere: the BCIDs are all too large by this (modulo the orbit)
  };

  /// Weighs the BCID of a chunk. `here`: the BCID of the event at the link's place, if known. `others`: all other places
  /// whose BCIDs are known.
  Finding weigh(std::uint16_t bcid, std::optional<std::uint16_t> here, std::span<const OtherPlace> others) {
    if (!here) return {};
    const bool shared = std::ranges::all_of(others, [&](const OtherPlace& other) { return other.bcid == *here; });
    // A BCID that all places share (a laser's) proves nothing if it agrees.
    if (shared && *here == bcid && (!others.empty() || bcid == last_)) return {};
    last_ = bcid;
    count_agreeing(others, bcid);
    const auto difference = static_cast<std::uint16_t>((bcid + kOrbit - *here % kOrbit) % kOrbit);
    constant_ = difference == difference_ ? constant_ + 1 : 1;
    difference_ = difference;
    agree_ = *here == bcid ? agree_ + 1 : 0;
    disagree_ = *here == bcid ? 0 : disagree_ + 1;
    const auto long_enough = [](const Row& row) { return row.length >= kRow; };
    const std::size_t agreeing = static_cast<std::size_t>(std::count_if(rows_.begin(), rows_.begin() + used_, long_enough));
    if (agree_ >= kRow) return agreeing == 0 && crowded_ == 0 ? Finding{.proof = Proof::here} : Finding{};
    if (disagree_ < kRow) return {};
    if (agreeing == 1 && crowded_ == 0)
      return {.proof = Proof::elsewhere, .offset = std::find_if(rows_.begin(), rows_.begin() + used_, long_enough)->offset};
    return {.proof = Proof::nowhere, .constant = constant_ >= kRow ? std::optional(difference_) : std::nullopt};
  }

  /// Call it when the link gets another place.
  void reset() { *this = {}; }

 private:
  static constexpr std::uint32_t kOrbit = 3564;
  struct Row {
    std::int64_t offset = 0;
    std::uint32_t length = 0;
    bool seen = false;
  };

  // Counts how long each place has agreed. Forgets places that do not agree with this chunk.
  void count_agreeing(std::span<const OtherPlace> others, std::uint16_t bcid) {
    const auto rows = std::span(rows_).first(used_);
    for (Row& row : rows) row.seen = false;
    crowded_ -= std::min(crowded_, 1U);
    for (const OtherPlace& other : others) {
      if (other.bcid != bcid) continue;
      const auto known = std::ranges::find(rows, other.offset, &Row::offset);
      if (known != rows.end()) {
        ++known->length;
        known->seen = true;
      } else if (used_ < kPlaces) {
        rows_[used_++] = {other.offset, 1, true};
      } else {
        crowded_ = kRow;
      }
    }
    const auto kept = std::remove_if(rows_.begin(), rows_.begin() + used_, [](const Row& row) { return !row.seen; });
    used_ = static_cast<std::size_t>(kept - rows_.begin());
  }

  std::array<Row, kPlaces> rows_{};  // other places that agreed with the last chunks
  std::size_t used_ = 0;
  std::uint32_t crowded_ = 0;  // above 0: more places agreed with one of the last chunks than there are rows
  std::uint32_t agree_ = 0;
  std::uint32_t disagree_ = 0;
  std::uint32_t constant_ = 0;
  std::uint16_t difference_ = 0;
  std::uint16_t last_ = 0xffff;
};

}  // namespace rodeo::readout
