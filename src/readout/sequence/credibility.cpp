// Links that were silent: whether they have lost their place, their new place, and its proof.
#include "readout/sequence/credibility.h"

#include <algorithm>
#include <cstdlib>

namespace rodeo::readout {
namespace {

Sequence distance(Sequence a, Sequence b) { return a > b ? a - b : b - a; }

}  // namespace

bool Credibility::loses_place(Link& link, std::uint32_t id) {
  LinkSequence& sequence = link.sequence;
  if (settings_.listed || !numbers_.begun()) {
    sequence.lost = link.was_silent = false;
    return false;
  }
  if (link.was_silent) return end_silence(link, id);
  if (sequence.lost || (sequence.is_in_question() && id != sequence.expected)) return true;
  if (!link.here() && !link.away() && !sequence.doubtful) {
    // Nothing is known of the link. It is in doubt if the run has gone on for so long that its id may be of another round.
    // The limit is three times as high while all data so far were read at once. A first block as long as the way of the
    // others shows that the link began with them.
    const Pace& pace = *sequence.pace;
    const std::uint64_t limit = links_.clock(link) > links_.begun_at ? pace.limit() : 3 * pace.limit();
    sequence.doubtful = pace.head() > kRunFirst + std::max(limit, sequence.block_events + pace.quarter());
    link.lowest = link.position();
  }
  if (!link.here() || !numbers_.is_ambiguous(sequence)) return false;
  // Others have crossed a reset, long ago or while this link was silent for a quarter of an epoch: its id may be of the new
  // epoch.
  const auto peers = find_peers(link);
  const Sequence end = numbers_.segments().segment_of(link.position()).end;
  if (!peers || !peers->proves || peers->read == PeerPlace::Read::elsewhere || peers->number < end) return false;
  const std::uint64_t steps = std::uint64_t{settings_.step} * links_.spread(link);
  const std::uint64_t free = settings_.reach + 2 * steps;  // numbers between two segments
  const bool long_ago = peers->number > end + settings_.reach + steps;
  return long_ago || (peers->read == PeerPlace::Read::together &&
                      peers->number - link.position() > free + numbers_.unambiguous_period(peers->number) / 4);
}

void Credibility::lose_place(Link& link) {
  link.sequence.lost = link.was_silent = false;
  link.sequence.here.store(false, std::memory_order_relaxed);
  link.sequence.doubtful = true;
  link.lowest = link.position();
  link.reported_doubt = link.keeps = false;
  link.evidence.reset();
}

// The first chunk after a silence of all links of the reader.
bool Credibility::end_silence(Link& link, std::uint32_t id) {
  LinkSequence& sequence = link.sequence;
  link.was_silent = sequence.lost = false;
  if (link.away() && id == numbers_.id(link.going)) return false;  // it goes on where it went away to
  Reader& reader = links_.reader_of(link);
  const std::uint64_t quarter = silences_.quarter(reader);
  const auto passed = silences_.passed_by_others(reader, reader.drained);
  const bool paused = !passed || *passed < quarter;  // the others were silent, too
  const bool resets = settings_.format.has_ecr() && id == settings_.format.id_at(sequence.resets + 1, 0);
  if (paused && resets && !link.away()) return false;
  if (id != sequence.expected || link.away()) return true;
  if (passed && paused) return false;
  // It goes on with the next id: after a pause, or because its data were late. After a loss this happens by chance. With few
  // bits the chance is not small, but there readers are often that far apart.
  if (!numbers_.is_wide(4 * quarter)) {
    reader.distance = std::max(reader.distance, passed.value_or(0));
    return false;
  }
  const auto peers = find_peers(link, true);
  const auto peers_contradict = [&] {
    if (settings_.format.has_ecr() && peers->read == PeerPlace::Read::elsewhere)
      return silences_.place_beside(*peers, id) != sequence.place();
    return peers->number == 0 || numbers_.nearest_number(peers->number, id) != link.position();
  };
  sequence.doubtful = link.keeps = peers && peers_contradict();
  link.reported_doubt = false;
  link.lowest = link.position();
  return false;
}

// The foremost but one of the links that were read with it; if there are none, of all others. Of three, one wrong counter
// does no harm.
std::optional<PeerPlace> Credibility::find_peers(const Link& of, bool asks_others) const {
  const auto foremost_but_one = [&](bool same_reader) {
    Sequence first = 0;
    Sequence second = 0;
    for (const Link& link : links_) {
      if (&link == &of || (link.reader == of.reader) != same_reader || !is_witness(link)) continue;
      second = std::max(second, std::min(first, link.position()));
      first = std::max(first, link.position());
    }
    return second != 0 ? second : first;
  };
  const Sequence beside = foremost_but_one(true);
  const Sequence number = beside != 0 ? beside : foremost_but_one(false);
  if (number == 0)
    return asks_others || of.sequence.doubtful ? silences_.find_other_readers(links_.reader_of(of)) : std::nullopt;
  const std::uint64_t period = numbers_.unambiguous_period(number);
  // Links of different readers may be apart by the events that both may have open.
  return PeerPlace{.read = beside != 0 ? PeerPlace::Read::together : PeerPlace::Read::apart,
                   .proves = beside != 0 ? of.sequence.pace->resolves(period) : numbers_.is_wide(period),
                   .number = number,
                   .place = numbers_.place(number)};
}

bool Credibility::has_witness(const Link& of) const {
  return std::ranges::any_of(links_, [&](const Link& link) { return &link != &of && is_witness(link); });
}

// ---- places

std::optional<Place> Credibility::first_place(Link& link, std::uint32_t id) const {
  const Reader& reader = links_.reader_of(link);
  const auto others = silences_.find_other_readers(reader);
  const Place place = others ? silences_.place_beside(*others, id) : place_beside_links(id);
  if (others && (place.index < 0 || place.resets < kResetsOrigin)) return std::nullopt;
  const bool after_reset = others && !settings_.format.has_ecr() && others->place.resets > kResetsOrigin;
  link.sequence.doubtful = (silences_.began_late(reader) || after_reset) && !(others && others->proves);
  return place;
}

// Beside a link of the group that has come already. Between their first chunks the L1 counter or the reset counter may have
// come round.
Place Credibility::place_beside_links(std::uint32_t id) const {
  for (const Link& other : links_) {
    if (!other.away() || other.removed()) continue;
    const Place beside = other.first_aside();
    const Place place = numbers_.nearest_place(beside, id);
    const bool near = place.resets == beside.resets
                          ? std::abs(place.index - beside.index) <= static_cast<std::int64_t>(settings_.window)
                          : settings_.format.has_ecr();
    if (near) return place;
  }
  return numbers_.first_place(id);
}

Place Credibility::find_place(const Link& link, std::uint32_t id) const {
  const auto peers = find_peers(link);
  if (link.sequence.doubtful && peers && (peers->proves || peers->read != PeerPlace::Read::apart))
    return place_from_peers(link, *peers, id);
  const Place known = numbers_.place(std::max(links_.oldest, link.lowest));
  // A link that lost its place went forward; without peers nothing else is known.
  const bool onward = link.sequence.doubtful && !peers && settings_.format.has_ecr();
  return onward ? Numbers::extended(known, id, 0) : numbers_.nearest_place(known, id);
}

// The place of an id, for a link whose peers are there.
Place Credibility::place_from_peers(const Link& link, const PeerPlace& peers, std::uint32_t id) const {
  if (peers.read == PeerPlace::Read::elsewhere) return silences_.place_beside(peers, id);
  const IdFormat& format = settings_.format;
  const bool restarts = !format.has_ecr() && format.shows_restarts();
  if (const auto number = numbers_.nearest_number(peers.number, id)) {
    // An id near zero, whose number is far from the peers and below what the link has brought or what is open: it is of the
    // next epoch.
    const std::uint64_t steps = std::uint64_t{settings_.step} * links_.spread(link);
    const bool restarted = restarts && id <= steps && distance(*number, peers.number) > settings_.reach + steps &&
                           *number < std::max(links_.oldest, link.position());
    if (!restarted) return numbers_.place(*number);
  }
  // No number near the peers has this id: it may lie just before the first event of the run.
  const Place place = numbers_.nearest_place(peers.place, id);
  return restarts && place > peers.place ? Place{peers.place.resets + 1, id} : place;
}

// ---- proof

Sequence Credibility::prove(Link& link, Sequence number, std::uint32_t id, std::uint16_t bcid) {
  if (!link.sequence.doubtful && !link.suspected) return number;
  if (settings_.listed) {
    compare_with_list(link, number, bcid);
    return number;
  }
  number = prove_place(link, number, id, bcid);
  if (link.sequence.doubtful && !link.reported_doubt) link.place_change.lost = link.reported_doubt = true;
  return number;
}

// The list alone gives the place of a suspected link. Its BCIDs show whether the link is out of step.
void Credibility::compare_with_list(Link& link, Sequence number, std::uint16_t bcid) const {
  if (!settings_.has_bcid || !list_.has_number(number) || !list_.has_entry(number)) return;
  apply_finding(link, link.evidence.weigh(bcid, list_.entries().at(number).bcid, {}));
}

Sequence Credibility::prove_place(Link& link, Sequence number, std::uint32_t id, std::uint16_t bcid) {
  LinkSequence& sequence = link.sequence;
  const auto peers = find_peers(link);
  const bool proven = peers && peers->proves && peers->number != 0;
  const auto nearest = proven ? numbers_.nearest_number(peers->number, id) : std::nullopt;
  if (sequence.doubtful && nearest && distance(*nearest, peers->number) < numbers_.unambiguous_period(peers->number) / 4) {
    if (*nearest == number)
      sequence.doubtful = link.keeps = false;
    else if (!link.keeps)
      return move_link(link, number, *nearest, false);
  }
  // It crosses a reset where the others do.
  const Segment& segment = numbers_.segments().segment_of(number);
  if (number == segment.first && segment.base != sequence.base && link.position() != link.lowest &&
      ((settings_.format.has_ecr() && !numbers_.resets_wrap_first(number)) || has_witness(link)))
    sequence.doubtful = false;
  // Links in doubt do not prove each other's places.
  if (!settings_.has_bcid || link.bcids == nullptr || (sequence.doubtful && !has_witness(link))) return number;
  return weigh_bcid(link, number, id, bcid, proven ? std::optional(peers->number) : std::nullopt);
}

Sequence Credibility::weigh_bcid(Link& link, Sequence number, std::uint32_t id, std::uint16_t bcid,
                                 std::optional<Sequence> peers_at) {
  const EventBcids& known = *link.bcids;
  const std::uint64_t period = settings_.format.period();
  const Sequence lowest = peers_at ? *peers_at - period / 2 : std::max(link.lowest, links_.oldest);
  const Sequence highest = peers_at ? *peers_at + period / 2 : links_.frontier() + period / 4;
  places_.clear();
  const Sequence from = std::max(lowest, highest - std::min(highest, 2 * settings_.window));
  numbers_.for_each_number(id, from, highest + 1, [&](Sequence other) {
    if (const auto of = other == number ? std::nullopt : known.bcid(other))
      places_.push_back({static_cast<std::int64_t>(other - number), *of});
    return false;
  });
  const PlaceEvidence::Finding finding = link.evidence.weigh(bcid, known.bcid(number), places_);
  if (finding.proof == PlaceEvidence::Proof::elsewhere) {
    link.suspected = link.out_of_step = false;
    return move_link(link, number, number + static_cast<Sequence>(finding.offset), true);
  }
  apply_finding(link, finding);
  return number;
}

Sequence Credibility::move_link(Link& link, Sequence from, Sequence to, bool by_bcid) {
  link.place_change.by_bcid = by_bcid;
  link.place_change.moved = static_cast<std::int64_t>(to - from);
  link.evidence.reset();
  link.sequence.doubtful = link.keeps = false;
  return to;
}

void Credibility::apply_finding(Link& link, const PlaceEvidence::Finding& finding) {
  if (finding.proof == PlaceEvidence::Proof::here) link.sequence.doubtful = link.suspected = link.out_of_step = false;
  if (finding.proof != PlaceEvidence::Proof::nowhere || link.out_of_step) return;
  link.place_change.out_of_step = link.out_of_step = true;
  link.place_change.constant = finding.constant;
}

}  // namespace rodeo::readout
