// The L1 ids in a recording, as positions in the order of its events: what a loop needs to go on counting.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "formats/l1id_field.h"
#include "rodeo/ids.h"

namespace rodeo::input {

using formats::L1IdField;

/// Learns in one pass over the recording, then maps ids to positions. An id that is far from those before it on its link, and that the next one does
/// not go on from, is not learnt (a flipped bit must not make a recording look hours long) and has no position.
class RecordedIds {
 public:
  explicit RecordedIds(L1IdField field) : field_(field) {}

  void begin_learning(std::size_t links) { learning_.assign(links, {}); }
  void learn(LinkIndex link, std::span<const std::byte> chunk);
  void end_learning();

  const L1IdField& field() const { return field_; }

  /// Events from the first id to the last: what each further pass of a loop adds.
  std::uint64_t span() const { return span_; }

  /// Where one link is in a pass; begins anew at each pass.
  struct Follower {
    std::uint32_t last = 0;
    std::int64_t position = 0;
    bool begun = false;
    std::optional<std::uint32_t> far = {};  // the id before, if it was far from `last`
  };

  /// Events from one id to another: negative if `to` is the earlier one; none if an id is not one of the recording's. Narrow ids: by the
  /// shorter way round.
  std::optional<std::int64_t> distance(std::uint32_t from, std::uint32_t to) const;

  /// Largest step from chunk to chunk of a link that is believed.
  static constexpr std::uint32_t kLargestStep = 4096;

  /// The position of the next chunk's event, 0 to span() - 1; none if the chunk does not carry a known id.
  std::optional<std::uint64_t> position(Follower& follower, std::span<const std::byte> chunk) const;

 private:
  struct Epoch {
    bool used = false;
    std::uint32_t first = 0xffffff;
    std::uint32_t last = 0;
    std::uint64_t base = 0;  // position of the event `first`
  };

  std::optional<std::uint64_t> position_of(std::uint32_t id) const;
  std::int64_t step(std::uint32_t before, std::uint32_t now) const;
  bool near(std::uint32_t before, std::uint32_t now) const;
  std::optional<std::int64_t> follow(Follower& follower, std::uint32_t id) const;

  L1IdField field_;
  std::vector<Follower> learning_;
  std::optional<std::uint32_t> seen_;   // first id of all
  std::optional<std::uint32_t> first_;  // first id of all that the next one of its link goes on from
  std::array<Epoch, 256> epochs_{};     // by ECR counter
  std::int64_t lowest_ = 0;             // narrow ids: position before the first id that was seen
  std::int64_t highest_ = 0;
  std::uint64_t span_ = 0;
};

}  // namespace rodeo::input
