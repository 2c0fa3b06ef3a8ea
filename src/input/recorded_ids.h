// The L1 ids of a recording as positions in the order of its events. A loop continues the ids from them.
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

/// Learns in one pass over the recording, then maps ids to positions. An id far from the previous ones of its link, which
/// the next id does not confirm, is not learnt and has no position: a flipped bit must not make a recording look hours long.
class RecordedIds {
 public:
  explicit RecordedIds(L1IdField field) : field_(field) {}

  void begin_learning(std::size_t links) { learning_.assign(links, {}); }
  void learn(LinkIndex link, std::span<const std::byte> chunk);
  void end_learning();

  const L1IdField& field() const { return field_; }

  /// Number of events from the first id to the last; each further pass of a loop adds the same number.
  std::uint64_t span() const { return span_; }

  /// The place of one link in a pass; starts again at each pass.
  struct Follower {
    std::uint32_t last = 0;
    std::int64_t position = 0;
    bool begun = false;
    std::optional<std::uint32_t> far = {};  // the previous id, if it was far from `last`
  };

  /// Events from one id to another: negative if `to` is earlier; none if one of the ids is not in the recording. For narrow
  /// ids: the shorter distance.
  std::optional<std::int64_t> distance(std::uint32_t from, std::uint32_t to) const;

  /// The largest step from chunk to chunk of a link that counts as plausible.
  static constexpr std::uint32_t kLargestStep = 4096;

  /// The position of the next chunk's event, 0 to span() - 1; none if the chunk has no known id.
  std::optional<std::uint64_t> position(Follower& follower, std::span<const std::byte> chunk) const;

 private:
  struct Epoch {
    bool used = false;
    std::uint32_t first = 0xffffff;
    std::uint32_t last = 0;
    std::uint64_t base = 0;  // position of the first event of the epoch
  };

  std::optional<std::uint64_t> position_of(std::uint32_t id) const;
  std::int64_t step(std::uint32_t before, std::uint32_t now) const;
  bool near(std::uint32_t before, std::uint32_t now) const;
  std::optional<std::int64_t> follow(Follower& follower, std::uint32_t id) const;

  L1IdField field_;
  std::vector<Follower> learning_;
  std::optional<std::uint32_t> seen_;   // first id in the recording
  std::optional<std::uint32_t> first_;  // first id that the next id of its link confirms
  std::array<Epoch, 256> epochs_{};     // the epochs, by ECR counter
  std::int64_t lowest_ = 0;             // narrow ids: positions relative to the first id
  std::int64_t highest_ = 0;
  std::uint64_t span_ = 0;
};

}  // namespace rodeo::input
