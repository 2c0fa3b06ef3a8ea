#include "readout/sequence/trigger_numbers.h"

#include <algorithm>

namespace rodeo::readout {

std::optional<Sequence> TriggerNumbers::find(Sequence from, Sequence to, std::uint32_t id, const std::uint16_t* bcid) const {
  if (numbers_.segments().empty()) return std::nullopt;
  std::optional<Sequence> found;
  numbers_.for_each_number(id, from, to, [&](Sequence number) {
    const TriggerEntries::Entry& entry = entries_.at(number);
    const bool differs =
        bcid != nullptr && settings_.has_bcid && entry.state == TriggerEntries::kListed && entry.bcid != *bcid;
    if (entry.state == TriggerEntries::kNoEvent || differs) return false;
    found = number;
    return true;
  });
  return found;
}

Sequence TriggerNumbers::number_after(Sequence number, std::uint64_t events) const {
  const Segments& segments = numbers_.segments();
  for (;; ++number) {
    while (number < entries_.end() && entries_.at(number).state == TriggerEntries::kNoEvent &&
           segments.segment_of(number).end < entries_.end())
      number = segments.segment_of(number).end;
    if (events-- == 0) return number;
  }
}

bool TriggerNumbers::repeats_soon(std::uint32_t id) const {
  if (settings_.format.has_ecr()) return false;
  const std::uint64_t soon = 2 * settings_.reach;
  const auto listed = static_cast<std::uint64_t>(numbers_.segments().newest().place(entries_.end()).index);
  return id <= soon || ((id - listed) & settings_.format.low_mask()) <= soon;
}

// An entry may append up to `most` numbers: the entries of a leap and those that they leave out, and the entry that waits.
bool TriggerNumbers::has_room(Sequence oldest) const {
  if (!numbers_.begun()) return true;
  const std::uint64_t most = kLeap * (1 + settings_.step) + 1;
  const bool known = !numbers_.segments().nearly_full() || numbers_.segments()[1].first <= oldest;
  return known && entries_.end() + most + gap() <= oldest + entries_.size();
}

bool TriggerNumbers::announce(const ListedTrigger& trigger, std::uint64_t now, Sequence oldest) {
  held_ = !has_room(oldest);
  if (held_) return false;
  numbers_.segments().forget(oldest);
  judge_pending(&trigger, false);
  judge(trigger, nullptr, false);
  if (pending_) pending_since_ = now;
  return true;
}

void TriggerNumbers::end() {
  judge_pending(nullptr, true);
  ended_ = true;
  links_.judge_again();
}

void TriggerNumbers::judge_overdue_entry(std::uint64_t now) {
  if (pending_ && now >= pending_since_ + settings_.timeout_ns / 4) judge_pending(nullptr, true);
}

void TriggerNumbers::judge_pending(const ListedTrigger* following, bool final) {
  if (const auto pending = std::exchange(pending_, std::nullopt)) judge(*pending, following, final);
}

// The expected entry, and the first of the next epoch, are taken at once.
void TriggerNumbers::judge(const ListedTrigger& trigger, const ListedTrigger* following, bool final) {
  if (!numbers_.begun()) return judge_first(trigger, following, final);
  const Place next = numbers_.segments().newest().place(entries_.end());
  const Place place = Numbers::extended(next, trigger.id);
  const bool plain = place == next || (place.resets == next.resets + 1 && place.index == 0);
  if (!plain && following == nullptr && !final) {
    pending_ = trigger;
    return;
  }
  const bool steps = numbers_.is_near(next, place, 1);
  const Place after = following == nullptr ? place : Numbers::extended(place, following->id);
  const bool goes_on =
      following == nullptr || (numbers_.follows(place, after, 1) && (steps || after.resets == place.resets));
  if (!plain && (!goes_on || place < next || (final && !steps)))
    return;  // a flipped id: appended as skipped when the next comes
  if (!steps) return leap(next, place, trigger);
  leap_.clear();
  if (place.resets != next.resets) open({place.resets, 0}, place);
  append(place, trigger);
}

void TriggerNumbers::judge_first(const ListedTrigger& trigger, const ListedTrigger* following, bool final) {
  const Place first{kResetsOrigin + (trigger.id >> 24), trigger.id & 0xffffffU};
  if (following == nullptr && !final) {
    pending_ = trigger;
    return;
  }
  if (following != nullptr && !numbers_.follows(first, Numbers::extended(first, following->id), 1)) {
    if (leap_.size() == settings_.step) leap_.erase(leap_.begin());
    leap_.emplace_back(first, trigger);  // it is flipped, or the next entry is
    return;
  }
  // The run begins with the earliest entry from which this one goes on.
  const auto earliest = std::ranges::find_if(leap_, [&](const auto& entry) {
    return entry.first.resets == first.resets && numbers_.follows(entry.first, first, 1);
  });
  const auto [begins, its_trigger] = earliest == leap_.end() ? std::pair(first, trigger) : *earliest;
  leap_.clear();
  links_.begin_run();
  numbers_.begin(begins);
  entries_.begin(kRunFirst);
  for (const Link& link : links_) numbers_.enter_segment(link.sequence, numbers_.segments().newest());
  append(begins, its_trigger);
  append(first, trigger);
  links_.judge_again();
}

// Believes entries that lie elsewhere once the list has gone on from there: two in a row may have the same flipped bit.
void TriggerNumbers::leap(const Place& next, const Place& place, const ListedTrigger& trigger) {
  const bool goes_on =
      !leap_.empty() && leap_.back().first.resets == place.resets && numbers_.follows(leap_.back().first, place, 1);
  if (!goes_on) leap_.clear();
  leap_.emplace_back(place, trigger);
  if (leap_.size() < kLeap) return;
  const Place first = leap_.front().first;
  if (first.resets == next.resets) numbers_.add_skipped(static_cast<std::uint64_t>(first.index - next.index));
  open(first, first);
  for (const auto& [each, entry] : leap_) append(each, entry);
  leap_.clear();
}

// The next segment begins above all numbers that links have brought of this one.
void TriggerNumbers::open(const Place& lowest, const Place& brought) {
  numbers_.segments().open(lowest, brought, std::max(entries_.end(), links_.frontier()) + gap(), entries_.end());
  links_.judge_again();
}

// Appends an entry of the newest segment. The entries before it that the list has lost are events, too.
void TriggerNumbers::append(const Place& place, const ListedTrigger& trigger) {
  const Segment& segment = numbers_.segments().newest();
  const Sequence number = segment.base + static_cast<Sequence>(place.index);
  for (Sequence each = std::max(entries_.end(), segment.first); each <= number; ++each) {
    entries_.append(each, {.l1id = segment.l1id(each),
                           .bcid = trigger.bcid,
                           .type = trigger.type,
                           .state = each < number ? TriggerEntries::kSkipped : TriggerEntries::kListed,
                           .rounds = segment.rounds_at(each)});
  }
}

}  // namespace rodeo::readout
