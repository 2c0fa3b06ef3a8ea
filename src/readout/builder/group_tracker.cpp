#include "readout/builder/group_tracker.h"

#include <algorithm>

namespace rodeo::readout {
namespace {

constexpr Sequence kOrigin = Sequence{1} << 32;
constexpr std::uint64_t kLargestGap = 64;

}  // namespace

GroupTracker::GroupTracker(const Settings& settings, const IdFormat& format, MissingEvents& host)
    : settings_(settings),
      format_(format),
      mask_(settings.window - 1),
      gap_(std::min({kLargestGap, (std::uint64_t{format.low_mask()} + 1) / 4, settings.window / 4})),
      host_(host),
      came_(settings.window / 64),
      void_(settings.window / 64),
      habits_(settings.links),
      listed_bcids_(settings.trigger_list ? settings.window : 0, kNotListed),
      turn_(settings.links) {}

Decision GroupTracker::decide_slowly(std::uint32_t link, std::uint32_t id, bool confirmed) {
  const Decision decision = place(id, confirmed);
  if (decision.verdict != Verdict::take) return decision;
  if (surprising(link, decision.sequence)) {
    if (!confirmed) return {Verdict::hold, decision.sequence, decision.epoch};
    if (turn_of_another(link, decision.sequence)) {
      habits_[link].strays = true;
      if (!most_stray()) return {Verdict::out_of_sequence, decision.sequence, decision.epoch};
      // The events are dealt anew.
      for (Habit& habit : habits_) {
        habit.times = 0;
        habit.strays = false;
      }
    }
  }
  accept(link, decision.sequence);
  return decision;
}

// Another link has long brought this event's turn, and lately.
bool GroupTracker::turn_of_another(std::uint32_t link, Sequence sequence) const {
  const std::uint32_t owner = likely_link(sequence);
  const Habit& habit = habits_[owner];
  return owner != link && !habit.removed && !habit.strays && habit.times >= kHabit && sequence > habit.last &&
         sequence - habit.last <= kHabit * habit.step + 2 * std::uint64_t{settings_.step_limit} &&
         (sequence - habit.last) % habit.step == 0;
}

bool GroupTracker::most_stray() const {
  std::size_t active = 0;
  std::size_t stray = 0;
  for (const Habit& habit : habits_) {
    if (habit.removed) continue;
    ++active;
    stray += habit.strays ? 1 : 0;
  }
  return 2 * stray > active;
}

bool GroupTracker::contradicts(std::uint32_t link, std::uint32_t id) const {
  const Habit& habit = habits_[link];
  if (habit.last < epoch_.base || id != format_.of(epoch_, habit.next() + habit.step)) return false;
  const Sequence expected = habit.next();
  return expected >= oldest_ && (expected > head_ || !bit(came_, expected));
}

Decision GroupTracker::place(std::uint32_t id, bool confirmed) {
  const std::uint32_t l1 = id & format_.low_mask();
  const std::uint32_t ecr = format_.has_ecr() ? id >> 24 : 0;
  if (!begun_) {
    // Streams begin near L1 id 0; anything else could be a flipped bit, or left from before.
    if ((l1 > settings_.step_limit || ecr != 0) && !confirmed) return {Verdict::hold, 0, {}};
    begin(ecr, l1);
    return {Verdict::take, epoch_.base + l1, epoch_};
  }
  Sequence sequence = 0;
  const std::uint32_t ahead = format_.has_ecr() ? (ecr - static_cast<std::uint32_t>(epoch_.resets)) & 0xffU : 0;
  if (ahead == 0) {
    const std::int64_t step = format_.distance(expected_, id);
    if (step > std::int64_t{settings_.step_limit} && !confirmed) return {Verdict::hold, 0, epoch_};
    sequence = head_ + 1 + static_cast<Sequence>(step);
    if (sequence < epoch_.base) return {Verdict::out_of_sequence, sequence, epoch_};
    // The stream has jumped: nobody says that what it jumped over was ever triggered.
    if (step > std::int64_t{settings_.step_limit} && !settings_.trigger_list) raise_head(sequence - 1, true);
  } else if (ahead < 0x80) {
    // A flipped bit could pass for a reset only while the stream is near the start of an epoch.
    const std::uint32_t at = expected_ & format_.low_mask();
    const bool clear = ahead == 1 && l1 <= settings_.step_limit && at > 2 * settings_.step_limit;
    if (!clear && !confirmed) return {Verdict::hold, 0, epoch_};
    cross(epoch_.resets + ahead);
    sequence = epoch_.base + l1;
  } else {
    if (epoch_.resets + ahead - 0x100 != previous_.resets) return {Verdict::out_of_sequence, 0, epoch_};
    sequence = previous_.base + l1;
    if (sequence >= epoch_.base) return {Verdict::out_of_sequence, sequence, previous_};
  }
  if (sequence < oldest_) {
    const bool known = sequence + settings_.window > head_ && bit(came_, sequence);
    return {known ? Verdict::duplicate : Verdict::late, sequence, epoch_};
  }
  if (sequence <= head_ && bit(came_, sequence)) return {Verdict::duplicate, sequence, epoch_};
  return {Verdict::take, sequence, epoch_};
}

bool GroupTracker::agrees(std::uint32_t held_id, std::uint32_t id) const {
  if (format_.has_ecr() && (held_id ^ id) >> 24 != 0) return false;
  // Half of what a jump leaves between: a chunk of the stream as it was must not speak for one that has just left it.
  const std::int64_t near = std::max<std::int64_t>(settings_.step_limit / 2, 1);
  const std::int64_t step = format_.distance(held_id, id);
  return step != 0 && step >= -near && step <= near;
}

void GroupTracker::begin(std::uint32_t ecr, std::uint32_t l1) {
  epoch_ = previous_ = Epoch{ecr, kOrigin, kOrigin, kOrigin + l1};
  // Other links may bring events a little older than the first: there is room for them, and no claim that they exist.
  oldest_ = kOrigin + l1 - std::min<std::uint64_t>(gap_, l1);
  head_ = oldest_ - 1;
  begun_ = true;
  raise_head(kOrigin + l1 - 1, true);
}

void GroupTracker::cross(std::uint64_t resets) {
  previous_ = epoch_;
  const Sequence base = head_ + 1 + gap_;
  raise_head(base - 1, true);
  epoch_ = Epoch{resets, base, base, base};
}

void GroupTracker::raise_head(Sequence to, bool is_void) {
  while (head_ < to) {
    if (head_ + 1 - oldest_ >= settings_.window) pass_oldest();
    ++head_;
    const std::uint64_t mine = std::uint64_t{1} << (head_ & 63);
    came_[(head_ & mask_) >> 6] &= ~mine;
    if (is_void)
      void_[(head_ & mask_) >> 6] |= mine;
    else
      void_[(head_ & mask_) >> 6] &= ~mine;
    if (!listed_bcids_.empty()) listed_bcids_[head_ & mask_] = kNotListed;
  }
  expected_ = format_.of(head_ + 1 >= epoch_.base ? epoch_ : previous_, head_ + 1);
}

void GroupTracker::pass_oldest() {
  const Sequence sequence = oldest_++;
  if (!bit(came_, sequence) && !bit(void_, sequence)) host_.missing(sequence);
  while (oldest_ <= head_ && bit(came_, oldest_)) ++oldest_;
}

void GroupTracker::give_up_passed() {
  Sequence passed = head_;
  for (const Habit& habit : habits_) {
    if (!habit.removed) passed = std::min(passed, habit.newest);
  }
  give_up(passed);
}

void GroupTracker::give_up(Sequence bound) {
  while (has_gap() && oldest_ <= bound) pass_oldest();
}

void GroupTracker::announce(std::uint32_t id, std::uint16_t bcid) {
  const Decision decision = place(id, true);
  if (decision.verdict != Verdict::take) return;
  if (decision.sequence > head_) raise_head(decision.sequence, false);
  listed_ = std::max(listed_, decision.sequence);
  listed_bcids_[decision.sequence & mask_] = bcid;
}

}  // namespace rodeo::readout
