#include "readout/sequence/silences.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace rodeo::readout {

bool Silences::begin_page(std::size_t reader, std::uint64_t clock, std::optional<std::uint64_t> quiet_until) {
  Reader& of = links_.reader(reader);
  of.clock = clock;
  if (!quiet_until) return false;
  check_silence(reader, *quiet_until, true);
  of.drained = *quiet_until;
  if (of.track != nullptr) of.track->report_clock(*quiet_until);
  return of.silent && !std::exchange(of.asked_others, true) && of.has_others();
}

void Silences::end_page(std::size_t reader, std::uint64_t clock, bool drained) {
  Reader& of = links_.reader(reader);
  of.clock = clock;
  const Sequence head = of.pace->own_head();
  if (numbers_.begun() && !settings_.listed && head != of.head) {
    of.head = head;
    of.silent = of.asked_others = false;
    of.rate.update(clock, head);
    report_place(of, clock);
  } else {
    if (drained) check_silence(reader, clock, false);
    if (of.track != nullptr) of.track->report_clock(clock);
  }
  if (drained) of.drained = clock;
}

// While chunks wait for a decision, the reader shows no place: they may lie beyond it.
void Silences::report_place(Reader& reader, std::uint64_t clock) const {
  if (reader.track == nullptr) return;
  if (reader.waiting != 0) return reader.track->report_clock(clock);
  reader.track->report({clock, place_of(reader), reader.head, numbers_.unambiguous_period(reader.head)});
  measure_distance(reader, clock);
}

// With few bits: measures how far this reader and the others are apart in an undisturbed run.
void Silences::measure_distance(Reader& reader, std::uint64_t clock) const {
  if (numbers_.is_wide(numbers_.unambiguous_period(reader.head)) || clock < reader.compared_at + settings_.timeout_ns ||
      !reader.tracks->has_others())
    return;
  reader.compared_at = clock;
  reader.distance -= (reader.distance + 63) / 64;
  const auto at = reader.tracks->range_between(*reader.track, clock, clock);
  const Place own = place_of(reader);
  if (!at || at->low.place.resets != own.resets) return;
  reader.distance = std::max(reader.distance, static_cast<std::uint64_t>(std::abs(at->low.place.index - own.index)));
}

// The reader has read all that was sent up to this clock: its links may be silent. `exact`: the clock is exact.
void Silences::check_silence(std::size_t reader, std::uint64_t clock, bool exact) {
  Reader& of = links_.reader(reader);
  if (of.silent || !is_silent(of, clock, exact)) return;
  of.silent = true;
  if (of.track != nullptr) of.track->clear();
  for (Link& link : links_) {
    if (link.reader != reader || !(link.here() || link.away()) || link.sequence.doubtful) continue;
    link.was_silent = link.sequence.lost = true;
    link.sequence.end = 0;
  }
}

// True if the others have come further by a quarter of the period of the reader's ids, or if so many events would have come
// at the recent rate.
bool Silences::is_silent(const Reader& reader, std::uint64_t clock, bool exact) const {
  if (settings_.listed || !numbers_.begun() || reader.head == 0 || reader.head != reader.pace->own_head()) return false;
  const std::uint64_t silent_for = reader.rate.silent_for(clock);
  if (reader.waiting != 0 && silent_for < 2 * settings_.timeout_ns) return false;  // what waits may be decided
  const std::uint64_t quarter = this->quarter(reader);
  const auto passed = passed_by_others(reader, clock);
  if (passed && *passed >= std::max(quarter, 2 * reader.distance)) return true;
  // Resets show what was missed, until their counter has come half round.
  const bool resets_show = settings_.format.has_ecr() && !exact;
  if (resets_show && !numbers_.resets_wrap_first(reader.head)) return false;
  return reader.rate.missed_events(clock) >= (resets_show ? 2 * quarter : quarter) && silent_for >= settings_.timeout_ns;
}

std::optional<std::uint64_t> Silences::passed_by_others(const Reader& reader, std::uint64_t clock) const {
  if (reader.track == nullptr) return std::nullopt;
  const auto events = reader.tracks->events_since(*reader.track, place_of(reader), clock);
  const bool read = events && (*events >= numbers_.unambiguous_period(reader.head) / 4 ||
                               reader.tracks->any_other_read_to(*reader.track, clock));
  return read ? events : std::nullopt;
}

std::optional<PeerPlace> Silences::find_other_readers(const Reader& reader) const {
  if (reader.track == nullptr || reader.drained == 0) return std::nullopt;
  const auto at = reader.tracks->range_between(*reader.track, reader.drained, reader.clock);
  if (!at) return std::nullopt;
  const Place& low = at->low.place;
  const Place& high = at->high.place;
  Place middle = low;
  if (low.resets == high.resets) middle.index += (high.index - low.index) / 2;
  const Sequence number = numbers_.begun() ? numbers_.number(middle).value_or(0) : 0;
  const std::uint64_t own_period = number != 0 ? numbers_.unambiguous_period(number) : settings_.format.period();
  const std::uint64_t period = std::min(own_period, at->high.period);
  const bool few_epochs = high.resets - low.resets <= (settings_.format.has_ecr() ? kResetRound / 4 : 1);
  // Only one place has the id within the range of the others and, around it, the distance of readers.
  const bool near = numbers_.is_wide(own_period) ? at->events() < period / 4
                                                 : reader.compared_at != 0 && reader.distance < period / 4 &&
                                                       at->events() + 2 * reader.distance < period / 4 * 3;
  return PeerPlace{
      .read = PeerPlace::Read::elsewhere, .proves = few_epochs && near, .number = number, .place = middle, .range = *at};
}

Place Silences::place_beside(const PeerPlace& others, std::uint32_t id) const {
  const IdFormat& format = settings_.format;
  if (format.has_ecr()) return Numbers::extended(others.place, id);
  const auto period = static_cast<std::int64_t>(format.period());
  const Place& low = others.range.low.place;
  const Place& high = others.range.high.place;
  const std::int64_t ahead = (id - others.place.index) & (period - 1);
  const std::int64_t index = others.place.index + (ahead < period / 4 ? ahead : ahead - period);
  if (!format.shows_restarts()) return {low.resets, index};
  // A reset shows only as a restart: ids far from the others' are of another epoch, near zero of the next one, else of the
  // last.
  const auto reach = static_cast<std::int64_t>(settings_.reach);
  if (low.resets != high.resets) return {id <= high.index + reach ? high.resets : low.resets, id};
  if (id <= high.index - low.index + reach && index < low.index - reach) return {low.resets + 1, id};
  if (index < 0 || (low.resets > kResetsOrigin && index > high.index + reach)) return {low.resets - 1, id};
  return {low.resets, index};
}

bool Silences::began_late(const Reader& reader) const {
  const std::uint64_t begun = reader.track == nullptr ? ~std::uint64_t{0} : reader.tracks->begin_clock(*reader.track);
  return reader.drained > begun && reader.drained - begun >= 10 * settings_.timeout_ns;
}

}  // namespace rodeo::readout
