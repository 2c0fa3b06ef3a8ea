// Which event a chunk belongs to: follows each link's L1 ids through gaps, flipped bits, jumps and event counter resets
// (architecture, "Builder": missing, resynchronisation).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "readout/builder/epoch_map.h"
#include "readout/sequence/id_format.h"
#include "rodeo/chunk.h"
#include "rodeo/trigger.h"

namespace rodeo::readout {

/// What a worker knows of one link. The first cache line is all that an undisturbed run touches.
struct TrackedLink {
  Sequence next = 0;                                          ///< sequence number expected next
  Sequence epoch_end = std::numeric_limits<Sequence>::max();  ///< first number that is not of `epoch` any more
  std::uint64_t history = 0;                                  ///< bit k: the event next - 1 - k was delivered
  std::uint64_t header = 0;                                   ///< ChunkHeader without size and status
  std::uint64_t low_seen = 0;  ///< bit i: L1 id i was delivered when its counter last passed it
  std::uint32_t expected = 0;  ///< id that a chunk of `next` carries
  bool regular = false;        ///< synchronised, not removed, nothing held: the fast path may be taken
  bool synchronised = false;
  bool removed = false;
  bool trigger_list = false;  ///< the trigger's own list: marks events, brings no data

  // Touched only when something is wrong.
  Epoch epoch{};
  Sequence rejoin = 0;        ///< taken back: events below this are built without it
  std::uint32_t held_id = 0;  ///< id of the last held chunk
  std::uint32_t held_count = 0;
  bool id_held = false;           ///< the chunk of held_id was too large to keep
  bool ahead = false;             ///< its ids are beyond those of all others
  Sequence ahead_of = 0;          ///< the newest event when they went there
  std::uint64_t ahead_since = 0;  ///< on the event clock, ns
  std::uint32_t usual_step = 0;   ///< of a sparse link: about the longest that it has skipped lately
  Sequence low_pass = 0;          ///< number of L1 id 0 in the pass that low_seen tells of
  bool continuing = false;        ///< its last run said that its chunk goes on in the next
};

/// A link's ids, with what the rules below ask of them.
class TrackedIds : public IdFormat {
 public:
  using IdFormat::IdFormat;
  using IdFormat::of;

  std::uint32_t of(const Epoch& epoch, Sequence sequence) const { return of(epoch.resets, sequence - epoch.base); }
  /// Signed distance from one id to another within an epoch, by the shorter way round.
  std::int64_t distance(std::uint32_t from, std::uint32_t to) const {
    const std::uint32_t delta = (to - from) & low_mask();
    return std::int64_t{delta} - (delta <= low_mask() / 2 ? 0 : static_cast<std::int64_t>(period()));
  }
};

/// What is to be done with a chunk whose id is not the one expected.
enum class TrackerVerdict : std::uint8_t {
  take,             ///< it belongs to `sequence` (>= link.next), of `epoch`
  hold,             ///< nothing is known until the link's next chunk: keep it aside
  duplicate,        ///< the link has delivered this event
  late,             ///< the event was closed without it
  out_of_sequence,  ///< the id does not fit: flipped bits, disorder, or a link that has lost its way
};

struct TrackerDecision {
  TrackerVerdict verdict = TrackerVerdict::out_of_sequence;
  Sequence sequence = 0;
  Epoch epoch{};
  bool leads = false;  ///< out_of_sequence because no other link is there yet
};

/// The worker's window, for decisions.
struct Window {
  Sequence oldest = 0;
  Sequence head = 0;
  std::uint64_t size = 0;
  Sequence near = 0;  ///< where the worker's other links are; 0: none has delivered yet
  /// How far a link may jump: a little beyond the newest event of any worker or, if there is the trigger's own list, not beyond that.
  Sequence limit = std::numeric_limits<Sequence>::max();
  bool listed = false;  ///< the trigger's own list tells of resets
};

class LinkTracker {
 public:
  struct Settings {
    std::uint32_t step_limit = 8;  ///< a step up to this many events is believed at once
  };

  LinkTracker(const Settings& settings, const TrackedIds& format, EpochMap& epochs)
      : settings_(settings), format_(format), epochs_(epochs) {}

  const TrackedIds& format() const { return format_; }

  /// True if ids are so narrow that a reset is seen only once somebody else has told of it.
  bool resets_untold() const;

  /// Decides on a chunk that is not the expected one. `following` is the id of the link's next chunk, if has_following.
  /// May open an epoch. `majority_ahead`: more links are beyond the limit the same way than speak against it, so it must move.
  TrackerDecision decide(const TrackedLink& link, std::uint32_t id, bool has_following, std::uint32_t following,
                         const Window& window, bool majority_ahead) const;

  /// True if a link that brings `id` and then `following` is really where they say: one wrong id is not followed by another like it.
  bool confirms(std::uint32_t id, std::uint32_t following) const {
    const std::int64_t step = format_.distance(id, following);
    return step >= 1 && step <= std::int64_t{settings_.step_limit} && (!format_.has_ecr() || ((id ^ following) >> 24) == 0);
  }

  /// Notes which of the first L1 ids the link has delivered, for formats that do not count resets: one that comes again tells of a reset, one
  /// that has not come before may only be late. Before link.next moves past the n events.
  void note_low(TrackedLink& link, std::uint32_t n) const {
    const std::uint32_t l1 = link.expected & format_.low_mask();
    if (format_.has_ecr() || l1 >= kLowIds) [[likely]]
      return;
    if (link.low_pass != link.next - l1) {
      link.low_pass = link.next - l1;
      link.low_seen = 0;
    }
    const std::uint64_t bits = n >= kLowIds ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1;
    link.low_seen |= bits << l1;
  }

  /// Puts the link behind the event that it has just been given.
  void settle(TrackedLink& link, const TrackerDecision& decision) const;

 private:
  static constexpr std::uint32_t kLowIds = 64;

  TrackerDecision judge(const TrackedLink& link, std::uint32_t id, bool has_following, std::uint32_t following,
                        const Window& window, bool majority_ahead) const;
  bool sparse(const TrackedLink& link, std::int64_t step, Sequence sequence, const Window& window) const;
  bool rises(std::uint32_t id, std::uint32_t following, Sequence sequence, const Window& window) const;
  TrackerDecision begin(std::uint32_t id, bool confirmed) const;
  TrackerDecision join(std::uint32_t id, bool confirmed, const Window& window, bool majority_ahead) const;
  std::optional<TrackerDecision> rejoin(const TrackedLink& link, std::uint32_t id, bool confirmed,
                                        const Window& window) const;
  TrackerDecision cross(const TrackedLink& link, std::uint64_t resets, std::uint32_t l1, bool confirmed,
                        const Window& window, bool majority_ahead) const;
  bool was_delivered(const TrackedLink& link, std::uint32_t l1) const;
  TrackerDecision behind(const TrackedLink& link, Sequence sequence, const Window& window) const;

  const Settings settings_;
  const TrackedIds format_;
  EpochMap& epochs_;
};

}  // namespace rodeo::readout
