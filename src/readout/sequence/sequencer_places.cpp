// The place of a link that was silent for long, by its live peers and by BCIDs. Its chunks are flagged until the place is
// proven.
#include "readout/sequence/sequencer.h"

#include <algorithm>
#include <functional>

namespace rodeo::readout {
namespace {

Sequence distance(Sequence a, Sequence b) { return a > b ? a - b : b - a; }

}  // namespace

// Called before a chunk of the link is judged: has the link lost its place?
void Sequencer::find_lost(State& state, std::uint32_t id) {
  LinkSequence& link = *state.link;
  if (settings_.listed || !begun()) {
    link.lost = state.was_silent = false;
    return;
  }
  if (state.was_silent) return end_silence(state, id);
  if (link.lost || (link.questioned() && id != link.expected)) return lose_place(state);
  const bool here = link.here.load(std::memory_order_relaxed);
  if (!here && !state.away() && !state.link->doubtful) {
    // Nothing is known of the link. It is in doubt if the run has gone on for so long that its id may be of another round.
    // The limit is three times as high while all data so far were read at once. A first block as long as the way of the
    // others shows that the link began with them.
    const std::uint64_t limit = clock(state) > begun_at_ ? link.pace->limit() : 3 * link.pace->limit();
    link.doubtful = link.pace->head() > run_first_ + std::max(limit, link.span + link.pace->quarter());
    state.lowest = link.position();
  }
  if (!here || !beyond_segment(state)) return;
  // Others have crossed a reset, long ago or while this link was silent for a quarter of an epoch: its id may be of the new
  // epoch.
  const auto stand = stand_of_peers(state);
  const Sequence end = segments_.of(link.position()).end;
  if (!stand || !stand->proves || stand->of_others || stand->number < end) return;
  const std::uint64_t steps = std::uint64_t{settings_.step} * spread(link);
  const std::uint64_t free = settings_.reach + 2 * steps;  // numbers between two segments
  const bool long_ago = stand->number > end + settings_.reach + steps;
  const bool silent = stand->together && stand->number - link.position() > free + telling_period(stand->number) / 4;
  if (long_ago || silent) lose_place(state);
}

void Sequencer::lose_place(State& state) {
  LinkSequence& link = *state.link;
  link.lost = false;
  if (state.away()) {
    follow(state);
    settle_aside(state);
    if (state.away()) refute(state);
  }
  link.here.store(false, std::memory_order_relaxed);
  link.doubtful = true;
  state.lowest = link.position();
  state.doubt_told = state.was_silent = state.keeps = false;
  state.evidence.forget();
}

// Without a reset counter, an id of the link's segment may also be one of the next segment.
bool Sequencer::beyond_segment(const State& state) const {
  return !settings_.format.has_ecr() && !settings_.listed && segments_.of(state.link->position()).end != kNoEnd;
}

// The foremost but one of the links that were read with it; if there are none, of all others. Of three, one wrong counter
// does no harm.
std::optional<Sequencer::PeersAt> Sequencer::stand_of_peers(const State& of, bool asks_others) const {
  const auto collect = [&](bool same_reader) {
    stands_.clear();
    for (const State& state : states_) {
      if (&state != &of && (state.reader == of.reader) == same_reader && is_here(state) && !state.link->doubtful &&
          !state.was_silent)
        stands_.push_back(state.link->position());
    }
  };
  collect(true);
  const bool read_together = !stands_.empty();
  if (!read_together) collect(false);
  if (stands_.empty()) return asks_others || of.link->doubtful ? stand_of_others(of) : std::nullopt;
  const std::size_t second = std::min<std::size_t>(1, stands_.size() - 1);
  std::ranges::nth_element(stands_, stands_.begin() + static_cast<std::ptrdiff_t>(second), std::greater<>());
  const Sequence number = stands_[second];
  const std::uint64_t period = telling_period(number);
  // Links of different readers may be apart by the events that both may have open.
  return PeersAt{.number = number,
                 .together = read_together,
                 .proves = read_together ? of.link->pace->tells(period) : period / 4 >= settings_.window,
                 .place = segments_.of(number).place(number)};
}

// The number of events from one with an id to the next one with the same id: of the last epochs, or of as many epochs as the
// reset counter tells apart.
std::uint64_t Sequencer::telling_period(Sequence number) const {
  const bool has_ecr = settings_.format.has_ecr();
  const std::uint64_t epochs = has_ecr ? kResetRound : 1;
  std::uint64_t period = settings_.format.period();
  const std::size_t last = segments_.find(number);
  for (std::size_t i = last - std::min<std::size_t>(last, 2); i <= last; ++i) {
    if (segments_[i].end == kNoEnd || (has_ecr && segments_[i + 1].resets != segments_[i].resets + 1)) continue;
    period = std::min(period, epochs * (segments_[i].end - segments_[i].first));
  }
  return period;
}

// True if the reset counter comes round in fewer events than the L1 id: resets alone no longer prove a place.
bool Sequencer::round_of_resets(Sequence number) const {
  return settings_.format.has_ecr() && telling_period(number) < settings_.format.period();
}

// Calls f with all numbers from `lowest` to `highest` that have this id.
template <typename F>
void Sequencer::for_each_number(std::uint32_t id, Sequence lowest, Sequence highest, const F& f) const {
  const IdFormat& format = settings_.format;
  for (std::size_t i = segments_.find(lowest); i < segments_.size() && segments_[i].first <= highest; ++i) {
    const Segment& segment = segments_[i];
    const Sequence begin = std::max(lowest, segment.first);
    const Sequence end = std::min(highest + 1, segment.end);
    if (begin >= end || (format.has_ecr() && (segment.resets & 0xff) != id >> 24)) continue;
    const std::uint64_t ahead = (id - static_cast<std::uint64_t>(begin - segment.base)) & format.low_mask();
    for (Sequence number = begin + ahead; number < end; number += format.period()) f(number);
  }
}

// The nearest number with this id. A link may be far behind those that are read with it, but only a little ahead.
std::optional<Sequence> Sequencer::nearest_number(Sequence stand, std::uint32_t id) const {
  const std::uint64_t quarter = settings_.format.period() / 4;
  std::optional<Sequence> nearest;
  for_each_number(id, stand - 3 * quarter + 1, stand + quarter, [&](Sequence number) {
    if (!nearest || distance(number, stand) < distance(*nearest, stand)) nearest = number;
  });
  return nearest;
}

// The place of an id, for a link whose peers are there.
Place Sequencer::place_by(const State& state, const PeersAt& peers, std::uint32_t id) const {
  if (peers.of_others) return near_place(peers, id);
  const Sequence stand = peers.number;
  const IdFormat& format = settings_.format;
  const bool restarts = !format.has_ecr() && format.shows_restarts();
  if (const auto number = nearest_number(stand, id)) {
    // An id near zero, whose number is far from the peers and below what the link has brought or what is open: it is of the
    // next epoch.
    const std::uint64_t steps = std::uint64_t{settings_.step} * spread(*state.link);
    const bool restarted = restarts && id <= steps && distance(*number, stand) > settings_.reach + steps &&
                           *number < std::max(oldest_, state.link->position());
    if (!restarted) return segments_.of(*number).place(*number);
  }
  // No number near the peers has this id: it may lie just before the first event of the run.
  const Place beside = segments_.of(stand).place(stand);
  const Place place = nearest(beside, id);
  return restarts && place > beside ? Place{beside.resets + 1, id} : place;
}

Sequence Sequencer::prove(State& state, Sequence number, std::uint32_t id, std::uint16_t bcid) {
  if (!state.link->doubtful && !state.suspected) return number;
  if (settings_.listed) {
    compare_with_list(state, number, bcid);
    return number;
  }
  number = prove_place(state, number, id, bcid);
  if (state.link->doubtful && !state.doubt_told) state.told.lost = state.doubt_told = true;
  return number;
}

// The list alone gives the place of a suspected link. Its BCIDs show whether the link is out of step.
void Sequencer::compare_with_list(State& state, Sequence number, std::uint16_t bcid) {
  const bool remembered = number < book_.end() && number + book_.size() >= book_.end();
  if (!settings_.has_bcid || !remembered || book_.at(number).state != TriggerBook::kListed) return;
  note_finding(state, state.evidence.weigh(bcid, book_.at(number).bcid, {}));
}

void Sequencer::note_finding(State& state, const PlaceEvidence::Finding& finding) {
  if (finding.says == PlaceEvidence::Says::here) state.link->doubtful = state.suspected = state.out_of_step = false;
  if (finding.says != PlaceEvidence::Says::nowhere || state.out_of_step) return;
  state.told.out_of_step = state.out_of_step = true;
  state.told.constant = finding.constant;
}

// The number of a chunk that would be taken for `number`: another one if live peers or BCIDs say so. Ends the link's doubt
// if they prove its place.
Sequence Sequencer::prove_place(State& state, Sequence number, std::uint32_t id, std::uint16_t bcid) {
  const auto moved_to = [&](Sequence place, bool by_bcid) {
    state.told.by_bcid = by_bcid;
    state.told.moved = static_cast<std::int64_t>(place - number);
    state.evidence.forget();
    state.link->doubtful = state.keeps = false;
    return place;
  };
  const auto stand = stand_of_peers(state);
  const bool told = stand && stand->proves && stand->number != 0;
  const auto nearest = told ? nearest_number(stand->number, id) : std::nullopt;
  if (state.link->doubtful && nearest && distance(*nearest, stand->number) < telling_period(stand->number) / 4) {
    if (*nearest == number)
      state.link->doubtful = state.keeps = false;
    else if (!state.keeps)
      return moved_to(*nearest, false);
  }
  // It crosses a reset where the others do.
  const Segment& segment = segments_.of(number);
  if (number == segment.first && segment.base != state.link->base && state.link->position() != state.lowest &&
      ((settings_.format.has_ecr() && !round_of_resets(number)) || has_witness(state)))
    state.link->doubtful = false;
  // Links in doubt do not prove each other's places.
  if (!settings_.has_bcid || bcids_[state.window] == nullptr || (state.link->doubtful && !has_witness(state))) return number;

  const EventBcids& known = *bcids_[state.window];
  const std::uint64_t room = settings_.format.period() / 2;
  const Sequence lowest = stand && told ? stand->number - room : std::max(state.lowest, oldest_);
  const Sequence highest = stand && told ? stand->number + room : foremost() + settings_.format.period() / 4;
  others_.clear();
  for_each_number(id, std::max(lowest, highest - std::min(highest, 2 * settings_.window)), highest, [&](Sequence other) {
    if (const auto of = other == number ? std::nullopt : known.bcid(other))
      others_.push_back({static_cast<std::int64_t>(other - number), *of});
  });
  const PlaceEvidence::Finding finding = state.evidence.weigh(bcid, known.bcid(number), others_);
  if (finding.says == PlaceEvidence::Says::elsewhere) {
    state.suspected = state.out_of_step = false;
    return moved_to(number + static_cast<Sequence>(finding.offset), true);
  }
  note_finding(state, finding);
  return number;
}

}  // namespace rodeo::readout
