#include "readout/builder/link_tracker.h"

#include <algorithm>

namespace rodeo::readout {
namespace {

constexpr std::uint64_t kHistory = 64;
constexpr Sequence kLongestUsualStep = 1 << 20;
constexpr std::uint32_t kNarrowest = 0xffff;  // counters of fewer bits wrap too often to tell a reset from a jump

}  // namespace

bool LinkTracker::resets_untold() const { return !format_.has_ecr() && format_.low_mask() < kNarrowest; }

TrackerDecision LinkTracker::decide(const TrackedLink& link, std::uint32_t id, bool has_following, std::uint32_t following,
                                    const Window& window, bool majority_ahead) const {
  const TrackerDecision decision = judge(link, id, has_following, following, window, majority_ahead);
  if (decision.verdict != TrackerVerdict::take) return decision;
  // A link goes forward only, whatever epoch it finds itself in: no event gets two of its chunks.
  if (link.synchronised && decision.sequence < link.next) return behind(link, decision.sequence, window);
  // A small step within the epoch is no more than a run does, whose end epoch_end bounds.
  const bool moves = !link.synchronised || decision.epoch.resets != link.epoch.resets ||
                     decision.sequence > link.next + settings_.step_limit;
  if (!moves) return decision;
  // An id that would have come after the reset which ended its epoch has never been.
  const auto ended_by = epochs_.after(decision.epoch.resets);
  if (ended_by && decision.sequence >= ended_by->first) return {};
  return decision;
}

TrackerDecision LinkTracker::judge(const TrackedLink& link, std::uint32_t id, bool has_following, std::uint32_t following,
                                   const Window& window, bool majority_ahead) const {
  const bool confirmed = has_following && confirms(id, following);
  if (!link.synchronised) return epochs_.newest() ? join(id, confirmed, window, majority_ahead) : begin(id, confirmed);
  // A chunk that was delivered already is a duplicate, whatever follows.
  const bool same_epoch = !format_.has_ecr() || ((id >> 24) ^ link.epoch.resets) % 0x100 == 0;
  const std::int64_t distance = format_.distance(link.expected, id);
  if (same_epoch && distance < 0 && link.next < link.epoch_end) {
    const TrackerDecision known = behind(link, link.next + static_cast<Sequence>(distance), window);
    if (known.verdict == TrackerVerdict::duplicate) return known;
  }
  if (has_following && same_epoch) {
    // The chunk after this one has the same id: it is true of one of them, and of the later one if a bit has flipped.
    if (following == id) return {TrackerVerdict::duplicate, link.next, link.epoch};
    // The chunk after this one goes on where the link was, and this one does not lie between: its id alone is wrong.
    const std::int64_t on = format_.distance(link.expected, following);
    const bool goes_on = !format_.has_ecr() || ((following >> 24) ^ link.epoch.resets) % 0x100 == 0;
    if (goes_on && on >= 1 && on <= std::int64_t{settings_.step_limit} && (distance < 0 || distance >= on)) return {};
  } else if (has_following && following == format_.advance(link.expected, 1)) {
    return {};
  }

  const std::uint32_t l1 = id & format_.low_mask();
  if (format_.has_ecr()) {
    const std::uint32_t ahead = ((id >> 24) - static_cast<std::uint32_t>(link.epoch.resets)) & 0xffU;
    if (ahead != 0 && ahead < 0x80) return cross(link, link.epoch.resets + ahead, l1, confirmed, window, majority_ahead);
    if (ahead != 0) {
      const auto older = epochs_.find(link.epoch.resets + ahead - 0x100);
      return older ? behind(link, older->base + l1, window) : TrackerDecision{};
    }
  } else {
    // No ECR counter to tell: the reset shows as a restart near zero, which others (or the trigger's list) may have announced.
    const std::int64_t forward = format_.distance(link.expected, id);
    const bool goes_on = forward >= 0 && forward <= std::int64_t{settings_.step_limit} &&
                         link.next + static_cast<Sequence>(forward) < link.epoch_end;
    const bool restart = l1 <= settings_.step_limit && !goes_on;
    const bool announced = restart && epochs_.find(link.epoch.resets + 1).has_value();
    // A wrap that some events were lost at is nearer than a reset from the middle of the counter's round.
    const bool far = forward < -2 * std::int64_t{settings_.step_limit} || forward > std::int64_t{format_.low_mask()} / 16;
    const bool plain = restart && !resets_untold() && far && !window.listed;
    // A low id that the link has not delivered yet may only be late.
    const bool again = was_delivered(link, l1);
    if ((announced && (again || confirmed)) || (plain && again))
      return cross(link, link.epoch.resets + 1, l1, confirmed, window, majority_ahead);
    if (!goes_on && epochs_.newest()->resets > link.epoch.resets) {
      if (const auto found = rejoin(link, id, confirmed, window)) return *found;
    }
  }

  const std::int64_t step = format_.distance(link.expected, id);
  const Sequence sequence = link.next + static_cast<Sequence>(step);
  if (step < 0) return behind(link, sequence, window);
  if (sequence >= link.epoch_end) return {};
  const bool small = step <= std::int64_t{settings_.step_limit};
  if (!small && !confirmed && !sparse(link, step, sequence, window) &&
      !(has_following && rises(id, following, sequence, window)))
    return {has_following ? TrackerVerdict::out_of_sequence : TrackerVerdict::hold, sequence, link.epoch};
  if (sequence > window.limit && !small && !majority_ahead)
    return {TrackerVerdict::out_of_sequence, sequence, link.epoch, true};
  if (sequence < window.oldest) return {TrackerVerdict::late, sequence, link.epoch};
  return {TrackerVerdict::take, sequence, link.epoch};
}

// A link that has skipped as much before, and lately: its last 64 events were not all delivered.
bool LinkTracker::sparse(const TrackedLink& link, std::int64_t step, Sequence sequence, const Window& window) const {
  return step <= 2 * std::int64_t{link.usual_step} && ~link.history != 0 && sequence <= window.limit;
}

// The ids of a sparse link rise, within what there is; after a wrong one that is too high they fall back.
bool LinkTracker::rises(std::uint32_t id, std::uint32_t following, Sequence sequence, const Window& window) const {
  const std::int64_t on = format_.distance(id, following);
  return on >= 1 && (!format_.has_ecr() || ((id ^ following) >> 24) == 0) &&
         sequence + static_cast<Sequence>(on) <= window.limit;
}

TrackerDecision LinkTracker::begin(std::uint32_t id, bool confirmed) const {
  const std::uint32_t l1 = id & format_.low_mask();
  const std::uint32_t ecr = format_.has_ecr() ? id >> 24 : 0;
  // Runs begin near L1 id 0; anything else could be a flipped bit, or left from before, and wants a second opinion.
  if ((l1 > epochs_.gap() || ecr != 0) && !confirmed) return {TrackerVerdict::hold, 0, {}};
  const Epoch epoch = epochs_.start(ecr, l1);
  return {TrackerVerdict::take, epoch.base + l1, epoch};
}

TrackerDecision LinkTracker::join(std::uint32_t id, bool confirmed, const Window& window, bool majority_ahead) const {
  Epoch epoch = *epochs_.newest();
  const std::uint32_t l1 = id & format_.low_mask();
  Sequence sequence = 0;
  if (format_.has_ecr()) {
    const std::uint32_t ahead = ((id >> 24) - static_cast<std::uint32_t>(epoch.resets)) & 0xffU;
    if (ahead != 0) {
      const std::uint64_t resets = ahead < 0x80 ? epoch.resets + ahead : epoch.resets + ahead - 0x100;
      const auto known = epochs_.find(resets);
      if (!known && !confirmed) return {TrackerVerdict::hold, 0, {}};
      if (!known && ahead >= 0x80) return {};
      epoch = known ? *known : epochs_.open(resets, l1);
    }
    sequence = epoch.base + l1;
  } else {
    // A narrow counter says only where within its span the link is; its neighbours say in which.
    epoch = epochs_.at(window.near);
    const Sequence near = std::max(window.near, epoch.begin);
    sequence = near + static_cast<Sequence>(format_.distance(format_.of(epoch, near), id));
  }
  const bool plausible =
      sequence + epochs_.gap() >= window.oldest && sequence <= window.head + epochs_.gap() + settings_.step_limit;
  if (!plausible && !confirmed) return {TrackerVerdict::hold, sequence, epoch};
  if (!plausible && sequence > window.limit && !majority_ahead)
    return {TrackerVerdict::out_of_sequence, sequence, epoch, true};
  if (sequence < window.oldest) return {TrackerVerdict::late, sequence, epoch};
  return {TrackerVerdict::take, sequence, epoch};
}

// A link that was silent while the others went over a reset has come back: they say in which epoch it is.
std::optional<TrackerDecision> LinkTracker::rejoin(const TrackedLink& link, std::uint32_t id, bool confirmed,
                                                   const Window& window) const {
  if (window.near <= link.next) return std::nullopt;
  const Epoch epoch = epochs_.at(window.near);
  if (epoch.resets <= link.epoch.resets) return std::nullopt;
  const Sequence near = std::max(window.near, epoch.begin);
  const Sequence sequence = near + static_cast<Sequence>(format_.distance(format_.of(epoch, near), id));
  if (sequence < std::max(window.oldest, epoch.first) || sequence > window.limit) return std::nullopt;
  if (!confirmed) return TrackerDecision{TrackerVerdict::hold, sequence, epoch};
  return TrackerDecision{TrackerVerdict::take, sequence, epoch};
}

// True also where nobody knows: the link was elsewhere when its counter passed the first ids.
bool LinkTracker::was_delivered(const TrackedLink& link, std::uint32_t l1) const {
  const Sequence pass = link.next - (link.expected & format_.low_mask());
  return link.low_pass != pass || l1 >= kLowIds || (link.low_seen >> l1 & 1U) != 0;
}

TrackerDecision LinkTracker::cross(const TrackedLink& link, std::uint64_t resets, std::uint32_t l1, bool confirmed,
                                   const Window& window, bool majority_ahead) const {
  const auto known = epochs_.find(resets);
  if (known) {
    const Sequence sequence = known->base + l1;
    if (sequence > window.head + settings_.step_limit + epochs_.gap() && !confirmed)
      return {TrackerVerdict::hold, sequence, *known};
    if (sequence > std::max(window.limit, known->base + epochs_.gap() + settings_.step_limit) && !majority_ahead)
      return {TrackerVerdict::out_of_sequence, sequence, *known, true};
    if (sequence < window.oldest) return {TrackerVerdict::late, sequence, *known};
    return {TrackerVerdict::take, sequence, *known};
  }
  // A flipped bit could pass for a reset only while the link itself is near the start of an epoch.
  const std::uint32_t at = link.expected & format_.low_mask();
  const bool clear =
      format_.has_ecr() && resets == link.epoch.resets + 1 && l1 <= settings_.step_limit && at > 2 * settings_.step_limit;
  if (!clear && !confirmed) return {TrackerVerdict::hold, 0, link.epoch};
  const Epoch epoch = epochs_.open(resets, l1);
  return {TrackerVerdict::take, epoch.base + l1, epoch};
}

TrackerDecision LinkTracker::behind(const TrackedLink& link, Sequence sequence, const Window& window) const {
  const Sequence back = link.next - sequence;
  if (back >= 1 && back <= kHistory && (link.history >> (back - 1) & 1U) != 0)
    return {TrackerVerdict::duplicate, sequence, link.epoch};
  if (sequence < window.oldest) return {TrackerVerdict::late, sequence, link.epoch};
  return {TrackerVerdict::out_of_sequence, sequence, link.epoch};
}

void LinkTracker::settle(TrackedLink& link, const TrackerDecision& decision) const {
  const Sequence skipped = link.synchronised ? decision.sequence - link.next : kHistory;
  if (~link.history == 0) link.usual_step = 0;
  if (skipped > settings_.step_limit && link.synchronised && link.epoch.resets == decision.epoch.resets) {
    const std::uint32_t faded = link.usual_step - link.usual_step / 8;
    link.usual_step = std::max(faded, static_cast<std::uint32_t>(std::min<Sequence>(skipped, kLongestUsualStep)));
  }
  link.history = skipped >= kHistory ? 0 : link.history << skipped;
  link.next = decision.sequence;
  if (!link.synchronised || link.epoch.resets != decision.epoch.resets)
    link.epoch_end = std::numeric_limits<Sequence>::max();
  link.epoch = decision.epoch;
  link.expected = format_.of(link.epoch, link.next);
  link.synchronised = true;
}

}  // namespace rodeo::readout
