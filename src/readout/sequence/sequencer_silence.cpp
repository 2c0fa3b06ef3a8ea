// For a reader whose links were all silent, or begin late. The readers of other groups, ROBs and cards show where its links
// are. If there are none, the input's clock shows how many events may have been missed.
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "readout/sequence/sequencer.h"

namespace rodeo::readout {

bool Sequencer::read(std::size_t reader, std::uint64_t clock, std::optional<std::uint64_t> quiet_until) {
  Reader& of = readers_[reader];
  of.clock = clock;
  if (!quiet_until) return false;
  find_silent(reader, *quiet_until, true);
  of.drained = *quiet_until;
  if (of.standing != nullptr) of.standing->tell_nothing(*quiet_until);
  return of.silent && !std::exchange(of.asked, true) && of.standing != nullptr && of.others->has_others();
}

void Sequencer::pass(std::size_t reader, std::uint64_t clock, bool drained) {
  Reader& of = readers_[reader];
  of.clock = clock;
  const Sequence came = of.pace->came();
  if (!begun() || settings_.listed || came == 0) {
    if (of.standing != nullptr) of.standing->tell_nothing(clock);
  } else if (came != of.told) {
    of.told = came;
    of.silent = of.asked = false;
    of.rate.bring(clock, came);
    if (of.standing != nullptr) tell(of, clock);
  } else {
    if (drained) find_silent(reader, clock, false);
    if (of.standing != nullptr) of.standing->tell_nothing(clock);
  }
  if (drained) of.drained = clock;
}

// While chunks wait for a decision, the reader tells no place: they may lie beyond it.
void Sequencer::tell(Reader& reader, std::uint64_t clock) {
  if (reader.waiting != 0) return reader.standing->tell_nothing(clock);
  reader.standing->tell({clock, place_of(reader), reader.told, telling_period(reader.told)});
  compare(reader, clock);
}

// With few bits: measures how far this reader and the others are apart in an undisturbed run.
void Sequencer::compare(Reader& reader, std::uint64_t clock) {
  if (wide(telling_period(reader.told)) || clock < reader.compared_at + settings_.timeout_ns || !reader.others->has_others())
    return;
  reader.compared_at = clock;
  reader.apart -= (reader.apart + 63) / 64;
  const auto at = reader.others->at(*reader.standing, clock, clock);
  const Place own = place_of(reader);
  if (!at || at->low.place.resets != own.resets) return;
  reader.apart = std::max(reader.apart, static_cast<std::uint64_t>(std::abs(at->low.place.index - own.index)));
}

// The reader has read all that was sent up to this clock. Its links are silent if the others have come further by a quarter
// of the period of its ids, or if so many events would have come at the recent rate.
void Sequencer::find_silent(std::size_t reader, std::uint64_t clock, bool exact) {
  Reader& of = readers_[reader];
  if (of.silent || settings_.listed || !begun() || of.told == 0 || of.told != of.pace->came()) return;
  const std::uint64_t silent_for = of.rate.silent_for(clock);
  if (of.waiting != 0 && silent_for < 2 * settings_.timeout_ns) return;  // what waits may be decided
  const std::uint64_t quarter = telling_period(of.told) / 4;
  const auto passed = passed_by_others(of, clock);
  of.silent = passed && *passed >= std::max(quarter, 2 * of.apart);
  // Resets show what was missed, until their counter has come half round.
  const bool shows = settings_.format.has_ecr() && !exact;
  if (!shows || round_of_resets(of.told))
    of.silent |= of.rate.missed(clock) >= (shows ? 2 * quarter : quarter) && silent_for >= settings_.timeout_ns;
  if (!of.silent) return;
  if (of.standing != nullptr) of.standing->lapse();
  for (State& state : states_) {
    const bool known = state.link->here.load(std::memory_order_relaxed) || state.away();
    if (state.reader != reader || !known || state.link->doubtful) continue;
    state.was_silent = state.link->lost = true;
    state.link->end = 0;
  }
}

// Events by which the others are beyond this reader at this clock; nothing if they have not read so far.
std::optional<std::uint64_t> Sequencer::passed_by_others(const Reader& reader, std::uint64_t clock) const {
  if (reader.standing == nullptr) return std::nullopt;
  const Place own = place_of(reader);
  const auto events = reader.others->events_since(*reader.standing, own, clock);
  const bool read =
      events && (*events >= telling_period(reader.told) / 4 || reader.others->has_read(*reader.standing, clock));
  return read ? events : std::nullopt;
}

// Called at the first chunk of a link after a silence of all links of its reader.
void Sequencer::end_silence(State& state, std::uint32_t id) {
  LinkSequence& link = *state.link;
  state.was_silent = link.lost = false;
  Reader& of = readers_[state.reader];
  const std::uint64_t quarter = telling_period(of.told) / 4;
  const std::uint32_t goes_on =
      settings_.format.of(state.going.resets, static_cast<std::uint64_t>(state.going.index));  // where it went away to
  if (state.away() && id == goes_on) return;
  const auto passed = passed_by_others(of, of.drained);
  const bool paused = !passed || *passed < quarter;  // the others were silent, too
  if (paused && settings_.format.has_ecr() && !state.away() && id == settings_.format.of(link.resets + 1, 0)) return;
  if (id != link.expected || state.away()) return lose_place(state);
  if (passed && paused) return;
  // It goes on with the next id: after a pause, or because its data were late. After a loss this happens by chance. With few
  // bits the chance is not small, but there readers are often that far apart.
  if (!wide(4 * quarter)) {
    of.apart = std::max(of.apart, passed.value_or(0));
    return;
  }
  const auto stand = stand_of_peers(state, true);
  const auto others_contradict = [&] {
    if (settings_.format.has_ecr() && stand->of_others) return near_place(*stand, id) != place_of(link);
    return stand->number == 0 || nearest_number(stand->number, id) != link.position();
  };
  link.doubtful = stand && others_contradict();
  state.keeps = link.doubtful;
  state.doubt_told = false;
  state.lowest = link.position();
}

// Where the others may have been between two looks of this reader: the last one that found nothing, and the one that found
// the chunk.
std::optional<Sequencer::PeersAt> Sequencer::stand_of_others(const State& of) const {
  const Reader& reader = readers_[of.reader];
  if (reader.standing == nullptr || reader.drained == 0) return std::nullopt;
  const auto at = reader.others->at(*reader.standing, reader.drained, reader.clock);
  if (!at) return std::nullopt;
  const Place& low = at->low.place;
  const Place& high = at->high.place;
  Place middle = low;
  if (low.resets == high.resets) middle.index += (high.index - low.index) / 2;
  const Sequence number = begun() ? segments_.number(middle).value_or(0) : 0;
  const std::uint64_t own_period = number != 0 ? telling_period(number) : settings_.format.period();
  const std::uint64_t period = std::min(own_period, at->high.period);
  const bool few_epochs = high.resets - low.resets <= (settings_.format.has_ecr() ? kResetRound / 4 : 1);
  // Only one place has the id within the range of the others and, around it, the distance of readers.
  const bool near = wide(own_period) ? at->events() < period / 4
                                     : reader.compared_at != 0 && reader.apart < period / 4 &&
                                           at->events() + 2 * reader.apart < period / 4 * 3;
  return PeersAt{
      .number = number, .together = false, .proves = few_epochs && near, .of_others = true, .place = middle, .range = *at};
}

// The place with this id that is nearest to the others.
Place Sequencer::near_place(const PeersAt& peers, std::uint32_t id) const {
  const IdFormat& format = settings_.format;
  if (format.has_ecr()) return extended(peers.place, id);
  const auto period = static_cast<std::int64_t>(format.period());
  const Place& low = peers.range.low.place;
  const Place& high = peers.range.high.place;
  const std::int64_t ahead = (id - peers.place.index) & (period - 1);
  const std::int64_t index = peers.place.index + (ahead < period / 4 ? ahead : ahead - period);
  if (!format.shows_restarts()) return {low.resets, index};
  // A reset shows only as a restart: ids far from the others' are of another epoch, near zero of the next one, else of the
  // last.
  const auto reach = static_cast<std::int64_t>(settings_.reach);
  if (low.resets != high.resets) return {id <= high.index + reach ? high.resets : low.resets, id};
  if (id <= high.index - low.index + reach && index < low.index - reach) return {low.resets + 1, id};
  if (index < 0 || (low.resets > kResetsOrigin && index > high.index + reach)) return {low.resets - 1, id};
  return {low.resets, index};
}

// The place of the first chunk of all these links. Other readers may have gone far by then. Nothing if the event lies before
// their first one.
std::optional<Place> Sequencer::late_place(State& state, std::uint32_t id) const {
  const auto stand = stand_of_others(state);
  const Reader& reader = readers_[state.reader];
  const std::uint64_t begun = reader.standing == nullptr ? ~std::uint64_t{0} : reader.others->begun(*reader.standing);
  const bool late = reader.drained > begun && reader.drained - begun >= 10 * settings_.timeout_ns;
  if (!stand) {  // the others have told nothing so far, or nothing of late
    state.link->doubtful = late;
    return first_place(id);
  }
  const bool after_reset = !settings_.format.has_ecr() && stand->place.resets > kResetsOrigin;
  const Place place = near_place(*stand, id);
  if (place.index < 0 || place.resets < kResetsOrigin) return std::nullopt;
  state.link->doubtful = (late || after_reset) && !stand->proves;
  return place;
}

// True if another link has a proven place.
bool Sequencer::has_witness(const State& of) const {
  return std::ranges::any_of(states_, [&](const State& state) {
    return &state != &of && is_here(state) && !state.link->doubtful && !state.was_silent;
  });
}

}  // namespace rodeo::readout
